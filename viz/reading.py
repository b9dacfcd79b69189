"""What can be said of a map: why a cell is blocked, where weight rests, which head does what.

Shapes: L layers, H heads, Q queries, K keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from model import heads
from model.trace import KINDS, Flags, Floats, Kind, Side, Trace, asked, asks
from viz.text import _

Reason = Literal["", "pad", "future", "pad, future", "reader"]
REASONS: tuple[Reason, ...] = get_args(Reason)
RESTING = ("</s>", "<s>", ".")  # pieces that heads rest on when they have nothing to look for
PAD = "<pad>"


def kind_name(kind: Kind) -> str:
    return {
        "encoder": _("encoder self-attention"),
        "decoder": _("decoder self-attention"),
        "cross": _("cross-attention"),
    }[kind]


def language(languages: Mapping[Side, str], side: Side) -> str:
    """What a sentence is called."""
    known = {"en": _("English"), "fr": _("French")}
    return known.get(languages.get(side, ""), _("source") if side == "source" else _("target"))


def outgoing(trace: Trace, kind: Kind) -> tuple[str, ...] | None:
    """The pieces that come out of each row; None where the rows predict nothing."""
    return trace.comes_out if trace.predicts == asks(kind) else None


def row_names(trace: Trace, kind: Kind) -> list[str]:
    """Each row's name: the piece that goes in and, where rows predict, the one that comes out."""
    rows, out = trace.axes(kind)[0], outgoing(trace, kind)
    return list(rows) if out is None else [f"{a} → {b}" for a, b in zip(rows, out, strict=True)]


def reason_codes(kind: Kind, keys: Sequence[str], allowed: Flags) -> NDArray[np.uint8]:
    """Why each cell of `allowed` (..., Q, K) is blocked: an index into `REASONS`, 0 where it is not."""
    queries, count = allowed.shape[-2:]
    pad = np.array([key == PAD for key in keys])
    future = np.triu(np.ones((queries, count), bool), 1) & (kind == "decoder")
    code = pad * REASONS.index("pad") + future * REASONS.index("future")  # both: their sum
    return np.where(allowed, 0, np.where(code == 0, REASONS.index("reader"), code)).astype(np.uint8)


def reasons(trace: Trace, kind: Kind, allowed: Flags) -> list[list[Reason]]:
    """Why each cell of `allowed` (Q, K) is blocked; "" where it is not."""
    codes = reason_codes(kind, trace.axes(kind)[1], allowed)
    return [[REASONS[code] for code in row] for row in codes.tolist()]


def reason_name(reason: Reason) -> str:
    return {
        "": "",
        "pad": _("blocked: a pad, nothing to read"),
        "future": _("blocked: this row may not see the future"),
        "pad, future": _("blocked: a pad, and in the future"),
        "reader": _("blocked by you"),
    }[reason]


def phrases() -> dict[str, str]:
    """What is said of a map, with gaps: here in Python, and on the stage, which fills the same ones."""
    return {
        "head": _("head {head} of layer {layer}"),
        "mean": _("the mean of all {heads} heads of layer {layer}"),
        "under": _("under 0.0001"),
        "trifle": _("less than 0.1 %"),
        "empty": _('{head}, working on "{query}", has nothing it may look at: no weights, output 0.'),
        "blocked": _('{head}, working on "{query}", may not look at "{key}" ({why}).'),
        "takes": _('{head}, working on "{query}", takes {share} of its mix from "{key}".'),
        "helps": _('This row helps to choose "{out}".'),
        "what": _("{kind}, {name}."),
        "axes": _("Rows ask (query): {rows}. Columns are asked (key): {columns}."),
        "in_out": _("{language}, goes in → comes out"),
        "sums": _("Each row sums to 1."),
        "nearly": _("Each row sums to 1 (to within {worst})."),
        "off": _("Row sums are off by up to {worst}: do not trust this map."),
        "range": _("Weights here from {least} to {most}; colours from 0 to 1."),
        "nothing": _("Rows with nothing allowed: {count}."),
        "rests": _('A resting place: "{piece}" takes over half of the weight in {rows} of {all} rows.'),
        "common": _("That is common and means little."),
    }


def number(weight: float) -> str:
    """A weight to four decimals; a smaller one says that it is not 0."""
    return "0.0000" if weight == 0 else phrases()["under"] if weight < 0.0001 else f"{weight:.4f}"


