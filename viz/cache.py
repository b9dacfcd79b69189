"""All memory of the app, and its only way to the model."""

import gc

import streamlit as st

import model
from model import experiments
from model.trace import NEUTRAL, Change, Floats, Kind, Trace
from model.translator import Translator

MODEL, CHEATER = "en-fr", "cheater"
turns = experiments.turns
masked_softmax = experiments.masked_softmax  # cheaper than a look into a cache


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


@st.cache_data(max_entries=64, show_spinner=False)
def projections(name: str, kind: Kind, layer: int, head: int) -> experiments.Projections:
    """The learned matrices of one head."""
    return experiments.projections(translator(name).model, kind, layer, head)


@st.cache_data(max_entries=256, show_spinner=False)
def random_head(d_k: int, seed: int) -> experiments.RandomHead:
    """Random queries and keys of one width."""
    return experiments.random_head(d_k, seed)


def time_scores(d_k: int) -> experiments.Timing:
    """Dot product against additive attention on this machine, now: not kept."""
    return experiments.time_scores(d_k)


@st.cache_data(max_entries=8, show_spinner=False)
def encoding(count: int, d_model: int) -> Floats:
    """The encodings (N, D) of the positions 0 to `count` - 1."""
    return experiments.encoding(count, d_model)


def longest(name: str = MODEL) -> int:
    """The most pieces that a sentence of the training had."""
    return translator(name).model.config.max_pieces
