"""What can be said of a map: why a cell is blocked, where weight rests, which head does what.

Shapes: L layers, H heads, Q queries, K keys.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from model.trace import KINDS, Flags, Floats, Kind, Trace
from viz.text import _

Reason = Literal["", "pad", "future", "pad, future", "reader"]
RESTING = ("</s>", "<s>", ".")  # pieces that heads rest on when they have nothing to look for
PAD = "<pad>"


def kind_name(kind: Kind) -> str:
    return {
        "encoder": _("encoder self-attention"),
        "decoder": _("decoder self-attention"),
        "cross": _("cross-attention"),
    }[kind]


def side(kind: Kind, axis: Literal["query", "key"]) -> Literal["source", "target"]:
    """Which sentence lies along an axis."""
    if axis == "query":
        return "source" if kind == "encoder" else "target"
    return "target" if kind == "decoder" else "source"


def outgoing(trace: Trace, kind: Kind) -> tuple[str, ...] | None:
    """The pieces that come out of each row; None in the encoder, which predicts nothing."""
    return None if kind == "encoder" else trace.comes_out


def row_names(trace: Trace, kind: Kind) -> list[str]:
    """Each row's name: the piece that goes in and, in the decoder, the one that comes out."""
    rows, out = trace.axes(kind)[0], outgoing(trace, kind)
    return list(rows) if out is None else [f"{a} → {b}" for a, b in zip(rows, out, strict=True)]


def reasons(trace: Trace, kind: Kind, allowed: Flags) -> list[list[Reason]]:
    """Why each cell of `allowed` (Q, K) is blocked; "" where it is not."""
    keys = trace.axes(kind)[1]

    def reason(query: int, key: int) -> Reason:
        if allowed[query, key]:
            return ""
        pad, future = keys[key] == PAD, kind == "decoder" and key > query
        if pad and future:
            return "pad, future"
        return "pad" if pad else "future" if future else "reader"

    return [[reason(query, key) for key in range(len(keys))] for query in range(len(allowed))]


def reason_name(reason: Reason) -> str:
    return {
        "": "",
        "pad": _("blocked: a pad, nothing to read"),
        "future": _("blocked: this row may not see the future"),
        "pad, future": _("blocked: a pad, and in the future"),
        "reader": _("blocked by you"),
    }[reason]


def number(weight: float) -> str:
    """A weight to four decimals; a smaller one says that it is not 0."""
    return "0.0000" if weight == 0 else _("under 0.0001") if weight < 0.0001 else f"{weight:.4f}"


def percent(share: float) -> str:
    """A share in per cent, with as many digits as it takes to say something."""
    if 0 < share < 0.001:
        return _("less than 0.1 %")
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.1 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Map:
    """One picture's numbers: a head, or the mean of a layer's heads."""

    trace: Trace
    kind: Kind
    layer: int
    head: int | None  # None is the mean over the heads

    @property
    def weights(self) -> Floats:
        """(Q, K)"""
        layer = self.trace.weights(self.kind)[self.layer]
        return layer.mean(axis=0) if self.head is None else layer[self.head]

    @property
    def allowed(self) -> Flags:
        """(Q, K). In the mean, a cell that any head may look at."""
        layer = self.trace.allowed(self.kind)[self.layer]
        return layer.any(axis=0) if self.head is None else layer[self.head]

    @property
    def empty(self) -> Flags:
        """(Q,)"""
        return np.logical_not(self.allowed.any(axis=-1))

    def name(self) -> str:
        layer = self.layer + 1
        if self.head is None:
            heads = self.trace.weights(self.kind).shape[1]
            return _("the mean of all {heads} heads of layer {layer}").format(heads=heads, layer=layer)
        return _("head {head} of layer {layer}").format(head=self.head + 1, layer=layer)


def favourite(picture: Map, query: int) -> int:
    """The key that a row reads most."""
    return int(picture.weights[query].argmax())


def aloud(picture: Map, query: int, key: int) -> str:
    """The chosen cell as a sentence."""
    queries, keys = picture.trace.axes(picture.kind)
    name = picture.name()
    head = name[0].upper() + name[1:]
    if picture.empty[query]:
        return _('{head}, working on "{query}", has nothing it may look at: no weights, output 0.').format(
            head=head, query=queries[query]
        )
    if not picture.allowed[query, key]:
        why = reason_name(reasons(picture.trace, picture.kind, picture.allowed)[query][key])
        return _('{head}, working on "{query}", may not look at "{key}" ({why}).').format(
            head=head, query=queries[query], key=keys[key], why=why
        )
    said = _('{head}, working on "{query}", takes {share} of its mix from "{key}".').format(
        head=head, query=queries[query], share=percent(float(picture.weights[query, key])), key=keys[key]
    )
    out = outgoing(picture.trace, picture.kind)
    if out is not None and out[query] != PAD:
        said += " " + _('This row helps to choose "{out}".').format(out=out[query])
    return said


