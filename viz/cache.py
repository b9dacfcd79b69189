"""All memory of the app, and its only way to the model: a line in front, a bounded store behind."""

import gc
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

import model
from model import align, checkpoint, counts, experiments, files, hub, norms, quality, sampling, survey, words
from model import costs as layer_costs
from model import lengths as model_lengths
from model.config import UNSAID, Config
from model.reader import MODELS
from model.trace import NEUTRAL, Change, Floats, Head, Kind, Side, Trace
from model.training import history
from model.transformer import Transformer
from model.translator import Translator
from viz import elsewhere
from viz.line import FullError, Line
from viz.reading import loss
from viz.sizes import Offer, Sizes
from viz.text import _
from viz.warmup import warmup

MODEL, CHEATER = "en-fr", "cheater"
FILE = "file-"  # how the name of a model begins that is a file
SHIPPED = (MODEL, "rnn-attention", "rnn", "gpt", "bert")  # as they are offered
THREADS = 1  # of torch in a process: with two, beside another busy process, a trace took ten times as long
WORKERS = 2  # passes at a time: a long one holds up no other reader
STORED = 192 * 2**20  # bytes of traces that a process keeps
FORGET = 900.0  # seconds after which a trace that nobody asked for again is dropped

turns = experiments.turns
masked_softmax = experiments.masked_softmax  # cheaper than a look into a cache
_log = logging.getLogger("headlight")
T = TypeVar("T")
Target = str | tuple[int, ...] | None  # a text to be forced, or ids, or which pieces to hide


class UnreadyError(RuntimeError):
    """The model cannot answer; says why, in a sentence for the reader."""


class BusyError(UnreadyError):
    """Nor can it now, but soon."""


# --- what is kept -----------------------------------------------------------------------------------------


