"""What a reader altered, in words: a picture that left the app must say that it is not the plain model's."""

from collections.abc import Iterable

from model.trace import NEUTRAL, Change, Head, Switch
from viz.reading import kind_name
from viz.text import _

NAMED = 6  # heads that are named one by one


def changed(change: Change, base: Change = NEUTRAL) -> list[str]:
    """Everything in which `change` differs from `base`; layers and heads count from 1."""
    said = []
    masks = {
        "source_padding": _("padding mask of the encoder"),
        "target_padding": _("padding mask of the decoder"),
        "look_ahead": _("look-ahead mask"),
        "cross_padding": _("padding mask of the cross-attention"),
    }
    for field, name in masks.items():
        switch: Switch = getattr(change, field)
        if switch != getattr(base, field):
            said.append(_switched(name, switch))
    if change.blocked != base.blocked:
        said.append(_("cells blocked: {count}").format(count=len(change.blocked)))
    if change.removed != base.removed:
        said.append(_("heads removed: {heads}").format(heads=_named(change.removed)))
    if change.uniform != base.uniform:
        said.append(_("heads made even: {heads}").format(heads=_named(change.uniform)))
    if (change.positions, change.seed) != (base.positions, base.seed):
        said.append(
            {
                "on": _("positions on"),
                "off": _("positions off"),
                "shuffled": _("positions shuffled (seed {seed})").format(seed=change.seed),
            }[change.positions]
        )
    if change.shift != base.shift:
        said.append(_("positions shifted by {shift}").format(shift=change.shift))
    flags = {
        "scale": (_("scores divided by √d_k"), _("scores not divided by √d_k")),
        "residual": (_("with the residual path"), _("without the residual path")),
        "norm": (_("with LayerNorm"), _("without LayerNorm")),
    }
    for field, (on, off) in flags.items():
        if getattr(change, field) != getattr(base, field):
            said.append(on if getattr(change, field) else off)
    for field, name in (
        ("source_pads", _("pads after the source")),
        ("target_pads", _("pads after the target")),
    ):
        if getattr(change, field) != getattr(base, field):
            said.append(f"{name}: {getattr(change, field)}")
    return said


def _switched(name: str, switch: Switch) -> str:
    if switch.off == "all":
        return _("{name} off").format(name=name)
    if not switch.off:
        return _("{name} on").format(name=name)
    layers = ", ".join(str(layer + 1) for layer in switch.off)
    return _("{name} off in layers {layers}").format(name=name, layers=layers)


def _named(heads: Iterable[Head]) -> str:
    """Heads as "decoder self-attention 2.5": layer and head."""
    places = sorted((head.kind, head.layer, head.head) for head in heads)
    if not places:
        return _("none")
    said = [f"{kind_name(kind)} {layer + 1}.{head + 1}" for kind, layer, head in places[:NAMED]]
    if len(places) > NAMED:
        said.append(_("and {count} more").format(count=len(places) - NAMED))
    return ", ".join(said)
