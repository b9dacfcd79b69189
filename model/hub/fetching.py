"""Models on the Hub: what is here already is taken, the rest is asked for once, and only what can be read."""

from pathlib import Path, PurePosixPath
from typing import Any

from model.hub.refusal import RefusedError
from model.hub.settings import Entry
from model.hub.shelf import CONFIG, INDEX, MOST_JSON, PICKLES, TEXTS, WEIGHTS, Progress, Shelf, judge

SLACK = 1.1  # what may come beyond what was stated, such as a part that is sent again
SECONDS = 10.0  # that the Hub may take for its first answer


def fetch(entry: Entry, cache: Path | None, progress: Progress, limit: int) -> Shelf:
    """The files of a model of the Hub, judged. Raises RefusedError."""
    try:
        return _kept(entry, cache, limit)
    except RefusedError as error:
        if error.code != "missing":
            raise
    wanted = _wanted(entry, limit)
    progress("download", 0.0)
    _download(entry, cache, wanted, progress)
    return _kept(entry, cache, limit)


def _kept(entry: Entry, cache: Path | None, limit: int) -> Shelf:
    """What an earlier download left here. Without a network, this is all there is."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(
                entry.name, revision=entry.revision, cache_dir=cache, local_files_only=True, token=False
            )
        )
    except (LocalEntryNotFoundError, OSError) as error:
        raise RefusedError("missing", "this model was not downloaded yet") from error
    return judge(folder, folder.parent.parent, limit)  # <cache>/models--x/snapshots/<commit>, links to blobs


def _wanted(entry: Entry, limit: int) -> dict[str, int]:
    """The names of the files that are needed and their bytes, as the Hub states them before any is sent."""
    try:
        from huggingface_hub import HfApi

        told = HfApi(token=False).model_info(
            entry.name, revision=entry.revision, files_metadata=True, timeout=SECONDS
        )
    except Exception as error:
        raise _refused(error) from error
    sizes = {each.rfilename: int(each.size or 0) for each in told.siblings or ()}
    weights = {name: size for name, size in sizes.items() if _weighs(name, sizes)}
    if not weights:
        pickled = any(name.endswith(PICKLES) for name in sizes)
        raise RefusedError(
            "pickle" if pickled else "missing",
            "it is offered without safetensors, in a format that can hold code, which is never opened"
            if pickled
            else "it is offered without weights",
        )
    needed = max(4 * int(getattr(told.safetensors, "total", 0) or 0), sum(weights.values()))
    if needed > limit:
        raise RefusedError(
            "large", f"its weights take {needed / 2**30:.1f} GiB, the limit is {limit / 2**30:.1f} GiB"
        )
    texts = {
        name: size
        for name, size in sizes.items()
        if "/" not in name and PurePosixPath(name).suffix in TEXTS and size <= MOST_JSON
    }
    if CONFIG not in texts:
        raise RefusedError("missing", f"{CONFIG} is missing")
    return weights | texts


def _weighs(name: str, sizes: dict[str, int]) -> bool:
    """Whether this is a file of the weights that `judge` will read."""
    if WEIGHTS in sizes:
        return name == WEIGHTS
    return INDEX in sizes and "/" not in name and name.startswith("model-") and name.endswith(".safetensors")


def _download(entry: Entry, cache: Path | None, wanted: dict[str, int], progress: Progress) -> None:
    """Ask for the files, the small ones first. Raises RefusedError, also where more comes than was stated."""
    from huggingface_hub import hf_hub_download
    from tqdm.std import tqdm

    total, come = max(1, sum(wanted.values())), 0

    class Counter(tqdm):  # type: ignore[misc]  # which has no types
        """What the Hub's client believes to be a progress bar."""

        def __init__(self, *_: object, **options: Any) -> None:
            super().__init__(disable=True, total=options.get("total"))

        def update(self, n: float | None = 1) -> None:
            nonlocal come
            come += int(n or 0)
            if come > total * SLACK:
                raise RefusedError("large", "the Hub sends more than it said this model has")
            progress("download", min(0.8, 0.8 * come / total))

    try:
        for name, _size in sorted(wanted.items(), key=lambda one: one[1]):
            hf_hub_download(
                entry.name, name, revision=entry.revision, cache_dir=cache, token=False, tqdm_class=Counter
            )
    except RefusedError:
        raise
    except Exception as error:
        raise _refused(error) from error
    progress("download", 0.8)


def _refused(error: Exception) -> RefusedError:
    from huggingface_hub import errors

    unknown: tuple[Any, ...] = (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)
    if isinstance(error, (errors.GatedRepoError, *unknown)):
        return RefusedError("missing", "the Hub has no such model, or not for everybody")
    return RefusedError("network", "this model is not on this machine, and the Hub cannot be reached")
