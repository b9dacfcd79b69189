"""Survey the heads of a model on sentences it never trained on: `python -m model.survey --pairs FILE`.

FILE and --seed as in training: only what it held out is read, the first French answer of each English
sentence. For every head: how wide and how far it looks, which simple rules it follows and how often, and
what its absence costs: the loss when its output is 0, and when its weights are replaced by an even row,
each less the loss of the whole model. Stopped, it goes on where it was; the results do not depend on that,
nor on the number of processes.
"""

import argparse
import hashlib
import json
import math
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

import model
from model import heads, words
from model.attention import Rule
from model.checkpoint import WEIGHTS
from model.config import PAD
from model.decoding import padded
from model.heads import Tally, all_heads
from model.masks import rules
from model.reader import MODELS
from model.trace import KINDS, NEUTRAL, Change, Floats, Head, Kind
from model.training import corpus
from model.translator import Translator

RESULT = "heads.json"
BATCH = 64
CHUNK = 100  # sentences traced in one job
RANDOM_SEED = 0

Numbers = NDArray[np.float64]
Loss = Literal["removed", "uniform"]
LOSSES: tuple[Loss, ...] = ("removed", "uniform")


@dataclass(frozen=True)
class Job:
    """One thing to compute: a head's loss, or the measures of some sentences."""

    name: str
    change: Change | None = None
    start: int = 0


def jobs(translator: Translator, sentences: int) -> list[Job]:
    config = translator.model.config
    found = [Job(f"measures {start}", start=start) for start in range(0, sentences, CHUNK)]
    for head in all_heads(config.n_layers, config.n_heads):
        for loss in LOSSES:
            change = replace(NEUTRAL, **{loss: frozenset({head})})  # type: ignore[arg-type]
            found.append(Job(f"{loss} {head.kind} {head.layer} {head.head}", change))
    return found


# --- losses -----------------------------------------------------------------------------------------------


@torch.inference_mode()
def losses(translator: Translator, pairs: Sequence[corpus.Pair], change: Change) -> tuple[Numbers, Numbers]:
    """(N,) each: -log p of each whole target, summed over its pieces, and how many pieces it has."""
    encoded = [(translator.tokenizer.source(p.source), translator.tokenizer.target(p.target)) for p in pairs]
    order = sorted(range(len(encoded)), key=lambda index: tuple(map(len, encoded[index])))
    total, pieces = np.zeros(len(encoded)), np.zeros(len(encoded))
    device = torch.device("cpu")
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        source = padded([encoded[index][0] for index in batch], device)
        target = padded([encoded[index][1] for index in batch], device)
        logits = translator.model(source, target[:, :-1], change)
        wanted = target[:, 1:]
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        each = each * (wanted != PAD)
        total[batch] = each.double().sum(dim=1).numpy()
        pieces[batch] = (wanted != PAD).sum(dim=1).numpy()
    return total, pieces


@torch.inference_mode()
def costs(translator: Translator, text: str, target: str, loss: Loss) -> Floats:
    """(3, L, H), kinds as in `KINDS`: what each head's absence, or evenness, adds to the loss of one pair.

    The mean -log p of the target's pieces under the change, less that of the whole model. All changes are
    one batch: a row of it is the same sentence, with one head changed. A trace must have judged the pair.
    """
    config = translator.model.config
    trace_source, trace_target = translator.tokenizer.source(text), translator.tokenizer.target(target)
    places = all_heads(config.n_layers, config.n_heads)
    source = torch.tensor([trace_source]).expand(len(places) + 1, -1)  # the last row is the whole model
    goes_in = torch.tensor([trace_target[:-1]]).expand(len(places) + 1, -1)
    wanted = torch.tensor(trace_target[1:])
    paper = rules(source, goes_in, config)

    def changed(kind: Kind, of: Sequence[Rule]) -> tuple[Rule, ...]:
        made = []
        for layer, rule in enumerate(of):
            chosen = torch.zeros(len(source), config.n_heads, 1, 1, dtype=torch.bool)
            for row, place in enumerate(places):
                chosen[row, place.head] = (place.kind, place.layer) == (kind, layer)
            made.append(
                replace(rule, keep=(~chosen).float()) if loss == "removed" else replace(rule, uniform=chosen)
            )
        return tuple(made)

    governed = paper._replace(
        encoder=changed("encoder", paper.encoder),
        decoder=changed("decoder", paper.decoder),
        cross=changed("cross", paper.cross),
    )
    memory = translator.model.keys_values(translator.model.encode(source, governed).memory)
    hidden = translator.model.decode(goes_in, memory, governed).hidden
    logs = translator.model.logits(hidden).log_softmax(dim=-1)
    means = -logs[:, torch.arange(len(wanted)), wanted].mean(dim=1)
    found: Floats = (means[:-1] - means[-1]).view(len(KINDS), config.n_layers, config.n_heads).numpy()
    return found


