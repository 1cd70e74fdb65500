"""The data sets that have a name, and where their files lie."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import os
from collections.abc import Callable
from pathlib import Path

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.datasets import md_gender
from tfpriv.datasets.readers import read_bytes
from tfpriv.datasets.sentiment import read_sentiment
from tfpriv.datasets.splits import Splits, split
from tfpriv.datasets.text_dataset import TextDataset, concatenate
from tfpriv.datasets.youtube_spam import prepare_youtube_spam, read_youtube_spam

_MD_GENDER = f"md_gender/{md_gender.FOLDER}"


@dataclasses.dataclass(frozen=True)
class DatasetEntry:
    """A named data set.

    Args:
        name: str. What `load` takes.
        summary: str. One line.
        licence: str.
        folder: str. Where its files lie under the data folder; "" for package data.
        read: reads the files in that folder.
        prepare: puts verified files into that folder, from a source or the network;
            None where this has to be done by hand.
        read_splits: reads the official parts of the files in that folder; None where
            there are none.
        files: the names of the files, relative to the folder, for a quick look; empty
            where any file will do.
    """

    name: str
    summary: str
    licence: str
    folder: str
    read: Callable[[Path], TextDataset]
    prepare: Callable[[Path, Path | None], None] | None = None
    read_splits: Callable[[Path], Splits] | None = None
    files: tuple[str, ...] = ()


def names() -> tuple[str, ...]:
    """The names that `load` takes, the bundled data set first."""
    return tuple(_REGISTRY)


def entry(name: str) -> DatasetEntry:
    """The data set called `name`.

    Raises:
        InputError: there is none.
    """
    if name not in _REGISTRY:
        raise InputError(
            f"Expected one of the data sets {', '.join(_REGISTRY)}, received {name!r}. "
            "For a file of your own use read_table."
        )
    return _REGISTRY[name]


def data_folder(data_dir: str | os.PathLike | None = None) -> Path:
    """The folder with the files of all data sets.

    Args:
        data_dir: the folder, or None: the environment variable TFPRIV_DATA_DIR, and
            without it ~/.cache/tfpriv.
    """
    chosen = data_dir or os.environ.get("TFPRIV_DATA_DIR") or "~/.cache/tfpriv"
    return Path(chosen).expanduser()


def load(
    name: str, *, seed: int = 0, data_dir: str | os.PathLike | None = None
) -> Splits:
    """Loads a named data set in three parts.

    Those of md_gender come in their official parts, whatever the seed. Any other is
    split 60/20/20 by keyed hash of the canonical text.

    Args:
        name: str, one of `names()`.
        seed: int >= 0, the key of the splits. Without effect on official parts.
        data_dir: the folder with the files, as in `data_folder`.

    Returns:
        Splits, as raw text: duplicates are in it (`TextDataset.deduplicate`).

    Raises:
        InputError: no such data set, or its files are missing or damaged.

    Examples:
        >>> load("sample").train.label_names
        ('ham', 'spam')
    """
    known = entry(name)
    _validation.integer(0, seed=seed)
    if known.read_splits is not None:
        return known.read_splits(data_folder(data_dir) / known.folder)
    return split(read(name, data_dir=data_dir), seed=seed)


def read(name: str, *, data_dir: str | os.PathLike | None = None) -> TextDataset:
    """Reads a named data set whole; arguments and errors as in `load`."""
    known = entry(name)
    return known.read(data_folder(data_dir) / known.folder)


def prepare(
    name: str,
    source: str | os.PathLike | None = None,
    data_dir: str | os.PathLike | None = None,
) -> Path:
    """Puts the verified files of a named data set where `load` finds them.

    Args:
        name: str, one of `names()`.
        source: a folder or archive that has the files; None takes those already in
            place, or else downloads the official archive.
        data_dir: the folder to fill, as in `data_folder`.

    Returns:
        The folder that holds the files.

    Raises:
        InputError: no such data set, it cannot be prepared, or files of the source
            are missing or damaged.
        ConnectionError: the archive cannot be downloaded.
    """
    known = entry(name)
    if not known.folder:
        raise InputError(
            f"Expected a data set with files of its own, received {name}, which comes "
            f"with the package. Load it: tfpriv.datasets.load({name!r})."
        )
    folder = data_folder(data_dir) / known.folder
    if known.prepare is not None:
        known.prepare(folder, None if source is None else Path(source))
    elif source is not None:
        raise InputError(
            f"Expected no source for {name}, received {source}. Unpack its archive so "
            f"that its files lie in {folder}."
        )
    else:
        known.read(folder)
    return folder


def is_prepared(name: str, data_dir: str | os.PathLike | None = None) -> bool:
    """Whether the files of a named data set seem to be in place (a quick look)."""
    known = entry(name)
    folder = data_folder(data_dir) / known.folder
    if known.files:
        return all((folder / name).is_file() for name in known.files)
    return not known.folder or (folder.is_dir() and any(folder.iterdir()))


def _read_sample(folder: Path) -> TextDataset:
    del folder  # Package data has no folder of the user's.
    path = importlib.resources.files("tfpriv.datasets") / "sample" / "comments.csv"
    return read_bytes(
        path.read_bytes(),
        "the sample",
        format="csv",
        text="text",
        label="label",
        private="gender",
    )


def _read_youtube_spam(folder: Path) -> TextDataset:
    videos = read_youtube_spam(folder)
    return concatenate(
        list(videos.values()),
        provenance={"parts": [dict(video.provenance) for video in videos.values()]},
    )


@functools.lru_cache(maxsize=2)
def _read_sentiment(folder: Path) -> TextDataset:
    # Public texts; an experiment loads them once a seed, and scoring takes seconds.
    return read_sentiment(folder)


def _prepare_sentiment(config: str, folder: Path, source: Path | None) -> None:
    # The files are those of md_gender, whose folder holds a folder a corpus.
    md_gender.prepare_md_gender(config, folder.parent, source)


@functools.lru_cache(maxsize=2)
def _read_md_gender(config: str, folder: Path) -> Splits:
    return md_gender.read_md_gender(config, folder)


def _pool_md_gender(config: str, folder: Path) -> TextDataset:
    parts = [part for part in _read_md_gender(config, folder) if len(part)]
    return concatenate(
        parts, provenance={"parts": [dict(part.provenance) for part in parts]}
    )


def _md_gender_entry(config: str) -> DatasetEntry:
    settings = md_gender.configs()[config]
    return DatasetEntry(
        name=f"md_gender/{config}",
        summary=settings.summary,
        licence="MIT",
        folder=_MD_GENDER,
        read=functools.partial(_pool_md_gender, config),
        prepare=functools.partial(md_gender.prepare_md_gender, config),
        read_splits=functools.partial(_read_md_gender, config),
        files=tuple(settings.files.values()),
    )


_REGISTRY = {
    known.name: known
    for known in (
        DatasetEntry(
            name="sample",
            summary="Artificial comments, ham or spam, that come with the package.",
            licence="Apache-2.0",
            folder="",
            read=_read_sample,
        ),
        DatasetEntry(
            name="youtube_spam",
            summary="1,956 YouTube comments, ham or spam (UCI data set 380).",
            licence="CC BY 4.0",
            folder="youtube_spam",
            read=_read_youtube_spam,
            prepare=prepare_youtube_spam,
        ),
        DatasetEntry(
            name="funpedia_sentiment",
            summary="Funpedia texts of md_gender with the sentiment VADER finds.",
            licence="MIT",
            folder=f"{_MD_GENDER}/funpedia",
            read=_read_sentiment,
            prepare=functools.partial(_prepare_sentiment, "funpedia"),
        ),
        DatasetEntry(
            name="wizard_sentiment",
            summary="Wizard texts of md_gender with the sentiment VADER finds.",
            licence="MIT",
            folder=f"{_MD_GENDER}/wizard",
            read=_read_sentiment,
            prepare=functools.partial(_prepare_sentiment, "wizard"),
        ),
        *map(_md_gender_entry, md_gender.configs()),
    )
}
