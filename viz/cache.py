"""All memory of the app, and its only way to the model."""

import gc

import streamlit as st

import model
from model.trace import NEUTRAL, Change, Trace
from model.translator import Translator

MODEL = "en-fr"


@st.cache_resource(show_spinner=False)
def translator(name: str = MODEL) -> Translator:
    """One read-only model for all sessions."""
    loaded = model.load(name)
    loaded.trace("I am a student.")  # the first pass pays for torch's set-up; no reader should
    # Streamlit collects garbage after every run. What torch brought stays for good: leave it out.
    gc.collect()
    gc.freeze()
    return loaded


@st.cache_data(max_entries=128, show_spinner=False)
def trace(name: str, text: str, target: str | None = None, change: Change = NEUTRAL) -> Trace:
    """The trace of a sentence: a step to another layer or head runs no model. Raises TextError."""
    return translator(name).trace(text, target, change)