def per_piece(differences: Numbers, pieces: Numbers) -> tuple[float, float]:
    """A mean over pieces and its standard error, sentences being what was drawn.

    The ratio of two sums over sentences: its error comes from how far each sentence is from the ratio.
    """
    ratio = differences.sum() / pieces.sum()
    rest = differences - ratio * pieces
    spread = math.sqrt((rest**2).sum() * len(rest) / max(1, len(rest) - 1))
    return float(ratio), float(spread / pieces.sum())


# --- jobs in processes ------------------------------------------------------------------------------------


@dataclass
class _Worker:
    translator: Translator
    pairs: Sequence[corpus.Pair]
    base: tuple[Numbers, Numbers] | None = None  # the whole model's losses


_worker: _Worker


def _start(folder: str, pairs: Sequence[corpus.Pair]) -> None:
    global _worker
    torch.set_num_threads(1)  # the sums of one thread come in one order
    _worker = _Worker(model.translator_of(folder), pairs)


def _run(job: Job) -> dict[str, Any]:
    if job.change is not None:
        _worker.base = _worker.base or losses(_worker.translator, _worker.pairs, NEUTRAL)
        whole, pieces = _worker.base
        changed, _pieces = losses(_worker.translator, _worker.pairs, job.change)
        value, error = per_piece(changed - whole, pieces)
        return {"name": job.name, "loss": value, "error": error, "whole": whole.sum() / pieces.sum()}
    chunk = _worker.pairs[job.start : job.start + CHUNK]
    tallies = tally(_worker.translator, chunk)
    return {"name": job.name, "tallies": {name: _plain(tally) for name, tally in tallies.items()}}


def tally(translator: Translator, pairs: Sequence[corpus.Pair]) -> dict[str, Tally]:
    """What the heads of each kind did over some pairs; and under "random encoder", ..., a random head."""
    found: dict[str, Tally] = {}
    for pair in pairs:
        trace = translator.trace(pair.source, pair.target)
        for prefix, one in (("", trace), ("random ", heads.randomised(trace, RANDOM_SEED))):
            for kind in KINDS:
                counted = Tally.of(one, kind)
                if prefix + kind in found:
                    found[prefix + kind].add(counted)
                else:
                    found[prefix + kind] = counted
    return found


def _plain(tally: Tally) -> dict[str, Any]:
    return {
        part: {name: [np.asarray(x, float).tolist() for x in pair] for name, pair in of.items()}
        for part, of in asdict(tally).items()
    }


# --- the result -------------------------------------------------------------------------------------------


def _sum(measured: Sequence[dict[str, Any]], kind: str) -> dict[str, Numbers]:
    """(L, H) of each measure and role of a kind: the mean over all rows of all sentences."""
    sums: dict[str, Any] = {}
    for one in measured:
        for part in one["tallies"][kind].values():
            for name, (total, rows) in part.items():
                before = sums.get(name, (0.0, 0.0))
                sums[name] = before[0] + np.array(total), before[1] + np.array(rows)
    return {name: total / np.maximum(rows, 1) for name, (total, rows) in sums.items()}


def aligned(translator: Translator, random_head: bool = False) -> dict[heads.Role, Numbers]:
    """(L, H): the share of the French words of the gold set whose favourite is a possible link.

    (1, 1) for a random head instead.
    """
    sums: dict[heads.Role, Any] = {}
    gold = {corpus.Pair(pair.english, pair.french): pair for pair in words.read_gold()}
    for pair in (gold[one] for one in readable(translator, list(gold))):
        trace = translator.trace(pair.english, pair.french)
        trace = heads.randomised(trace, RANDOM_SEED) if random_head else trace
        for role in heads.READING:
            hits, rows = heads.aligned(trace, role, pair.possible)
            before = sums.get(role, (0, 0))
            sums[role] = before[0] + hits, before[1] + rows
    return {role: hits / rows for role, (hits, rows) in sums.items()}


def result(done: dict[str, dict[str, Any]], translator: Translator, sentences: int) -> dict[str, Any]:
    """Everything in one value for JSON: for each kind a list of heads, and a random head."""
    config = translator.model.config
    measured = [one for name, one in sorted(done.items()) if "tallies" in one]
    links = aligned(translator)
    means = {kind: _sum(measured, kind) for kind in KINDS}
    means["cross"] |= {str(role): share for role, share in links.items()}
    random_means = {kind: _sum(measured, f"random {kind}") for kind in KINDS}
    random_means["cross"] |= {str(role): share for role, share in aligned(translator, True).items()}
    whole = {one["whole"] for one in done.values() if "whole" in one}
    found: dict[str, Any] = {
        "sentences": sentences,
        "loss": round(max(whole), 5),
        "heads": [_head(head, means[head.kind], done) for head in all_heads(config.n_layers, config.n_heads)],
        "random": {
            kind: {name: round(float(x[0, 0]), 4) for name, x in random_means[kind].items()} for kind in KINDS
        },
    }
    return found


