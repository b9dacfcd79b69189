"""Small random models of every family, with a tokenizer of its own sort, as folders: for tests and parity.

Sizes are primes where the family allows, and no two are alike, so that no axis passes for another.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

FAMILIES = ("bert", "roberta", "distilbert", "gpt2", "llama", "t5", "marian", "bart")
VOCABULARY = 211
MASKED, BASE, GOES_ON, WRITES = "masked", "base", "goes on", "writes"
SENTENCES = (
    "I am a student.",
    "The cat looks at me.",
    "The dog is black and the cat is tired.",
    "She doesn't know where the school is.",
    "Le chat me regarde à l'école.",
    "Seán and Zoë have seen the dog today.",
    "What a lovely day it is, they said again and again!",
)


Maker = Callable[[Any, dict[str, Any]], Any]  # of transformers and settings a model


def save(family: str, folder: Path, seed: int = 0, **more: Any) -> Path:
    """Write a random model of a family, one of FAMILIES, into `folder`."""
    return write(_MAKERS[family], family, folder, seed, **more)


def write(make: Maker, like: str, folder: Path, seed: int = 0, **more: Any) -> Path:
    """Write any random model into `folder`, with a tokenizer like that of one of FAMILIES."""
    import transformers

    transformers.logging.disable_progress_bar()
    tokenizer = tokenizer_of(like)
    ids = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("pad", "bos", "eos")
        if getattr(tokenizer, f"{name}_token_id") is not None
    }
    torch.manual_seed(seed)
    model = make(transformers, {"vocab_size": len(tokenizer), **ids, **more})
    model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # sharper than fresh ones, so that heads differ
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))  # no gain is 1 and no bias 0
            elif not (like == "marian" and "embed_positions" in name):  # which are sines
                parameter.mul_(0.3 / parameter.std().clamp(min=1e-3))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _bert(t: Any, settings: dict[str, Any]) -> Any:
    config = t.BertConfig(
        hidden_size=22, num_hidden_layers=3, num_attention_heads=2, intermediate_size=23,
        max_position_embeddings=61, **settings,
    )  # fmt: skip
    return t.BertForMaskedLM(config)


def _roberta(t: Any, settings: dict[str, Any]) -> Any:
    config = t.RobertaConfig(
        hidden_size=22, num_hidden_layers=3, num_attention_heads=2, intermediate_size=23,
        max_position_embeddings=63, type_vocab_size=1, **settings,
    )  # fmt: skip
    return t.RobertaForMaskedLM(config)


def _distilbert(t: Any, settings: dict[str, Any]) -> Any:
    config = t.DistilBertConfig(
        dim=22, n_layers=3, n_heads=2, hidden_dim=23, max_position_embeddings=61, **settings
    )
    return t.DistilBertForMaskedLM(config)


def _gpt2(t: Any, settings: dict[str, Any]) -> Any:
    config = t.GPT2Config(n_embd=22, n_layer=3, n_head=2, n_inner=23, n_positions=61, **settings)
    return t.GPT2LMHeadModel(config)


def _llama(t: Any, settings: dict[str, Any]) -> Any:
    config = t.LlamaConfig(
        hidden_size=36, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
        intermediate_size=23, max_position_embeddings=61, **settings,
    )  # fmt: skip
    return t.LlamaForCausalLM(config)


def _t5(t: Any, settings: dict[str, Any]) -> Any:
    config = t.T5Config(
        d_model=22, d_kv=7, d_ff=23, num_layers=2, num_decoder_layers=3, num_heads=5,
        decoder_start_token_id=settings["pad_token_id"], **settings,
    )  # fmt: skip
    return t.T5ForConditionalGeneration(config)


def _marian(t: Any, settings: dict[str, Any]) -> Any:
    config = t.MarianConfig(
        d_model=22, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=23, decoder_ffn_dim=29, max_position_embeddings=61, scale_embedding=True,
        decoder_start_token_id=settings["pad_token_id"], forced_eos_token_id=None, **settings,
    )  # fmt: skip
    return t.MarianMTModel(config)


def _bart(t: Any, settings: dict[str, Any]) -> Any:
    config = t.BartConfig(
        d_model=22, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=23, decoder_ffn_dim=29, max_position_embeddings=61,
        decoder_start_token_id=settings["eos_token_id"], forced_eos_token_id=None, **settings,
    )  # fmt: skip
    return t.BartForConditionalGeneration(config)


_MAKERS: dict[str, Maker] = {
    "bert": _bert, "roberta": _roberta, "distilbert": _distilbert, "gpt2": _gpt2,
    "llama": _llama, "t5": _t5, "marian": _marian, "bart": _bart,
}  # fmt: skip


def tokenizer_of(family: str) -> Any:
    """A tokenizer of the sort that the family has, trained on a few sentences."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    if family in ("bert", "distilbert"):
        names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
        cut = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        cut.normalizer = normalizers.BertNormalizer(lowercase=True)
        cut.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        cut.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(
            vocab_size=VOCABULARY, special_tokens=[*names.values()], show_progress=False
        )
        around = ("[CLS]", "[SEP]")
    elif family in ("gpt2", "roberta", "bart"):
        names = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
        if family == "gpt2":
            names = {"bos": "<|endoftext|>", "eos": "<|endoftext|>"}
        cut = Tokenizer(models.BPE())
        cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        cut.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=VOCABULARY + 256,
            special_tokens=[*dict.fromkeys(names.values())],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        around = ("", "") if family == "gpt2" else ("<s>", "</s>")
    else:
        names = {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"} | (
            {"bos": "<s>"} if family == "llama" else {}
        )
        cut = Tokenizer(models.Unigram())
        cut.pre_tokenizer = pre_tokenizers.Metaspace()
        cut.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=VOCABULARY, special_tokens=[*names.values()], unk_token="<unk>", show_progress=False
        )
        around = ("<s>", "") if family == "llama" else ("", "</s>")
    cut.train_from_iterator(SENTENCES * 3, trainer)
    marks = [(mark, cut.token_to_id(mark)) for mark in around if mark]
    if marks:
        single = " ".join(part for part in (around[0], "$A", around[1]) if part)
        cut.post_processor = processors.TemplateProcessing(single=single, special_tokens=marks)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=cut, **{f"{name}_token": token for name, token in names.items()}
    )


def alter(folder: Path, name: str, **values: Any) -> None:
    """Change entries of one of the JSON files of a model."""
    path = folder / name
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**told, **values}), encoding="utf-8")
