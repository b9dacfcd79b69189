"""What is said while a model from elsewhere is opened, and why one is not."""

from viz.text import _


def step(name: str) -> str:
    """What is being done, by the name `model.hub` has for it."""
    return {
        "files": _("Looking through its files"),
        "download": _("Fetching it"),
        "tokenizer": _("Reading its vocabulary"),
        "weights": _("Reading its weights"),
        "look": _("Trying whether its attention can be seen"),
    }.get(name, name)


def refused(code: str) -> str:
    """Why, by the code of a refusal of `model.hub`."""
    return {
        "off": _("this server opens no models from elsewhere."),
        "name": _("no model can be called that."),
        "listed": _("it is not among those that this server allows."),
        "packages": _("a package that it needs is not installed on this server."),
        "network": _("it is not here yet, and the network cannot be reached."),
        "missing": _("its folder, or a file that it needs, is not there."),
        "outside": _("one of its files lies outside its folder."),
        "pickle": _("its weights are in a format that can hold code; safetensors are read."),
        "code": _("it wants to run code of its own."),
        "large": _("its weights take more memory than this server allows."),
        "architecture": _("models of this sort cannot be shown."),
        "attention": _("its attention cannot be seen."),
        "broken": _("its files contradict themselves."),
    }.get(code, _("it cannot be read."))
