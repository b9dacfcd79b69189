"""A first look at a model that was just loaded: one short pass, and what it tells of all that come.

Which attentions run, in which order, of which kind and with how many heads is seen, not read out of a
configuration. What cannot be followed, or does not weigh its keys to 1, is refused here.
"""

from collections.abc import Sequence
from typing import Any

import torch

from model.hub.door import HubModel
from model.hub.engine import CLOSE, Engine, handed_over, whole
from model.hub.refusal import RefusedError
from model.hub.seeing import NAME as OURS
from model.hub.seeing import Call, Watch, watching
from model.hub.vocabulary import Vocabulary
from model.trace import KINDS, Kind, asked, asks

MOST_PIECES = 512
MOST_BYTES = 256 * 2**20  # that a trace may take: its maps and its log-probabilities
SOURCE, TARGET = 7, 5  # pieces of the first look; of different number, so that shapes tell the kinds


def look(name: str, model: Any, tokenizer: Any) -> HubModel | None:
    """The door into a model and its tokenizer. Raises RefusedError where it cannot be looked into.

    None where its attention was to run through ours and did not.
    """
    vocabulary = Vocabulary(tokenizer)
    both = bool(model.config.is_encoder_decoder) and hasattr(model, "get_decoder")
    start = _setting(model, "decoder_start_token_id", model.config, tokenizer) if both else None
    if both and start is None:
        start = vocabulary.pad
    try:
        tried = _tried(model, vocabulary, both)
    except RefusedError:
        raise
    except Exception as error:
        raise RefusedError("architecture", "this model does not read a text as others do") from error
    if tried is None:
        return None
    kinds, encodes, decodes, calls, logits = tried
    sizes = {kind: (layers, heads) for kind, (layers, heads, _key_heads) in kinds.items()}
    predicts = logits is not None and logits.size(-1) >= len(tokenizer) // 2
    engine = Engine(
        model=model,
        kinds=tuple(sizes),
        encodes=encodes,
        decodes=decodes,
        pad=vocabulary.pad,
        start=start,
        first=_setting(model, "forced_bos_token_id", model.config),
        ends=_ends(model, tokenizer),
        never=_never(model, vocabulary),
    )
    rows = logits.size(-1) if predicts and logits is not None else 0
    return HubModel(
        name=name,
        engine=engine,
        vocabulary=vocabulary,
        family=str(model.config.model_type),
        kinds=sizes,
        key_heads={kind: key_heads for kind, (_layers, _heads, key_heads) in kinds.items()},
        predicts=predicts,
        dots=bool(calls) and all(call.dot for call in calls),
        rotary=bool(getattr(model.config, "rope_parameters", None)),
        max_pieces=_most(model, tokenizer, sizes, rows),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


@torch.inference_mode()
def _tried(
    model: Any, vocabulary: Vocabulary, both: bool
) -> (
    tuple[
        dict[Kind, tuple[int, int, int]], tuple[Kind, ...], tuple[Kind, ...], list[Call], torch.Tensor | None
    ]
    | None
):
    """(layers, heads, key heads) of each kind, the order of the calls, these, and the logits."""
    ordinary = [i for i in range(len(vocabulary.tokenizer)) if i not in vocabulary.special][: SOURCE + TARGET]
    if len(ordinary) < SOURCE:
        raise RefusedError("broken", "its vocabulary is too small to try")
    source = torch.tensor([ordinary[:SOURCE]])
    inputs = {"input_ids": source, "attention_mask": torch.ones_like(source)}
    if both:
        inputs["decoder_input_ids"] = torch.tensor([ordinary[-TARGET:]])
    if model.config._attn_implementation != OURS:
        return _handed_over(model, inputs, both)
    with watching(Watch()) as watch:
        out = model(**inputs)
    if not watch.calls:
        return None
    calls = watch.calls
    found = [_kind(call, both) for call in calls]
    for call in calls:
        _check(call)
    kinds: dict[Kind, tuple[int, int, int]] = {}
    for kind in KINDS:
        mine = [call for call, each in zip(calls, found, strict=True) if each == kind]
        shapes = {(call.weights.shape, call.q.shape, call.v.shape, call.key_heads) for call in mine}
        if len(shapes) > 1:
            raise RefusedError("architecture", "its layers have different numbers of heads")
        if mine:
            kinds[kind] = len(mine), mine[0].weights.size(0), mine[0].key_heads
    if both:
        stop = found.count("encoder")
        if found[:stop] != ["encoder"] * stop:
            raise RefusedError("architecture", "its encoder does not run before its decoder")
    else:
        if len(kinds) > 1:
            raise RefusedError("architecture", "some of its layers look ahead and others do not")
        stop = len(found) if "encoder" in kinds else 0
    return kinds, tuple(found[:stop]), tuple(found[stop:]), calls, getattr(out, "logits", None)


def _kind(call: Call, both: bool) -> Kind:
    queries, keys = call.weights.shape[-2:]
    if both and queries == TARGET:
        return "cross" if keys == SOURCE else "decoder"
    if both:
        return "encoder"
    return "encoder" if bool(call.allowed.triu(1).any()) else "decoder"


def _check(call: Call) -> None:
    """Weights are shares: none where nothing is allowed, and 1 in all."""
    sums = call.weights.sum(dim=-1)
    if not bool(((sums - 1).abs() < CLOSE).all()) or bool(call.weights[~call.allowed].any()):
        raise RefusedError("attention", "the weights of its attention are not shares that sum to 1")


def _handed_over(
    model: Any, inputs: dict[str, torch.Tensor], both: bool
) -> tuple[
    dict[Kind, tuple[int, int, int]], tuple[Kind, ...], tuple[Kind, ...], list[Call], torch.Tensor | None
]:
    """The same of a family whose attention does not run through ours, by what it hands over itself."""
    out = model(**inputs, output_attentions=True)
    weights: dict[Kind, torch.Tensor] = {}
    if both:
        weights = {kind: handed_over(out, kind, KINDS) for kind in KINDS}
    else:
        only = handed_over(out, "encoder", ())
        weights = {"encoder" if bool(only.triu(1).any()) else "decoder": only}
    for kind, maps in weights.items():
        queries = TARGET if both and asks(kind) == "target" else SOURCE
        whole(maps, queries, TARGET if both and asked(kind) == "target" else SOURCE)
    kinds = {kind: (maps.size(0), maps.size(1), maps.size(1)) for kind, maps in weights.items()}
    return kinds, (), (), [], getattr(out, "logits", None)


def _setting(model: Any, name: str, *more: Any) -> int | None:
    """A number that a model's settings for writing name, or its configuration."""
    for place in (getattr(model, "generation_config", None), *more):
        value = getattr(place, name, None)
        if isinstance(value, int):
            return value
    return None


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """The pieces that end a text, the tokenizer's own first."""
    found: list[int] = []
    told = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    for value in (tokenizer.eos_token_id, told, getattr(model.config, "eos_token_id", None)):
        found += value if isinstance(value, list) else [value] if isinstance(value, int) else []
    return tuple(dict.fromkeys(found))


def _never(model: Any, vocabulary: Vocabulary) -> tuple[int, ...]:
    """The pieces that must not be written: pads, and those that its settings forbid."""
    settings = getattr(model, "generation_config", None)
    words: Sequence[Sequence[int]] = getattr(settings, "bad_words_ids", None) or ()
    single = [word[0] for word in words if len(word) == 1]
    pad = vocabulary.tokenizer.pad_token_id
    ends = _ends(model, vocabulary.tokenizer)
    return tuple(dict.fromkeys(i for i in (pad, *single) if i is not None and i not in ends))


def _most(model: Any, tokenizer: Any, kinds: dict[Kind, tuple[int, int]], vocabulary: int) -> int:
    """The most pieces that a text may have: as many as it has positions for, and as a trace has room for."""
    names = ("max_position_embeddings", "n_positions", "n_ctx", "max_source_positions", "seq_length")
    told = [getattr(model.config, name, None) for name in names]
    most = min(
        [MOST_PIECES, int(tokenizer.model_max_length), *(n for n in told if isinstance(n, int) and n > 0)]
    )
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("embed_positions") or name.endswith("position_embeddings"):
            rows = getattr(module, "num_embeddings", None)
            if isinstance(rows, int) and isinstance(padding, int):
                most = min(most, rows - padding - 1)
    maps = sum(layers * heads for layers, heads in kinds.values())
    while most > 8 and 9 * maps * most**2 + 4 * vocabulary * most > MOST_BYTES:
        most -= 8
    return most
