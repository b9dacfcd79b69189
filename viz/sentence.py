"""The text that came out, piece by piece: a translation, a continuation, or a sentence with its gaps."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from model.trace import Trace
from viz import component
from viz.reading import PAD, percent
from viz.text import _
from viz.theme import Palette

START = "<s>"
FEW = 3  # guesses that a gap tells of


def show(trace: Trace, palette: Palette, turn: Callable[[int], None] | None = None) -> None:
    """Each piece with its probability. Where pieces can be hidden, a press on one is a `turn`."""
    if trace.predicts == "source":
        pieces, whole = _gaps(trace, turn is not None), _gaps_said(trace, turn is not None)
        label = _("The sentence, and what the model guesses")
    elif trace.predicts == "target":
        pieces, whole, label = _written(trace), _written_said(trace), _label(trace)
    else:
        pieces, whole, label = (
            _read(trace),
            _("This model writes nothing: it only reads."),
            _("What it reads"),
        )
    source = trace.predicts != "target" and bool(trace.source)
    data: dict[str, Any] = {
        "pieces": pieces,
        "whole": whole,
        "colour": palette.source if source else palette.target,
        "label": label,
    }
    component.sentence(data, turn or (lambda _place: None))


def _label(trace: Trace) -> str:
    return _("French translation") if trace.source else _("The beginning, and how the model goes on")


def _written(trace: Trace) -> list[dict[str, Any]]:
    """The pieces that came out; those that a reader gave to a decoder are quiet."""
    shares = np.exp(trace.piece_log_probs)
    real = len(trace.target) - trace.change.target_pads
    # A decoder alone may begin with a piece of the text itself, which nothing predicts.
    bare = not trace.source and trace.target[0] != START
    first = {"text": trace.target[0], "space": False, "quiet": True, "said": _("given, not predicted")}
    return [
        *([first] if bare else []),
        *(
            {
                "text": trace.target[index],
                "space": trace.target_spaces[index] and (bare or index > 1),
                "quiet": index <= trace.given,
                "said": _("probability {share}").format(share=percent(float(shares[index - 1]))),
            }
            for index in range(1, real)
        ),
    ]


def _written_said(trace: Trace) -> str:
    share = percent(math.exp(trace.log_prob))
    if not trace.source:
        own = float(trace.piece_log_probs[trace.given :].sum())
        said = _("The model's probability of going on just so: {share}.")
        whole = said.format(share=percent(math.exp(own)))
    elif trace.forced:
        whole = _("The model gives this sentence a probability of {share}.").format(share=share)
    else:
        whole = _("The model's probability of this whole translation: {share}.").format(share=share)
    if trace.cut:
        whole += " " + _("It did not stop by itself: the length limit cut it.")
    return whole


def _gaps(trace: Trace, turns: bool) -> list[dict[str, Any]]:
    """Every piece as a button: what stands there, or in a gap what is guessed."""
    hidden = dict(zip(trace.gaps, trace.hidden, strict=True))
    pieces = []
    for place, piece in enumerate(trace.source):
        last = place == len(trace.source) - 1 - trace.change.source_pads
        if piece == PAD or last:  # nothing to hide: a pad, and </s>
            continue
        guesses = ", ".join(
            f"{one.piece} {percent(math.exp(one.log_prob))}" for one in trace.candidates[place][:FEW]
        )
        if place in hidden:
            truth = hidden[place]
            said = _("guessed: {guesses}").format(guesses=guesses)
            if truth:
                share = percent(math.exp(float(trace.piece_log_probs[place])))
                said += "; " + _('hidden: "{piece}", {share}').format(piece=truth, share=share)
        else:
            said = _("would be guessed: {guesses}").format(guesses=guesses)
            said += "; " + _("press to hide") if turns else ""
        pieces.append(
            {
                "text": trace.comes_out[place] if place in hidden else piece,
                "space": trace.source_spaces[place] and place > 0,
                "gap": place in hidden,
                "said": said,
            }
            | ({"place": place} if turns else {})
        )
    return pieces


def _gaps_said(trace: Trace, turns: bool) -> str:
    if not trace.gaps:
        if not turns:
            return _("Nothing is hidden. Type [MASK] for a word: the model then guesses it from both sides.")
        return _("Nothing is hidden. Press a word: the model then guesses it from both sides.")
    truths = [
        float(trace.piece_log_probs[place])
        for place, truth in zip(trace.gaps, trace.hidden, strict=True)
        if truth
    ]
    said = _("Framed: what the model guesses for what it cannot see.")
    if truths:
        share = percent(math.exp(float(np.mean(truths))))
        said += " " + (
            _("What is hidden there has {share}.").format(share=share)
            if len(truths) == 1
            else _("What is hidden there has {share} on (geometric) average.").format(share=share)
        )
    return said


def _read(trace: Trace) -> list[dict[str, Any]]:
    """Pieces that nothing is predicted of."""
    side, spaces = (
        (trace.source, trace.source_spaces) if trace.source else (trace.target, trace.target_spaces)
    )
    return [
        {
            "text": piece,
            "space": spaces[place] and place > 0,
            "said": _("piece {place}").format(place=place + 1),
        }
        for place, piece in enumerate(side)
    ]
