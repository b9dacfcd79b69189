"""Pieces to words, links by hand and by heads, and the error rate between them."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import model
from model import align, words
from model.tokenizer import Tokenizer, clean
from model.trace import Trace
from model.training import corpus
from model.translator import Translator
from model.words import Gold, aer, cut, halves, links, merge, read_gold, word_of

ROOT = Path(__file__).parent.parent
GOLD = read_gold()
CORPUS = ROOT / "data" / "fra-eng.zip"

PAIR = """\
en: He waits for you for hours, you know.
fr: Il t'attend, tu sais.
sure: He=Il waits=attend you#1=t' ,=, you#2=tu know=sais .=.
possible: for#1=attend
alone: for#2 hours /
"""


def parse(text: str, folder: Path) -> list[Gold]:
    path = folder / "gold.txt"
    path.write_text(text, encoding="utf-8")
    return read_gold(path)


# --- the gold set -----------------------------------------------------------------------------------------


def test_the_gold_set_is_as_large_and_as_long_as_it_says() -> None:
    assert len(GOLD) == 72
    assert len({pair.english for pair in GOLD}) == len({pair.french for pair in GOLD}) == 72
    for pair in GOLD:
        for side in (pair.source, pair.target):
            assert 4 <= sum(any(map(str.isalpha, word)) for word in side) <= 14, pair.english


@pytest.mark.parametrize("pair", GOLD, ids=lambda pair: pair.english)
def test_every_word_is_linked_or_alone_and_links_stay_inside_their_sentences(pair: Gold) -> None:
    assert pair.sure <= pair.possible
    assert all(s in range(len(pair.source)) and t in range(len(pair.target)) for s, t in pair.possible)
    for side, size in enumerate((len(pair.source), len(pair.target))):
        linked = {link[side] for link in pair.possible}
        assert linked | {*pair.alone[side]} == {*range(size)}
        assert linked.isdisjoint(pair.alone[side])
    # A final mark stands for the final mark, surely and alone.
    last = len(pair.source) - 1, len(pair.target) - 1
    assert {link for link in pair.possible if link[0] == last[0] or link[1] == last[1]} == {last}
    assert last in pair.sure
    # No phrase is linked so loosely that anything would be right.
    assert len(pair.possible) < 0.3 * len(pair.source) * len(pair.target)


def test_the_halves_are_every_second_pair() -> None:
    choosing, reporting = halves(GOLD)
    assert choosing[:2] == [GOLD[0], GOLD[2]]
    assert reporting[-1] == GOLD[71]
    assert len(choosing) == len(reporting) == 36


def test_the_gold_set_shows_what_makes_alignment_hard() -> None:
    crossing = [pair for pair in GOLD if any(a < c and b > d for a, b in pair.sure for c, d in pair.sure)]
    many = [pair for pair in GOLD if len(pair.sure) != len({s for s, _t in pair.sure})]
    negated = [pair for pair in GOLD if "pas" in pair.target or "jamais" in pair.target]
    assert len(crossing) >= 20
    assert len(many) >= 5
    assert len(negated) >= 8


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not part of the repository")
def test_no_gold_sentence_is_in_the_corpus() -> None:
    def plain(text: str) -> str:
        return re.sub(r"\W+", " ", text.casefold()).strip()

    pairs = corpus.read_pairs(CORPUS)
    for side, seen in (("english", {p.source for p in pairs}), ("french", {p.target for p in pairs})):
        assert {plain(text) for text in seen}.isdisjoint(plain(getattr(pair, side)) for pair in GOLD)


def test_a_gold_file_reads_as_its_format_says(tmp_path: Path) -> None:
    (pair,) = parse(PAIR, tmp_path)
    assert pair.source == ("He", "waits", "for", "you", "for", "hours", ",", "you", "know", ".")
    assert pair.target == ("Il", "t'", "attend", ",", "tu", "sais", ".")
    assert pair.sure == {(0, 0), (1, 2), (3, 1), (6, 3), (7, 4), (8, 5), (9, 6)}
    assert pair.possible - pair.sure == {(2, 2)}
    assert pair.alone == ((4, 5), ())


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (PAIR.replace("He=Il", "She=Il"), "She names no one word"),
        (PAIR.replace("for#1", "for"), "for names no one word"),
        (PAIR.replace("for#1", "for#3"), "for#3 names no one word"),
        (PAIR.replace("alone: for#2 hours /", "alone: for#2 /"), "hours"),
        (PAIR.replace("/", "/ Il"), "Il"),
        (PAIR.replace("He=Il", "HeIl"), "not a link"),
        (PAIR.replace("fr:", "french:"), "not a line"),
        (PAIR.replace("sure:", "possible:", 1), "not a line"),
        ("en: Hello.\nfr: Salut.", "needs en, fr and sure"),
    ],
)
def test_a_broken_gold_file_says_where(broken: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(broken, tmp_path)


# --- pieces to words --------------------------------------------------------------------------------------

SENTENCES = [text for pair in GOLD for text in (pair.english, pair.french)] + [
    "It's 10 o'clock aujourd'hui, n'est-ce pas ?",
    "Lorsqu'il l'a vu, j'ai dit : \"Vas-y !\"",
    "He mustn't've said 3.5 % of it (don't)...",
    "$ 'tis l' '' -- -a- É.",
]


def cut_by(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words that the tokenizer itself cuts a text into."""
    bpe = tokenizer._bpe
    assert bpe.pre_tokenizer
    assert bpe.normalizer
    parts = bpe.pre_tokenizer.pre_tokenize_str(bpe.normalizer.normalize_str(clean(text)))
    return [word for part, _place in parts if (word := part.removeprefix("\u2581"))]


