"""Composition root: read the address, draw the frame, trace the sentence, hand both to the page."""

from functools import partial

import streamlit as st

from model.trace import TextError
from viz import cache, view
from viz.pages import Page, offers, pages
from viz.text import ASSETS, _

st.set_page_config("Headlight", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.logo(str(ASSETS / "logo.svg"), size="large")


def draw(page: Page) -> None:
    try:
        if trace and frame:
            page.draw(view.Scene(trace, frame.here, partial(cache.trace, model), cache.changes(model)))
        elif page.alone:
            page.alone()
    except cache.UnreadyError as error:
        apologise(error)


def apologise(error: TextError | cache.UnreadyError) -> None:
    """In place of a page, or where it broke off."""
    which = _("French") if trace else _("English")
    st.info(view.plain(view.complain(error, which) if isinstance(error, TextError) else str(error)))
    if isinstance(error, cache.BusyError):
        st.button(_("Try again"), key="retry")  # whose run asks again
    elif not frame:
        view.way_back()


contents = pages()
links = [st.Page(partial(draw, page), title=page.title, url_path=path) for path, page in contents.items()]
chosen = st.navigation(links, position="top")
alone = chosen.url_path in contents and contents[chosen.url_path].alone is not None
frame, trace = None, None
model = view.chosen_model([*(offer.name for offer in cache.models()), *cache.allowed()])
try:
    sizes = cache.sizes(model)
    for complaint in view.judged(offers(sizes, cache.models(), cache.allowed())):
        st.warning(view.plain(complaint))
    frame = view.frame(sizes, cache.models())
    with frame.page:
        if cache.ready() or not alone:
            trace = cache.trace(model, frame.text)
            if frame.target:
                trace = cache.trace(model, frame.text, frame.forced(trace))
except (TextError, cache.UnreadyError) as error:
    with frame.page if frame else st.container():
        apologise(error)
if trace and frame:
    view.fill(frame, trace)

with frame.page if frame else st.container():
    chosen.run()