def percent(share: float) -> str:
    """A share in per cent, with as many digits as it takes to say something."""
    if 0 < share < 0.001:
        return phrases()["trifle"]
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
            return phrases()["mean"].format(heads=heads, layer=layer)
        return phrases()["head"].format(head=self.head + 1, layer=layer)


def favourite(picture: Map, query: int) -> int:
    """The key that a row reads most."""
    return int(picture.weights[query].argmax())


def aloud(picture: Map, query: int, key: int) -> str:
    """The chosen cell as a sentence."""
    queries, keys = picture.trace.axes(picture.kind)
    name, say = picture.name(), phrases()
    head = name[0].upper() + name[1:]
    if picture.empty[query]:
        return say["empty"].format(head=head, query=queries[query])
    if not picture.allowed[query, key]:
        why = reason_name(reasons(picture.trace, picture.kind, picture.allowed)[query][key])
        return say["blocked"].format(head=head, query=queries[query], key=keys[key], why=why)
    share = percent(float(picture.weights[query, key]))
    said = say["takes"].format(head=head, query=queries[query], share=share, key=keys[key])
    out = outgoing(picture.trace, picture.kind)
    if out is not None and out[query] != PAD:
        said += " " + say["helps"].format(out=out[query])
    return said


def facts(picture: Map) -> str:
    """The line under a map: kind, layer, head, axes, row sum, range."""
    weights, say = picture.weights, phrases()
    sums = weights.sum(axis=-1)[~picture.empty]
    trace, kind = picture.trace, picture.kind
    rows, columns = language(trace.languages, asks(kind)), language(trace.languages, asked(kind))
    if outgoing(trace, kind) is not None:
        rows = say["in_out"].format(language=rows)
    parts = [
        say["what"].format(kind=kind_name(picture.kind).capitalize(), name=picture.name()),
        say["axes"].format(rows=rows, columns=columns),
    ]
    if len(sums):
        worst = float(abs(sums - 1).max())
        parts.append(
            say["nearly"].format(worst=f"{worst:.0e}")
            if 0 < worst <= 1e-5
            else say["sums"]
            if worst == 0
            else say["off"].format(worst=f"{worst:.1e}")
        )
        shown = weights[picture.allowed]
        parts.append(say["range"].format(least=number(float(shown.min())), most=number(float(shown.max()))))
    if picture.empty.any():
        parts.append(say["nothing"].format(count=int(picture.empty.sum())))
    return " ".join(parts)


def loss(trace: Trace) -> float:
    """Mean of -log p over the pieces that come out, pads left out: the loss without label smoothing.

    Of a model that fills gaps, over what is hidden, or over all pieces where nothing is.
    """
    if trace.predicts == "source":
        rows = [*trace.gaps] or [*range(len(trace.source) - trace.change.source_pads)]
        return -float(trace.piece_log_probs[rows].mean())
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


def _mean(role: heads.Role, trace: Trace, kind: Kind) -> Floats:
    return heads.mean_weight(trace, role, kind)


def _rests(trace: Trace, kind: Kind) -> Floats:
    # The first piece is a resting place where it is <s>.
    kept: list[heads.Role] = ["mark", "first"] if kind == "decoder" else ["mark", "end"]
    return np.maximum(*(heads.mean_weight(trace, role, kind) for role in kept))


def roles(kinds: Sequence[Kind] = KINDS) -> list[Role]:
    """What "find me a head that ..." offers in a model with these kinds."""
    offered = [
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
            partial(_mean, "previous"),
        ),
        Role(
            _("looks at itself"),
            _("Mean weight of a row on its own piece, over all rows that have a choice."),
            ("encoder", "decoder"),
            partial(_mean, "same"),
        ),
        Role(
            _("rests"),
            _("Mean weight on </s>, on <s> or on marks such as the full stop, whichever is largest."),
            KINDS,
            _rests,
        ),
    ]
    here = [replace(role, kinds=tuple(kind for kind in role.kinds if kind in kinds)) for role in offered]
    return [role for role in here if role.kinds]


def find(trace: Trace, role: Role) -> Found:
    """The head with the highest score for a role; the earliest where several are equal."""
    best = Found(role.kinds[0], 0, 0, -1.0)
    for kind in role.kinds:
        scores = role.score(trace, kind)
        layer, head = (int(i) for i in np.unravel_index(scores.argmax(), scores.shape))
        if scores[layer, head] > best.score:
            best = Found(kind, layer, head, float(scores[layer, head]))
    return best