class Store:
    """Read-only values by key, bounded by their bytes: what nobody asked for longest is dropped first.

    Nothing is copied: a trace is frozen, and all readers share it. A key is made once; who asks for it
    meanwhile waits for the same answer. A failure is not kept.
    """

    def __init__(self, most: int, forget: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.forget, self._clock = most, forget, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, tuple[Any, int, float]] = (
            OrderedDict()
        )  # value, bytes, last asked for
        self._coming: dict[object, Future[Any]] = {}
        self.size = 0

    def get(self, key: object, make: Callable[[], T]) -> T:
        with self._lock:
            self._drop()
            if key in self._kept:
                found: T
                found, size, _asked_for = self._kept.pop(key)
                self._kept[key] = found, size, self._clock()
                return found
            coming = self._coming.get(key)
            mine: Future[Any] = Future()
            if coming is None:
                self._coming[key] = mine
        if coming:
            shared: T = coming.result()
            return shared
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._coming[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._coming[key]
            self._kept[key] = value, nbytes(value), self._clock()
            self.size += nbytes(value)
            self._drop()
        mine.set_result(value)
        return value

    def _drop(self) -> None:
        while self._kept:
            key, (_value, size, asked_for) = next(iter(self._kept.items()))
            if self.size <= self.most and self._clock() - asked_for <= self.forget:
                return
            del self._kept[key]
            self.size -= size


def nbytes(value: object) -> int:
    """The bytes of all arrays in a dataclass, those in its mappings too."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(nbytes, value.values()))
    if is_dataclass(value):
        return sum(nbytes(getattr(value, field.name)) for field in fields(value))
    return 0


class Door(Protocol):
    """What every model can be asked; the rest only some can, see `skills`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> Any: ...

    @property
    def tokenizer(self) -> Any: ...

    def trace(self, text: str, target: Any = None, change: Change = NEUTRAL) -> Trace: ...

    def translate(self, text: str) -> str: ...

    def search(self, text: str, beam: int) -> sampling.Search: ...

    def sample(self, text: str, lot: sampling.Lot, seeds: tuple[int, ...]) -> list[tuple[int, ...]]: ...


_store = Store(STORED, FORGET)
_line = Line(WORKERS)


# --- the way to the model ---------------------------------------------------------------------------------


def warm() -> str:
    """Check and load the weights, pay for what a first pass sets up. Says in a line why it failed, or ""."""
    import viz.pages  # noqa: F401  plotly, pandas and all that a page imports

    model.threads(THREADS)
    try:
        _load(MODEL).trace("I am a student.")
    except checkpoint.CheckpointError as error:
        _log.error("the model did not load: %s", error)
        return f"the model did not load: {error}".splitlines()[0]
    # What came until now stays for good: no collection of garbage need look through it again.
    gc.collect()
    gc.freeze()
    return ""


_loading = threading.Lock()


@cache
def _loaded(name: str) -> Door:
    if name in (*SHIPPED, CHEATER):
        return cast(Door, model.load(name))
    keeper = hub.settings()
    place = st.empty()  # what is said of the loading goes away with it
    with place.status(_("{name} is being loaded.").format(name=name)):
        bar = st.progress(0.0)

        def progress(step: str, share: float) -> None:
            bar.progress(min(max(share, 0.0), 1.0), text=elsewhere.step(step))

        try:
            found = hub.load(name, keeper.allow, keeper.cache, progress, keeper.limit)
        except hub.RefusedError as error:
            said = _("{name} is not opened: {why}").format(name=name, why=elsewhere.refused(error.code))
            raise UnreadyError(f"{said} ({error})") from error
        finally:
            place.empty()
    return cast(Door, found)


def _load(name: str) -> Door:
    with _loading:  # `cache` alone would let two threads load at once
        return _loaded(name)


def models() -> tuple[Offer, ...]:
    """The models that are offered, the usual one first."""
    notes = {
        MODEL: _("The translator of this app: the paper's Transformer, smaller."),
        "rnn-attention": _("The same with the first attention: what the Transformer replaced."),
        "rnn": _("No attention: all of a sentence must fit one vector."),
        "gpt": _("Continues an English beginning."),
        "bert": _("Guesses hidden English pieces from both sides."),
    }
    found = []
    for name in SHIPPED:
        try:
            of = config(name)
        except UnreadyError:
            if name == MODEL:  # whose page says what is wrong; any other is not offered
                found.append(Offer(name, *UNSAID, notes[name]))
        else:
            found.append(Offer(name, of.shape, of.material, notes[name]))
    return tuple(found)


def allowed() -> tuple[str, ...]:
    """The models of `transformers` that this server's administrator allows, by name."""
    return tuple(hub.offered(hub.settings().allow))


def keep_file(name: str, content: bytes) -> str:
    """Read a file with attention and keep what it holds; returns the name of the model that it now is.

    It is kept as long as a trace is, for whoever has the link, and for nobody else: the name is drawn from
    the whole content. Raises files.FileError.
    """
    called = FILE + blake2b(name.encode() + b"\0" + content, digest_size=15).hexdigest()
    _store.get(called, lambda: files.read(name, content))
    return called


def _kept(name: str) -> Door:
    def gone() -> Trace:
        raise UnreadyError(
            _("This file is no longer held by the server. On the page Models it can be put in again.")
        )

    return cast(Door, files.Recorded(name, _store.get(name, gone)))


@cache
def config(name: str = MODEL) -> Config:
    """The sizes of a model, before it is loaded. Raises UnreadyError, and tries again the next time."""
    try:
        return Config.load(MODELS / name / checkpoint.CONFIG)
    except (OSError, ValueError, TypeError) as error:
        raise UnreadyError(_unready()) from error


def sizes(name: str = MODEL) -> Sizes:
    """What a model offers to the controls. Raises UnreadyError."""
    if name not in SHIPPED:
        return _outside(name)
    of = config(name)
    both: dict[Side, str] = {"source": "en", "target": "fr"}
    sides: dict[str, dict[Side, str]] = {"decoder": {"target": "en"}, "encoder": {"source": "en"}}
    every = dict.fromkeys(of.kinds, (of.n_layers, of.n_heads))
    return Sizes(name, every, of.max_pieces, of.shape, sides.get(of.shape, both), of.shape == "encoder")


def _outside(name: str) -> Sizes:
    """The sizes of a file, or of a model from elsewhere, which has to be loaded for that."""
    of: Any = door(name)
    shape = "encoder-decoder" if "cross" in of.kinds else next(iter(of.kinds), "encoder")
    recorded = isinstance(of, files.Recorded)
    named = of.recorded.languages if recorded else of.languages
    return Sizes(name, of.kinds, of.max_pieces, shape, named, asked=not recorded)


def changes(name: str) -> bool:
    """Whether a model can be asked again under a `Change`."""
    if name in SHIPPED:
        return True
    return bool(getattr(door(name), "changes", ()))


def skills(name: str) -> frozenset[str]:
    """What a model's door can do beyond a trace: "search", "sample"; "model" where its weights lie open."""
    return frozenset(skill for skill in ("search", "sample", "model") if hasattr(door(name), skill))


def ready() -> bool:
    """Whether the model can answer, without waiting for it. Begins the warm-up unless it has begun."""
    warmup.start()
    return warmup.ended and not warmup.failure


def door(name: str = MODEL) -> Door:
    """One read-only model for all sessions. Waits for the warm-up. Raises UnreadyError."""
    if not warmup.ended:
        with st.spinner(_("The model is being loaded.")):
            warmup.wait()
    if name.startswith(FILE):
        return _kept(name)
    if warmup.failure:
        raise UnreadyError(_unready())
    try:
        return _load(name)
    except checkpoint.CheckpointError as error:  # another model than that of the warm-up
        _log.error("a model did not load: %s", error)
        raise UnreadyError(_unready()) from error


def _unready() -> str:
    return _("The trained model cannot be read on this server. Its keeper finds the reason at /readyz.")


def _asked(work: Callable[[], T]) -> T:
    """The answer of `work`, in its turn among all readers. Raises BusyError."""
    context = get_script_run_ctx(suppress_warning=True)
    try:
        return _line.ask(context.session_id if context else "", work)
    except FullError as error:
        said = _("Very many readers are asking this server just now. Try again in a few seconds.")
        raise BusyError(said) from error


def trace(name: str, text: str, target: Target = None, change: Change = NEUTRAL) -> Trace:
    """The trace of a sentence: a step to another layer or head runs no model.

    Raises TextError and UnreadyError. The key is all that goes in, so that nobody is shown what another
    reader typed, but by typing the same.
    """
    of = door(name)
    key = ("trace", name, text, target, change)
    return _store.get(key, lambda: _asked(lambda: of.trace(text, target, change)))


# --- what else pages ask for ------------------------------------------------------------------------------


@st.cache_data(max_entries=64, show_spinner=False)
def projections(name: str, kind: Kind, layer: int, head: int) -> experiments.Projections:
    """The learned matrices of one head."""
    return experiments.projections(door(name).model, kind, layer, head)


@st.cache_data(max_entries=256, show_spinner=False)
def random_head(d_k: int, seed: int) -> experiments.RandomHead:
    """Random queries and keys of one width."""
    return experiments.random_head(d_k, seed)


def time_scores(d_k: int) -> experiments.Timing:
    """Dot product against additive attention on this machine, now: not kept."""
    return _asked(lambda: experiments.time_scores(d_k))


@st.cache_data(max_entries=8, show_spinner=False)
def encoding(count: int, d_model: int) -> Floats:
    """The encodings (N, D) of the positions 0 to `count` - 1."""
    return experiments.encoding(count, d_model)


def longest(name: str = MODEL) -> int:
    """The most pieces that a sentence of the training had."""
    return sizes(name).pieces


# --- training ---------------------------------------------------------------------------------------------

smoothed_loss, smoothed_curve = experiments.smoothed_loss, experiments.smoothed_curve
smoothed_floor, smoothed_target = experiments.smoothed_floor, experiments.smoothed_target
PLACES = experiments.PLACES  # where dropout may stand
count, tally, shared = quality.count, quality.tally, quality.shared


def _beside(read: Callable[[], T | None]) -> T | None:
    """What is only shown, from a file without a checksum; None where it is missing or damaged."""
    try:
        return read()
    except FileNotFoundError:
        return None
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        _log.error("a file beside a model cannot be read: %r", error)
        return None


@cache
def curves(name: str = MODEL) -> history.Curves | None:
    """What the run logged; None where it was not kept."""
    found = _beside(lambda: history.read(MODELS / name / "history.csv"))
    return found if found is not None and len(found.steps) else None


def snapshots(name: str = MODEL) -> tuple[int, ...]:
    """The steps at which the weights were kept, those that are shipped last."""
    kept, logged = checkpoint.snapshots(MODELS / name), curves(name)
    return (*kept, int(logged.steps[-1])) if logged else tuple(kept)


@st.cache_resource(max_entries=6, show_spinner=False)
def snapshot(name: str, step: int) -> Door:
    """The model as it was at `step`. All of a run's fit: each new sentence asks every one of them.

    Raises UnreadyError.
    """
    whole = door(name)
    if step == snapshots(name)[-1]:
        return whole
    try:
        old = cast(Transformer, checkpoint.load_snapshot(MODELS / name, step))
        return Translator(f"{name}, step {step}", old, whole.tokenizer)
    except checkpoint.CheckpointError as error:
        _log.error("a snapshot did not load: %s", error)
        raise UnreadyError(_unready()) from error


def trace_at(name: str, step: int, text: str, target: str | None) -> Trace:
    """The trace over `target` as the model was at `step`. Raises TextError and UnreadyError."""
    of = snapshot(name, step)
    return _store.get(("trace_at", name, step, text, target), lambda: _asked(lambda: of.trace(text, target)))


@st.cache_data(max_entries=512, show_spinner=False)
def translation_at(name: str, step: int, text: str) -> str:
    """What the model wrote by itself at `step`. Raises TextError and UnreadyError."""
    of = snapshot(name, step)
    return _asked(lambda: of.translate(text))


def dropped(
    name: str, text: str, target: str | None, places: tuple[experiments.Place, ...], rate: float, seed: int
) -> Trace:
    """The trace over `target` with dropout at `places`, as in training. Raises TextError and UnreadyError."""
    whole = door(name)

    def work() -> Trace:
        model_ = experiments.with_dropout(whole.model, places, rate, seed)
        return Translator(name, model_, whole.tokenizer).trace(text, target)

    return _store.get(("dropped", name, text, target, places, rate, seed), lambda: _asked(work))


# --- decoding ---------------------------------------------------------------------------------------------

Lot = sampling.Lot
shares = sampling.shares


@st.cache_data(max_entries=64, show_spinner=False)
def search(name: str, text: str, beam: int) -> sampling.Search:
    """A beam search with all that it considered. Raises TextError and UnreadyError."""
    of = door(name)
    return _asked(lambda: of.search(text, beam))


@st.cache_data(max_entries=128, show_spinner=False)
def sample(
    name: str, text: str, temperature: float, top_k: int, top_p: float, seeds: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """The ids of one translation by lot for each seed. Raises TextError and UnreadyError."""
    of = door(name)
    return _asked(lambda: of.sample(text, Lot(temperature, top_k, top_p), seeds))


def trace_of(name: str, text: str, ids: tuple[int, ...]) -> Trace:
    """The trace over what a beam or a lot chose. Raises TextError and UnreadyError."""
    of = door(name)
    return _store.get(("trace_of", name, text, ids), lambda: _asked(lambda: of.trace(text, ids)))


def piece(name: str, id_: int) -> str:
    """The piece of an id, as a reader knows it."""
    return door(name).tokenizer.piece(id_).text


def written(name: str, ids: tuple[int, ...]) -> str:
    """The text of ids."""
    return door(name).tokenizer.decode(ids)


@cache
def lengths() -> tuple[model_lengths.Band, ...]:
    """BLEU of every translator by the length of the sentence; nothing where it was not measured."""
    return _beside(model_lengths.read) or ()


# --- heads ------------------------------------------------------------------------------------------------


@st.cache_data(max_entries=4, show_spinner=False)
def surveyed(name: str = MODEL) -> dict[str, Any] | None:
    """What `python -m model.survey` found of every head; None where it is not shipped."""
    return _beside(lambda: survey.load(MODELS / name)) or None


@st.cache_data(max_entries=4, show_spinner=False)
def alignment(name: str = MODEL) -> dict[str, Any] | None:
    """What `python -m model.align` found against the gold set; None where not shipped."""
    return _beside(lambda: align.load(MODELS / name)) or None


gold = cache(words.read_gold)  # the pairs with links drawn by hand


def costs(name: str, text: str, target: Target, way: survey.Loss) -> dict[Kind, Floats]:
    """(L, H) of each kind: what each head's removal or evenness adds to the loss. Raises UnreadyError."""
    of = door(name)

    def work() -> dict[Kind, Floats]:
        if isinstance(of, Translator) and target is not None:
            french = target if isinstance(target, str) else of.tokenizer.decode(target)
            return dict(zip(of.model.config.kinds, survey.costs(of, text, french, way), strict=True))
        whole = loss(of.trace(text, target))
        found: dict[Kind, Floats] = {}
        for kind, (layers, heads) in sizes(name).kinds.items():
            found[kind] = np.zeros((layers, heads), np.float32)
            for layer, head in np.ndindex(layers, heads):
                one = frozenset({Head(kind, layer, head)})
                changed = Change(removed=one) if way == "removed" else Change(uniform=one)
                found[kind][layer, head] = loss(of.trace(text, target, changed)) - whole
        return found

    return _store.get(("costs", name, text, target, way), lambda: _asked(work))


# --- why --------------------------------------------------------------------------------------------------

table1, parameters = layer_costs, counts
layer_norm, batch_norm = norms.layer_norm, norms.batch_norm


def measured(run: layer_costs.Run, of: layer_costs.Sizes) -> layer_costs.Measured | None:
    """A layer run on this machine, in its turn, and kept for a while; None where it is too long to be tried.

    Raises BusyError.
    """
    if not layer_costs.fits(run, of):
        return None
    model.threads(THREADS)  # the warm-up, which does it too, may not have ended
    of = layer_costs.relevant(run, of)
    return _store.get(("measured", run, of), lambda: _asked(lambda: layer_costs.measure(run, of)))


def flow(
    name: str, step: int, source: tuple[int, ...], target: tuple[int, ...], change: Change
) -> norms.Flow:
    """What flows through the model as it was at `step`, forward and back. Raises UnreadyError."""
    of = snapshot(name, step)
    key = ("flow", name, step, source, target, change)
    return _store.get(key, lambda: _asked(lambda: norms.flow(of.model, source, target, change)))
