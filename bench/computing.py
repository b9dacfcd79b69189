"""The model's side: what a trace costs over the bare pass, decoding against Marian, growth with the input.

Ratios are of processor time on one thread, which on an idle machine is the time that passes, and on a busy
one does not count what others did in between.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

import model
from bench.timing import Result, in_turns, p95, ratio
from model.config import END, Config
from model.decoding import greedy
from model.trace import Trace
from model.transformer import Transformer
from model.translator import Translator
from viz import stage

REPEATS = 20
SENTENCE = "The old man often sees a dog near the house every morning."  # 12 words
SIZES = (16, 32, 64, 128, 256, 512)
SHARES = {12: 1.3, 64: None, 128: 1.6}  # what a trace may cost, in bare passes
FASTER = {12: 2.0, 64: 1.5}  # how many times Marian's pieces a second


def text_of(pieces: int) -> str:
    """A text that the shipped tokenizer cuts into exactly so many pieces."""
    words = [("a.", "I.")[index % 2] for index in range(pieces // 2)]
    return " ".join(words + ["a"] * (pieces % 2))


@cache
def roomy() -> Translator:
    """The shipped weights for longer inputs: the sinusoids of later positions are computed, not learned."""
    shipped = model.translator_of("en-fr")
    longer = Transformer(replace(shipped.model.config, max_pieces=max(SIZES)))
    longer.load_state_dict(shipped.model.state_dict())
    longer.eval().requires_grad_(False)
    longer.lay_out()
    return Translator("roomy", longer, shipped.tokenizer)


def traced(pieces: int) -> tuple[Callable[[], Tensor], Callable[[], Trace]]:
    """The bare pass through the fused kernel, and the trace with all its arrays, of the same sentences."""
    translator, text = roomy(), text_of(pieces - 1)  # </s> and <s> are one more
    seen = translator.trace(text, text)
    assert len(seen.source) == len(seen.target) == pieces
    source, target = torch.tensor([seen.source_ids]), torch.tensor([seen.target_ids])

    def bare() -> Tensor:
        with torch.inference_mode():
            return translator.model(source, target)

    return bare, lambda: translator.trace(text, text)


def tracing(repeats: int = REPEATS, sizes: Sequence[int] = tuple(SHARES)) -> list[Result]:
    """A trace, text in and numpy out, over the forward pass that keeps nothing."""
    results = []
    for pieces in sizes:
        bare, trace = traced(pieces)
        times = in_turns({"bare": bare, "trace": trace}, repeats, time.thread_time)
        results.append(
            Result(
                "model",
                f"a trace of {pieces} pieces, in bare passes",
                ratio(times, "trace", "bare"),
                "×",
                SHARES.get(pieces),
                note=f"bare pass {1000 * statistics.median(times['bare']):.1f} ms",
            )
        )
    return results


def contestants(pieces: int) -> dict[str, Callable[[], int]]:
    """Ours and Marian, same sizes, random weights, each writing exactly `pieces` pieces of a translation.

    The length is forced alike: neither can stop before, ours since </s> has no weight, Marian by having none.
    """
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.manual_seed(0)
    sizes = Config(vocabulary=model.load("en-fr").model.config.vocabulary, max_pieces=pieces + 1)
    ours = Transformer(sizes).eval().requires_grad_(False)
    ours.embedding.weight[END] = 0
    ours.lay_out()
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=sizes.vocabulary,
            d_model=sizes.d_model,
            encoder_layers=sizes.n_layers,
            decoder_layers=sizes.n_layers,
            encoder_attention_heads=sizes.n_heads,
            decoder_attention_heads=sizes.n_heads,
            encoder_ffn_dim=sizes.d_ff,
            decoder_ffn_dim=sizes.d_ff,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=0,
            bos_token_id=1,
            decoder_start_token_id=1,
            eos_token_id=2,
            forced_eos_token_id=None,
        )
    )
    theirs.eval().requires_grad_(False)
    theirs.generation_config.eos_token_id = None
    source = torch.randint(4, sizes.vocabulary, (1, pieces))
    everything = torch.ones_like(source)

    def marian() -> int:
        with torch.inference_mode():
            found = theirs.generate(
                source,
                attention_mask=everything,
                max_new_tokens=pieces,
                num_beams=1,
                do_sample=False,
                use_cache=True,
            )
        return int(found.shape[1]) - 1

    return {"ours": lambda: len(greedy(ours, source)[0]), "marian": marian}


def decoding(repeats: int = REPEATS, sizes: Sequence[int] = tuple(FASTER)) -> list[Result]:
    """Pieces a second of greedy decoding with a cache, over those of `transformers`' MarianMTModel."""
    results = []
    for pieces in sizes:
        acts = contestants(pieces)
        written = {name: act() for name, act in acts.items()}
        assert set(written.values()) == {pieces}, written
        times = in_turns(acts, repeats, time.thread_time)
        speed = {name: pieces / statistics.median(found) for name, found in times.items()}
        results.append(
            Result(
                "model",
                f"greedy decoding of {pieces} pieces, speed over transformers' Marian",
                ratio(times, "marian", "ours"),
                "×",
                FASTER.get(pieces),
                least=True,
                note=f"{speed['ours']:.0f} and {speed['marian']:.0f} pieces/s",
            )
        )
    return results


