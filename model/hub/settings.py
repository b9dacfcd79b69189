"""Which models from elsewhere a server opens: what its administrator lists in the environment.

    HEADLIGHT_MODELS         names and folders, with commas between: `openai-community/gpt2`,
                             `openai-community/gpt2@<revision>`, `/data/bert`, `small=/data/models/x`
    HEADLIGHT_MODELS_CACHE   where downloads are kept; else where huggingface_hub keeps them
    HEADLIGHT_MODELS_BYTES   the most that a model's weights may take in memory

Without the first, no model is opened and nothing is asked of the network.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

LIMIT = 2 * 2**30  # bytes of weights in float32: 500 million parameters
NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,95}(/[A-Za-z0-9_][\w.-]{0,95})?", re.ASCII)
REVISION = re.compile(r"[\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Settings:
    allow: tuple[str, ...] = ()  # entries as `offered` reads them
    cache: Path | None = None
    limit: int = LIMIT


@dataclass(frozen=True)
class Entry:
    """One model of the list: on the Hub, or in a folder."""

    name: (
        str  # what a reader chooses it by; of a folder its last part, so that no link shows a server's paths
    )
    folder: Path | None = None
    revision: str | None = None


def settings(environment: Mapping[str, str] | None = None) -> Settings:
    """What the environment says. Raises ValueError where a number is none."""
    told = os.environ if environment is None else environment
    entries = tuple(part.strip() for part in told.get("HEADLIGHT_MODELS", "").split(","))
    cache = told.get("HEADLIGHT_MODELS_CACHE", "").strip()
    limit = told.get("HEADLIGHT_MODELS_BYTES", "").strip()
    return Settings(
        tuple(entry for entry in entries if entry),
        Path(cache).expanduser() if cache else None,
        int(limit) if limit else LIMIT,
    )


def offered(allow: Collection[str]) -> dict[str, Entry]:
    """The models of a list by the names a reader chooses them by; what no model can be called is left out."""
    found: dict[str, Entry] = {}
    for text in allow:
        called, equals, place = text.partition("=")
        place = place if equals else text
        if place.startswith((".", "~", "/", "\\")) or Path(place).is_absolute():
            folder = Path(place).expanduser()
            name = called if equals else folder.name
            entry = Entry(name, folder=folder)
        else:
            repository, at, revision = place.partition("@")
            if not NAME.fullmatch(repository) or (at and not REVISION.fullmatch(revision)):
                continue
            entry = Entry(called if equals else repository, revision=revision or None)
            if equals:  # a second name for a model on the Hub would hide which one it is
                continue
        if NAME.fullmatch(entry.name) and ".." not in entry.name:
            found.setdefault(entry.name, entry)
    return found