@pytest.mark.parametrize("text", SENTENCES)
def test_words_are_what_the_tokenizer_cuts_first(text: str, tokenizer: Tokenizer) -> None:
    want = cut_by(tokenizer, text)
    assert cut(clean(text)) == want
    pieces = tokenizer.encode(text)
    numbers = word_of([piece.text for piece in pieces], [piece.space for piece in pieces])
    assert list(words.names([piece.text for piece in pieces], numbers)) == want


def test_special_pieces_are_words_of_their_own_and_typed_ones_are_text() -> None:
    pieces = ("<s>", "l'", "éc", "ole", "<", "s", ">", "</s>", "<pad>", "<pad>")
    spaces = (False, True, False, False, True, False, False, False, False, False)
    numbers = word_of(pieces, spaces)
    assert numbers.tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 7, 8]
    assert words.names(pieces, numbers)[:3] == ("<s>", "l'", "école")
    assert word_of((), ()).tolist() == []


@given(st.data())
def test_rows_still_sum_to_1_when_pieces_are_merged(data: st.DataObject) -> None:
    """However words are cut; and every cell is a sum over keys and a mean over queries."""
    rows = np.cumsum(data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=7)))
    columns = np.cumsum(data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=11)))
    rows, columns = rows - rows[0], columns - columns[0]
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = random.dirichlet(np.ones(len(columns)), (3, len(rows))).astype(np.float32)
    merged = merge(weights, rows, columns)
    assert merged.shape == (3, rows.max() + 1, columns.max() + 1)
    assert np.allclose(merged.sum(axis=-1), 1, atol=1e-6)
    for n in range(merged.shape[1]):
        for m in range(merged.shape[2]):
            cell = weights[:, rows == n][:, :, columns == m].sum(axis=2).mean(axis=1)
            assert np.allclose(merged[:, n, m], cell, atol=1e-6)


def test_a_row_reads_for_the_piece_that_comes_out_or_the_one_that_goes_in(trace: Trace) -> None:
    """The same numbers, one place apart; by hand for words of one piece."""
    out, into = words.cross_words(trace, "comes out"), words.cross_words(trace, "goes in")
    assert out.rows[-1] == into.columns[-1] == "</s>"
    assert into.rows[0] == "<s>"
    assert out.rows[:-1] == into.rows[1:] == tuple(cut(trace.translation))
    assert out.columns == into.columns == (*cut(trace.text), "</s>")
    rows = word_of(trace.comes_out, (*trace.target_spaces[1:], False))
    columns = word_of(trace.source, trace.source_spaces)
    piece = next(t for t in range(len(rows)) if (rows == rows[t]).sum() == 1)
    key = next(s for s in range(len(columns)) if (columns == columns[s]).sum() == 1)
    alone = trace.weights("cross")[..., piece, key]
    assert np.allclose(out.weights[..., rows[piece], columns[key]], alone, atol=1e-6)
    assert np.allclose(out.weights.sum(axis=-1), 1, atol=1e-5)


def test_links_are_each_words_favourite_and_never_an_end_mark(translator: Translator) -> None:
    trace = translator.trace("The cat looks at me.", "Le chat me regarde.")
    merged = words.cross_words(trace, "comes out")
    chosen = words.favourites(merged)
    assert chosen.shape == (3, 2, len(cut("Le chat me regarde.")))
    for target in range(chosen.shape[-1]):
        row = merged.weights[1, 1, target, :-1]  # the last column is </s>
        assert chosen[1, 1, target] == row.argmax()
    assert links([2, 0, 0]) == {(2, 0), (0, 1), (0, 2)}


# --- the error rate ---------------------------------------------------------------------------------------


def test_the_error_rate_of_a_worked_example(tmp_path: Path) -> None:
    """|S| = 7, |P| = 8. Found 5: three sure, one only possible, one wrong: 1 - (3 + 4) / (5 + 7)."""
    gold = parse(PAIR, tmp_path)
    found = frozenset({(0, 0), (1, 2), (3, 1), (2, 2), (9, 0)})
    assert aer([found], gold) == pytest.approx(1 - 7 / 12)
    assert aer([gold[0].sure], gold) == 0
    assert aer([gold[0].possible], gold) == 0  # a link that is only possible is no error
    assert aer([frozenset()], gold) == 1
    # Over two pairs links are counted together; rates are not averaged.
    assert aer([found, gold[0].sure], gold * 2) == pytest.approx(1 - (7 + 14) / (12 + 14))
    assert aer([], []) == 0