def sentence(repeats: int = REPEATS) -> list[Result]:
    """What the server computes for a typed sentence of 12 words: translation, trace, the stage's bytes."""
    translator = model.load("en-fr")

    def answer() -> stage.Payload:
        return stage.pack([stage.maps(translator.trace(SENTENCE))])

    times = [1000 * seconds for seconds in in_turns({"answer": answer}, repeats)["answer"]]
    note = f"{len(SENTENCE.split())} words, {len(answer().bytes) / 1000:.0f} kB to the browser"
    part = "model"
    return [
        Result(part, "a typed sentence, on the server: median", statistics.median(times), "ms", note=note),
        Result(part, "a typed sentence, on the server: 95 of 100", p95(times), "ms"),
    ]


def growth(repeats: int = 8, sizes: Sequence[int] = SIZES) -> list[Result]:
    """Time and bytes against pieces: the slope between sizes on log axes, 1 being linear, 2 quadratic.

    A cliff would be a step between neighbours that is much steeper than quadratic.
    """
    curves: dict[str, list[float]] = {"bare pass": [], "trace": [], "arrays of a trace": [], "payload": []}
    for pieces in sizes:
        bare, trace = traced(pieces)
        times = in_turns({"bare": bare, "trace": trace}, repeats, time.thread_time)
        curves["bare pass"].append(statistics.median(times["bare"]))
        curves["trace"].append(statistics.median(times["trace"]))
        seen = trace()
        curves["arrays of a trace"].append(arrays(seen))
        curves["payload"].append(len(stage.pack([stage.maps(seen)], ("cross", 0)).bytes))
    results = []
    for name, values in curves.items():
        unit, scale = ("ms", 1e3) if name in {"bare pass", "trace"} else ("kB", 1e-3)
        points = ", ".join(f"{n}: {value * scale:,.0f}" for n, value in zip(sizes, values, strict=True))
        slope, steepest = slopes(sizes, values)
        results += [
            Result("growth", f"{name}: slope from {sizes[0]} to {sizes[-1]} pieces", slope, "", note=points),
            Result("growth", f"{name}: steepest doubling", steepest, "", 2.6, note=unit),
        ]
    return results


def slopes(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Of a curve on log axes: the slope of its line of best fit, and the largest between neighbours."""
    x, y = np.log(sizes), np.log(values)
    return float(np.polyfit(x, y, 1)[0]), float((np.diff(y) / np.diff(x)).max())


def arrays(trace: Trace) -> int:
    """Bytes of all numbers that a trace holds."""
    parts: list[object] = [trace]
    for each in (trace.attention, trace.sublayers, trace.feeds, trace.embeddings):
        parts += each.values()
    return sum(
        value.nbytes for part in parts for value in vars(part).values() if isinstance(value, np.ndarray)
    )


def measure(quick: bool = False) -> list[Result]:
    """All of it on one thread, as the app computes unless it is told otherwise."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        repeats = 5 if quick else REPEATS
        results = sentence(repeats) + tracing(repeats) + decoding(repeats)
        results += growth(2 if quick else 8)
    finally:
        torch.set_num_threads(threads)
    return results
