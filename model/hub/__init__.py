"""Models from elsewhere: whatever `transformers` loads as an encoder, a decoder or both, behind one door.

Off by default. `settings` says what the administrator of a server allows, `load` opens one of these, and
what it gives hands over a `Trace` like any other door of `model`. Nothing here imports `transformers` before
a model is asked for, and the app runs where it is not installed.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from model.hub.refusal import Refusal, RefusedError
from model.hub.settings import LIMIT, Settings, offered, settings
from model.hub.shelf import Progress, silent

if TYPE_CHECKING:
    from model.hub.door import HubModel

__all__ = ["Progress", "Refusal", "RefusedError", "Settings", "load", "offered", "settings"]


def load(
    name_or_folder: str | Path,
    allow: Collection[str] | None = None,
    cache_dir: Path | None = None,
    progress: Progress = silent,
    limit: int = LIMIT,
) -> "HubModel":
    """A model that `allow` lists, by its name on the Hub, its folder, or what its folder is called there.

    Without `allow`, nothing is allowed: pass `settings().allow`. What lies in `cache_dir` already is taken
    from there, and the network is asked for the rest only. `limit` bounds the bytes of its weights in memory.
    Raises RefusedError, whose sentence is for the reader and whose code says what is wrong.
    """
    from model.hub import opening  # here, so that whoever reads the settings needs no torch

    return opening.opened(str(name_or_folder), tuple(allow or ()), cache_dir, progress, limit)