def _head(head: Head, means: dict[str, Numbers], done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    values = {name: round(float(of[head.layer, head.head]), 4) for name, of in means.items()}
    costs: dict[str, float] = {}
    for loss in LOSSES:
        one = done[f"{loss} {head.kind} {head.layer} {head.head}"]
        costs |= {loss: round(one["loss"], 5), f"{loss}_error": round(one["error"], 5)}
    return {**asdict(head), **values, **costs}


def load(folder: Path) -> dict[str, Any] | None:
    """The shipped survey of a model; None where it has none."""
    path = folder / RESULT
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def readable(translator: Translator, pairs: Sequence[corpus.Pair]) -> Iterator[corpus.Pair]:
    """The first answer of each English sentence, where the model can read both."""
    seen = set()
    for pair in pairs:
        if pair.source in seen:
            continue
        seen.add(pair.source)
        most = translator.model.config.max_pieces
        sizes = map(len, (translator.tokenizer.ids(pair.source), translator.tokenizer.ids(pair.target)))
        if max(sizes) < most:
            yield pair


def _ran(
    left: Sequence[Job], workers: int, folder: str, pairs: Sequence[corpus.Pair]
) -> Iterator[dict[str, Any]]:
    """The results, in the order in which they come."""
    if not workers:
        _start(folder, pairs)
        yield from map(_run, left)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _start, (folder, pairs)) as pool:
        for future in as_completed([pool.submit(_run, job) for job in left]):
            yield future.result()


def survey(folder: Path, pairs: Sequence[corpus.Pair], notes: Path, workers: int) -> dict[str, Any]:
    """Run what `notes` does not hold yet, note each job when it is done, and put it together.

    `notes` begins with a line that says what it is about; notes on anything else are begun anew.
    """
    translator = model.translator_of(folder)
    pairs = list(readable(translator, pairs))
    about = hashlib.sha256((folder / WEIGHTS).read_bytes())
    about.update(repr(pairs).encode())
    title = json.dumps({"about": about.hexdigest()})
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    done: dict[str, dict[str, Any]] = {}
    if lines[:1] == [title]:
        for line in lines[1:]:
            try:
                done[json.loads(line)["name"]] = json.loads(line)
            except (ValueError, KeyError):
                continue  # a kill in the middle of a line
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text("\n".join([title, *map(json.dumps, done.values())]) + "\n", encoding="utf-8")
    wanted = jobs(translator, len(pairs))
    left = [job for job in wanted if job.name not in done]
    with notes.open("a", encoding="utf-8") as file:
        for one in tqdm(_ran(left, workers, str(folder), pairs), total=len(left)):
            done[one["name"]] = one
            file.write(json.dumps(one) + "\n")
            file.flush()
    return result(done, translator, len(pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--seed", type=int, default=1, help="of the training, which held the sentences out")
    parser.add_argument("--held-out", type=int, default=1500)
    parser.add_argument("--sentences", type=int, help="only so many of them, drawn at random")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0: none besides this one")
    parser.add_argument("--notes", type=Path, default=Path("runs"), help="where half a survey is kept")
    arguments = parser.parse_args()
    folder = MODELS / arguments.model if (MODELS / arguments.model).is_dir() else Path(arguments.model)
    held_out = corpus.split(corpus.read_pairs(arguments.pairs), arguments.held_out, arguments.seed)[1]
    firsts = list({pair.source: pair for pair in reversed(held_out)}.values())[::-1]
    if arguments.sentences:  # they stand in the order of the alphabet
        firsts = random.Random(arguments.seed).sample(firsts, min(arguments.sentences, len(firsts)))
    notes = arguments.notes / f"survey-{folder.name}.jsonl"
    digest = hashlib.sha256(arguments.pairs.read_bytes()).hexdigest()
    about = {"corpus_sha256": digest, "seed": arguments.seed, "held_out": arguments.held_out}
    found = about | survey(folder, firsts, notes, arguments.workers)
    lines = json.dumps(found).replace('[{"kind"', '[\n{"kind"').replace('}, {"kind"', '},\n{"kind"')
    (folder / RESULT).write_text(lines + "\n", encoding="utf-8")
    print(f"{folder / RESULT}: {found['sentences']} sentences, loss {found['loss']}")


if __name__ == "__main__":
    main()