def facts(picture: Map) -> str:
    """The line under a map: kind, layer, head, axes, row sum, range."""
    weights = picture.weights
    sums = weights.sum(axis=-1)[~picture.empty]
    rows, columns = (_("English"), _("French")) if picture.kind == "encoder" else (_("French"), _("English"))
    if picture.kind != "cross":
        columns = rows
    if picture.kind != "encoder":
        rows = _("{language}, goes in → comes out").format(language=rows)
    parts = [
        _("{kind}, {name}.").format(kind=kind_name(picture.kind).capitalize(), name=picture.name()),
        _("Rows ask (query): {rows}. Columns are asked (key): {columns}.").format(rows=rows, columns=columns),
    ]
    if len(sums):
        worst = float(abs(sums - 1).max())
        parts.append(
            _("Each row sums to 1 (to within {worst:.0e}).").format(worst=worst)
            if 0 < worst <= 1e-5
            else _("Each row sums to 1.")
            if worst == 0
            else _("Row sums are off by up to {worst:.1e}: do not trust this map.").format(worst=worst)
        )
        shown = weights[picture.allowed]
        parts.append(
            _("Weights here from {least} to {most}; colours from 0 to 1.").format(
                least=number(float(shown.min())), most=number(float(shown.max()))
            )
        )
    if picture.empty.any():
        parts.append(_("Rows with nothing allowed: {count}.").format(count=int(picture.empty.sum())))
    return " ".join(parts)


def loss(trace: Trace) -> float:
    """Mean of -log p over the pieces that come out, pads left out: the loss without label smoothing."""
    real = len(trace.target) - trace.change.target_pads
    return -float(trace.piece_log_probs[:real].mean())


def resting(picture: Map) -> list[tuple[str, int]]:
    """The resting pieces that take over half of some rows, and of how many."""
    found = []
    for key, piece in enumerate(picture.trace.axes(picture.kind)[1]):
        # A row that may look at one key alone has no choice, and so rests on nothing.
        rows = (picture.weights[:, key] > 0.5) & (picture.allowed.sum(axis=-1) > 1)
        if piece in RESTING and rows.any():
            found.append((piece, int(rows.sum())))
    return found


# --- find me a head that ... ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The head of the typed sentence that follows a rule best, and how well, from 0 to 1."""

    kind: Kind
    layer: int
    head: int
    score: float


@dataclass(frozen=True)
class Role:
    """Something heads are known to do. `score` gives (L, H), from 0 to 1, for one kind."""

    name: str
    rule: str
    kinds: tuple[Kind, ...]
    score: Callable[[Trace, Kind], Floats]


def _aligns(trace: Trace, kind: Kind) -> Floats:
    keys = trace.axes(kind)[1]
    words = np.array([piece not in (*RESTING, PAD) for piece in keys])
    rows = [out not in (*RESTING, PAD) for out in trace.comes_out]
    weights = trace.weights(kind)[..., rows, :] * words
    if not weights.shape[-2] or not words.any():
        return np.zeros(weights.shape[:2], np.float32)
    favourites = weights.argmax(axis=-1)
    different = np.array([[len(set(head)) for head in layer] for layer in favourites.tolist()])
    return weights.max(axis=-1).mean(axis=-1) * different / min(weights.shape[-2], words.sum())


def _diagonal(offset: int) -> Callable[[Trace, Kind], Floats]:
    def score(trace: Trace, kind: Kind) -> Floats:
        # In a decoder the first rows have hardly a choice; where nothing else is allowed, nothing is shown.
        weights = trace.weights(kind)
        rows = np.arange(max(1, -offset), weights.shape[-2])
        if not len(rows):
            return np.zeros(weights.shape[:2], np.float32)
        return weights[..., rows, rows + offset].mean(axis=-1)

    return score


def _rests(trace: Trace, kind: Kind) -> Floats:
    keys = [piece in RESTING for piece in trace.axes(kind)[1]]
    weights = trace.weights(kind)[..., 1:, :][..., keys]
    if not weights.size:
        return np.zeros(weights.shape[:2], np.float32)
    return weights.mean(axis=-2).max(axis=-1)


def roles() -> list[Role]:
    """What "find me a head that ..." offers."""
    return [
        Role(
            _("aligns the two sentences"),
            _("Mean of each row's largest weight on a word, times the share of different words so chosen."),
            ("cross",),
            _aligns,
        ),
        Role(
            _("looks one back"),
            _("Mean weight on the piece just before, over all rows that have one."),
            ("encoder", "decoder"),
            _diagonal(-1),
        ),
        Role(
            _("looks at itself"),
            _("Mean weight of a row on its own piece, the first row left out."),
            ("encoder", "decoder"),
            _diagonal(0),
        ),
        Role(
            _("rests"),
            _("Largest mean weight on one of </s>, <s> or the full stop, the first row left out."),
            KINDS,
            _rests,
        ),
    ]


def find(trace: Trace, role: Role) -> Found:
    """The head with the highest score for a role; the earliest where several are equal."""
    best = Found(role.kinds[0], 0, 0, -1.0)
    for kind in role.kinds:
        scores = role.score(trace, kind)
        layer, head = (int(i) for i in np.unravel_index(scores.argmax(), scores.shape))
        if scores[layer, head] > best.score:
            best = Found(kind, layer, head, float(scores[layer, head]))
    return best