# --- aligners ---------------------------------------------------------------------------------------------


def test_growing_an_alignment_equals_a_worked_example() -> None:
    """Both agree on 0-0 and 4-4. Then 1-0 reaches word 1, 1-1 the other word 1, and 4-3 the word 3.

    With 2-3 and 3-2 against 2-2 and 3-3 of both, no word lacks a link, and nothing grows.
    """
    forward = frozenset({(0, 0), (1, 1), (4, 4)})
    backward = frozenset({(0, 0), (1, 0), (4, 3), (4, 4)})
    assert align.symmetrise(forward, backward) == {(0, 0), (1, 0), (1, 1), (4, 3), (4, 4)}
    both = frozenset({(2, 2), (3, 3)})
    assert align.symmetrise(both | {(2, 3)}, both | {(3, 2)}) == both
    assert align.symmetrise(forward, forward) == forward
    # Nothing in common: the last step takes links between two words that have none, one after the other.
    assert align.symmetrise(frozenset({(0, 0)}), frozenset({(2, 2)})) == {(0, 0), (2, 2)}
    assert align.symmetrise(frozenset({(0, 0)}), frozenset({(0, 2)})) == {(0, 0)}


def test_the_baselines_know_nothing_and_stay_inside_the_sentences() -> None:
    straight = align.diagonal(GOLD)
    for pair, found in zip(GOLD, straight, strict=True):
        assert {target for _source, target in found} == {*range(len(pair.target))}
        assert {(0, 0), (len(pair.source) - 1, len(pair.target) - 1)} <= found
    assert aer(straight, GOLD) < 0.5  # French and English go much the same way
    drawn = align.random_links(GOLD, 0)
    assert drawn == align.random_links(GOLD, 0) != align.random_links(GOLD, 1)
    assert aer(drawn, GOLD) > 0.8
    sources = [source for found in drawn for source, _target in found]
    assert len(sources) == sum(len(pair.target) for pair in GOLD)


def test_the_best_head_is_chosen_on_one_half_and_reported_on_the_other() -> None:
    table = {
        "heads": [
            [{"choose": 0.3, "report": 0.1, "all": 0.2}, {"choose": 0.2, "report": 0.4, "all": 0.3}],
            [{"choose": 0.25, "report": 0.0, "all": 0.12}, {"choose": 0.9, "report": 0.9, "all": 0.9}],
        ]
    }
    assert align.best(table) == {"layer": 0, "head": 1, "choose": 0.2, "report": 0.4, "all": 0.3}
    found = [pair.sure for pair in GOLD]
    found[1] = frozenset()  # wrong in the half that reports
    rates = align.rates(found, GOLD)
    assert rates["choose"] == 0 < rates["all"] < rates["report"]


def test_heads_are_scored_by_their_favourite_words(translator: Translator, tmp_path: Path) -> None:
    pair = "en: The cat looks at me.\nfr: Le chat me regarde.\nsure: The=Le cat=chat me=me looks=regarde .=."
    gold = parse(f"{pair}\npossible: at=regarde", tmp_path)
    table = align.score_heads(translator, gold, "goes in")
    trace = translator.trace(gold[0].english, gold[0].french)
    merged = words.cross_words(trace, "goes in")
    for layer in range(3):
        for weights, got in (
            (merged.weights[layer, 1], table["heads"][layer][1]),
            (merged.weights[layer].mean(axis=0), table["layers"][layer]),
        ):
            found = frozenset(
                (int(weights[t + 1, :-1].argmax()), t) for t in range(5)
            )  # row 0 is <s>, the last column </s>
            assert got["choose"] == round(aer([found], gold), 4)


def test_the_shipped_figures_are_those_of_the_shipped_model() -> None:
    """The whole table of one reading again, from weights and gold set; the aligner's from its links."""
    folder = ROOT / "assets" / "models" / "en-fr"
    shipped = align.load(folder)
    assert shipped
    assert shipped["gold"]["pairs"] == len(GOLD)
    table = align.score_heads(model.load(folder), GOLD, "goes in")
    for layer in range(3):
        for head in range(8):  # another processor may turn a tie over
            want = shipped["reads"]["goes in"]["heads"][layer][head]
            assert table["heads"][layer][head] == pytest.approx(want, abs=0.006)
    assert shipped["best"]["goes in"] == align.best(shipped["reads"]["goes in"])
    assert shipped["diagonal"] == align.rates(align.diagonal(GOLD), GOLD)
    found = [frozenset((s, t) for s, t in one) for one in shipped["aligner"]["links"]]
    assert align.rates(found, GOLD) in shipped["aligner"]["runs"]
    for read in words.READS:
        assert shipped["best"][read]["report"] < 0.25
        assert shipped["random"]["report"] > 2 * shipped["best"][read]["report"]
