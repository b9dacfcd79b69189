"""The models: a table of those that are shipped, a file of one's own, and models from elsewhere."""

from collections.abc import Callable

import streamlit as st

from model import files
from viz import cache, component, view
from viz.component import Place
from viz.reading import kind_name
from viz.sizes import Sizes
from viz.text import _, model_card, prose
from viz.view import Offers, Scene

MEGABYTES = 20  # of a file


def _table(model: str) -> None:
    words, table = st.columns([2, 3], gap="large")
    words.markdown(prose("models")["table"])
    with table:
        component.models(view.offered_places(cache.models(), model, ""), "table")
    if model in cache.SHIPPED:
        with st.expander(_("The card of {name}").format(name=view.plain(model))):
            st.markdown(model_card(model))


def _file(_model: str) -> None:
    words = prose("models")
    left, right = st.columns([3, 2], gap="large")
    with right:
        st.markdown("**" + _("What a file holds") + "**")
        st.markdown(words["rules"])
        st.markdown(words["bridge"])
    with left:
        st.markdown(words["file"])
        endings = [ending.removeprefix(".") for ending in files.SUFFIXES]
        upload = st.file_uploader(
            _("A file with attention"), endings, key="models_file", max_upload_size=MEGABYTES
        )
        if upload:
            try:
                _opened(cache.keep_file(upload.name, upload.getvalue()))
            except files.FileError as error:
                st.info(view.plain(_refused(error)))


def _refused(error: files.FileError) -> str:
    said = _("{what}: this file has {got}, and Headlight reads {want}.")
    return said.format(what=error.what[:1].upper() + error.what[1:], got=error.got, want=error.want)


def _opened(name: str) -> None:
    """What the file holds, and the way to it."""
    sizes = cache.sizes(name)
    st.markdown("\n".join(f"- {line}" for line in _holds(sizes)))
    address: dict[str, str | None] = dict.fromkeys(view.MOVED)
    component.links(
        "models_open",
        [
            Place(
                _("Look at it"),
                _("The link works as long as the server holds the file."),
                address | {"model": name},
                page="",
            )
        ],
    )


def _holds(sizes: Sizes) -> list[str]:
    said = _("{kind}: {layers} layers of {heads} heads")
    lines = [
        said.format(kind=kind_name(kind).capitalize(), layers=layers, heads=heads)
        for kind, (layers, heads) in sizes.kinds.items()
    ]
    return [*lines, _("up to {pieces} pieces along an axis").format(pieces=sizes.pieces)]


def _elsewhere(model: str) -> None:
    words, names = prose("models"), cache.allowed()
    st.markdown(words["elsewhere"])
    if not names:
        st.markdown(words["off"])
        return
    address: dict[str, str | None] = dict.fromkeys(view.MOVED)
    note = _("Its weights are read when you choose it; that can take a minute.")
    component.links(
        "models_elsewhere",
        [Place(name, note, address | {"model": name}, name == model, page="") for name in names],
    )


TABS: dict[str, Callable[[str], None]] = {"table": _table, "file": _file, "elsewhere": _elsewhere}
OFFERS: Offers = {"models_tab": tuple(TABS)}


def draw(scene: Scene) -> None:
    TABS[view.tab("models_tab", TABS)](scene.here.model)


def alone() -> None:
    """Where the chosen model cannot be asked, another can be chosen."""
    TABS[view.tab("models_tab", TABS)](cache.MODEL)
