"""The pages of the peers, from their own packages, on the same tensors as ours.

bertviz asks a CDN for d3, jQuery and require.js. Here it is given the first two from bench/vendor (d3 5.7.0,
BSD-3-Clause; jQuery 3.7.1, MIT), and in place of require.js the four lines of it that it uses, so that it
waits for no network at all: that is to its favour. CircuitsVis brings its script along.
"""

import re
from pathlib import Path

import numpy as np

from model.trace import Floats

VENDOR = Path(__file__).parent / "vendor"
REQUIRE = """
window.require = {config() {}};
window.requirejs = (names, ready) => ready(...names.map((name) => ({jquery: jQuery, d3})[name]));
"""
CHANGE_LAYER = """(layer) => {
    const select = document.querySelector('#layer');
    select.value = layer;
    select.dispatchEvent(new Event('change', {bubbles: true}));
}"""


def random_maps(layers: int, heads: int, pieces: int) -> Floats:
    """Softmax of random scores, no mask: (layer, head, query, key). The hardest maps to compress."""
    scores = 2 * np.random.default_rng(0).standard_normal((layers, heads, pieces, pieces), np.float32)
    powers = np.exp(scores)
    return powers / powers.sum(axis=-1, keepdims=True)


def pieces_of(count: int) -> list[str]:
    return [f"w{index}" for index in range(count)]


def head_view(weights: Floats) -> str:
    """bertviz's lines of all heads of a layer, with a select for the layer."""
    import torch
    from bertviz import head_view

    layers = [torch.from_numpy(layer)[None] for layer in weights]
    return _page(head_view(layers, pieces_of(weights.shape[-1]), html_action="return").data)


def model_view(weights: Floats) -> str:
    """bertviz's overview: small lines of every head of every layer."""
    import torch
    from bertviz import model_view

    layers = [torch.from_numpy(layer)[None] for layer in weights]
    return _page(model_view(layers, pieces_of(weights.shape[-1]), html_action="return").data)


def heads_of_circuitsvis(weights: Floats) -> str:
    """CircuitsVis' maps of one layer's heads; it knows no layers."""
    from circuitsvis.attention import attention_heads

    found = attention_heads(weights[0], pieces_of(weights.shape[-1]), mask_upper_tri=False)
    return _html(found.local_src)


def _page(body: str) -> str:
    scripts = [(VENDOR / f"{name}.min.js").read_text(encoding="utf-8") for name in ("jquery", "d3")]
    head = "".join(f"<script>{script}</script>" for script in [*scripts, REQUIRE])
    return _html(head + re.sub(r'<script src="https?://[^"]*"></script>', "", body))


def _html(body: str) -> str:
    return f'<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>{body}</body></html>'
