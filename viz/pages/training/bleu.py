"""How BLEU counts: n-grams of one translation against its references, and why a corpus is needed."""

import streamlit as st

from viz import cache, tables, view
from viz.chart import chart
from viz.figures.training import ngrams
from viz.text import _, prose, references
from viz.view import Scene

ORDERS = ("all", "1", "2", "3", "4")


def draw(scene: Scene) -> None:
    """The bars of the n-grams, the numbers they give, and the corpus of the examples."""
    words = prose("training")
    st.markdown(words["bleu"])
    left, right = st.columns(2, gap="large")
    mine = left.text_input(_("Translation (empty: the model's)"), key="train_mine", bind="query-params")
    typed = right.text_area(
        _("References, one a line (empty: those written for this page)"),
        key="train_references",
        bind="query-params",
        height=80,
    )
    known = references().get(scene.trace.text, ())
    answers = [line.strip() for line in (typed or "").splitlines() if line.strip()] or list(known)
    translation = (mine or "").strip() or scene.trace.translation
    if not answers:
        st.info(_("This sentence has no reference here: type a right French translation of it, or several."))
        return
    if max(map(len, (translation, *answers))) > LONGEST or len(answers) > MOST:
        said = _("Too much to count: at most {most} references, each of at most {longest} characters.")
        st.info(said.format(most=MOST, longest=LONGEST))
        return
    _counted(translation, answers)
    st.markdown(words["bleu corpus"])
    _corpus(scene.here.model)


LONGEST, MOST = 400, 8


def _counted(translation: str, answers: list[str]) -> None:
    order = st.segmented_control(
        _("n-grams of"), ORDERS, default="all", required=True, key="train_order", bind="query-params"
    )
    seen = cache.count(translation, answers)
    whole = cache.tally([seen])
    chosen = None if order in (None, "all") else int(order) - 1
    st.markdown(_("Translation: {text}").format(text="**" + view.plain(translation) + "**"))
    size = 1 if chosen is None else chosen + 1
    for answer in seen.references:
        flags = cache.shared(seen, answer, size)
        text = " ".join(
            f"**{view.plain(word)}**" if flag else view.plain(word)
            for word, flag in zip(answer, flags, strict=True)
        )
        st.markdown(_("Reference: {text}").format(text=text))
    chart(
        ngrams(seen.tokens, seen.states, chosen, view.palette()), "train_grams", _("n-grams, matched or not")
    )
    st.caption(
        _(
            "A bar is an n-gram over its words. Filled: a reference has it. Grey: one has it, but not so "
            "often. Dotted: none has it. Bold in a reference: in an n-gram that the translation has too "
            "(single words where all are shown). Marks are words of their own here."
        )
    )
    shares = " · ".join(
        f"p{n} = {matched}/{total} = {share:.1f} %"
        for n, (matched, total, share) in enumerate(zip(*whole[:3], strict=True), 1)
    )
    st.markdown(shares)
    said = _(
        "Brevity penalty: {tokens} words against {length} of the closest reference: **{brevity:.3f}**. "
        "BLEU of this one sentence: **{score:.1f}**."
    )
    st.markdown(
        said.format(tokens=len(seen.tokens), length=seen.length, brevity=whole.brevity, score=whole.score)
    )
    if not all(whole.total):
        st.info(_("With fewer than four words there is no 4-gram to count, and BLEU of the sentence is 0."))
    elif not all(whole.matched) and any(whole.matched):
        st.info(
            _(
                "No n-gram of some length matched, so the product would be 0. As sacrebleu does, half a "
                "match is put in its place (then a quarter, and so on)."
            )
        )


def _corpus(model: str) -> None:
    """The example sentences as a corpus of their own."""
    counts = [
        cache.count(cache.translation_at(model, cache.snapshots(model)[-1], text), answers)
        for text, answers in references().items()
    ]
    single = [cache.tally([each]).score for each in counts]
    pooled = cache.tally(counts)
    said = _(
        "The {count} example sentences, as the model translates them: BLEU **{pooled:.1f}** as a corpus, "
        "{mean:.1f} as a mean of sentences, which range from {least:.1f} to {most:.1f}."
    )
    st.markdown(
        said.format(
            count=len(counts),
            pooled=pooled.score,
            mean=sum(single) / len(single),
            least=min(single),
            most=max(single),
        )
    )
    with st.expander(_("The sentences")):
        st.dataframe(
            tables.sentence_scores(references(), [" ".join(each.tokens) for each in counts], single),
            hide_index=True,
        )
