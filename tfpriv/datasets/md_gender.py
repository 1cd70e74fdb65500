"""ParlAI's md_gender: texts with the gender of whom they are about.

Dinan et al. 2020, "Multi-Dimensional Gender Bias Classification" (EMNLP), MIT
licence. The private label is that gender, the task label the sentiment that VADER
finds in the text: the pair that ADS (Basu Roy Chowdhury et al. 2021) and RMAT (Wu and
Luo 2023) use.

A configuration is one of the corpora as those papers read it:

- `funpedia`: three genders. The gender is that of a page, "male" for many things.
- `wizard`: female against male; neutral rows are dropped.
- `wizard_as_published`: neutral against female. The published sizes come out only if
  the male rows are dropped.
- `convai2`, `light`, `opensubtitles`: genders that a classifier inferred, the files
  with three of them; neutral rows are dropped. The first rows of ConvAI2's official
  validation and test file are the same: take only one of these parts for a claim.
- `new_data`: the rows with a human ABOUT label, a test set; the other parts are empty.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tfpriv._errors import InputError
from tfpriv.datasets import _archives
from tfpriv.datasets._cells import Record, Source, decode
from tfpriv.datasets._jsonl import read_jsonl
from tfpriv.datasets.readers import Columns, assemble
from tfpriv.datasets.sentiment import with_vader_labels
from tfpriv.datasets.splits import Splits
from tfpriv.datasets.text_dataset import TextDataset

URL = "http://parl.ai/downloads/md_gender/gend_multiclass_10072020.tgz"
FOLDER = "data_to_release"
GENDERS = ("female", "gender-neutral", "male")
SENTIMENTS = ("negative", "neutral", "positive")
_ABOUT = "ABOUT:"
_PARTS = ("train", "validation", "test")
_COLUMNS = Columns(text="text", private="gender")
_MAX_CHARS = 100_000


@dataclasses.dataclass(frozen=True)
class MDGenderConfig:
    """One corpus of md_gender, and which of its rows are kept.

    Args:
        summary: str. One line.
        files: part (`"train"`, `"validation"`, `"test"`) to the official file, relative
            to `data_to_release`.
        genders: the private labels that are kept, in sorted order.
        records: text and name of a file to its records (text, gender).
    """

    summary: str
    files: Mapping[str, str]
    genders: tuple[str, ...]
    records: Callable[[str, Source], list[Record]]


def read_md_gender(
    config: str, source: str | os.PathLike, *, sentiment: bool = True
) -> Splits:
    """Reads one corpus in its official parts, raw, in official order.

    Duplicates are in it, within parts and across them.

    Args:
        config: one of `configs()`.
        source: the folder `data_to_release`, one that holds it, or the official
            archive.
        sentiment: whether VADER labels the texts, at about 5,000 texts a second.

    Returns:
        Splits whose data sets have the sentiment (`"negative"`, `"neutral"`,
        `"positive"`) as label and the gender as private label. A part without an
        official file is empty.

    Raises:
        InputError: no such configuration, or a file is missing or no file of
            md_gender; the message names its line.
    """
    settings = configs()[_known(config)]
    source = Path(source)
    if source.is_file():
        with tempfile.TemporaryDirectory() as temporary:
            _extract(source, Path(temporary))
            return read_md_gender(config, temporary, sentiment=sentiment)
    root = _root(config, source)
    parts = {name: _empty() for name in _PARTS}
    for part, name in settings.files.items():
        parts[part] = _read_file(root / name, settings)
    if sentiment:
        parts = {name: with_vader_labels(data) for name, data in parts.items()}
    return Splits(**parts)


def prepare_md_gender(
    config: str, folder: str | os.PathLike, source: str | os.PathLike | None = None
) -> None:
    """Puts the official files of one corpus into `folder`.

    The archive holds all corpora, so that from it the files of all are taken; it is
    verified by its size and SHA-256. Files of a folder are read through first; of
    single files no checksums are published.

    Args:
        config: one of `configs()`.
        folder: the folder `data_to_release` to fill, made where it does not exist.
        source: the official archive, or a folder as in `read_md_gender`. None takes
            the files that are in place, or else downloads the archive (233 MB).

    Raises:
        InputError: as `read_md_gender`, or the archive is not the official one.
        ConnectionError: the archive cannot be downloaded.
    """
    folder = Path(folder)
    settings = configs()[_known(config)]
    if source is None:
        if all((folder / name).is_file() for name in settings.files.values()):
            read_md_gender(config, folder, sentiment=False)
            return
        with tempfile.TemporaryDirectory() as temporary:
            ((name, (size, _)),) = checksums().items()
            archive = Path(temporary, name)
            _archives.download(URL, archive, most_bytes=size, kind="tgz")
            _extract(archive, folder)
    elif Path(source).is_file():
        _extract(Path(source), folder)
    else:
        read_md_gender(config, source, sentiment=False)
        root = _root(config, Path(source))
        for name in settings.files.values():
            if (folder / name).exists() and (folder / name).samefile(root / name):
                continue
            with open(root / name, "rb") as file:
                _archives.copy(file, folder / name)


def configs() -> Mapping[str, MDGenderConfig]:
    """The configurations by name."""
    return _CONFIGS


def checksums() -> dict[str, tuple[int, str]]:
    """Size in bytes and SHA-256 of the official archive."""
    return _archives.checksums("md_gender")


def _known(config: str) -> str:
    if config not in _CONFIGS:
        raise InputError(
            f"Expected one of {', '.join(_CONFIGS)}, received {config!r}, which is no "
            "configuration of md_gender."
        )
    return config


def _root(config: str, source: Path) -> Path:
    """The folder `data_to_release` at or below `source`."""
    files = _CONFIGS[config].files.values()
    candidates = (source, source / FOLDER, source / "md_gender" / FOLDER)
    missing: list[str] = []
    for root in candidates:
        missing = [name for name in files if not (root / name).is_file()]
        if len(missing) < len(files):
            break
    if missing:
        raise InputError(
            f"Expected the official files of md_gender in {source}, received no "
            f"{', '.join(missing)}. Run: tfpriv datasets prepare md_gender/{config} "
            "[--source FOLDER|TGZ], or set TFPRIV_DATA_DIR."
        )
    return root


def _extract(archive: Path, folder: Path) -> None:
    ((_, (size, digest)),) = checksums().items()
    received = archive.stat().st_size
    if received != size or _archives.sha256(archive) != digest:
        raise InputError(
            f"Expected the official archive of md_gender ({size} bytes, sha256 "
            f"{digest[:12]}...), received {archive} ({received} bytes), which differs. "
            f"Take it from {URL}, or give a folder with its files."
        )
    wanted = {
        f"{FOLDER}/{name}": name
        for config in _CONFIGS.values()
        for name in config.files.values()
    }
    missing = wanted.keys() - _archives.extract_tar(archive, folder, wanted)
    if missing:
        raise InputError(
            f"Expected the files of all corpora in {archive}, received no "
            f"{', '.join(sorted(missing))}."
        )


def _empty() -> TextDataset:
    return TextDataset((), private=(), private_column=_COLUMNS.private)


def _read_file(path: Path, config: MDGenderConfig) -> TextDataset:
    data = path.read_bytes()
    source = Source(str(path), "line")
    records = config.records(decode(data, source), source)
    kept = []
    for record in records:
        gender = (record.cells[1] or "").strip()
        # What is empty is refused below, where the texts are looked at as well.
        if gender and gender not in GENDERS:
            raise InputError(
                f"Expected a gender of md_gender ({', '.join(GENDERS)}) in line "
                f"{record.place} of {path}, received something else."
            )
        if not gender or gender in config.genders:
            kept.append(record)
    if not kept:
        raise InputError(
            f"Expected a row about {' or '.join(config.genders)} in {path}, received "
            "none."
        )
    provenance = {
        "source": str(path),
        "format": "md_gender",
        "sha256": hashlib.sha256(data).hexdigest(),
        "other_rows": len(records) - len(kept),
    }
    return assemble(kept, source, _COLUMNS, _MAX_CHARS, provenance)


def _page_records(text: str, source: Source) -> list[Record]:
    """Funpedia and Wizard: an object a line with text and gender."""
    return read_jsonl(text, ("text", "gender"), source)


def _inferred_records(text: str, source: Source) -> list[Record]:
    """A line: the text, a tab, ABOUT:gender, a tab and the classifier's score."""
    records = []
    for place, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.rsplit("\t", 2)
        if len(cells) != 3 or not cells[1].startswith(_ABOUT):
            raise InputError(
                f"Expected text, ABOUT:gender and a score with tabs between them in "
                f"line {place} of {source.name}, received something else."
            )
        records.append(Record(place, (cells[0], cells[1].removeprefix(_ABOUT))))
    return records


def _new_data_records(text: str, source: Source) -> list[Record]:
    """An object a line, of which those of class "about" have a list of one label."""
    records = []
    for place, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fields = _object(line)
        labels = fields.get("labels")
        about = fields.get("class_type") == "about"
        known = isinstance(fields.get("text"), str) and isinstance(labels, list)
        if not known or not all(isinstance(label, str) for label in labels):
            raise InputError(
                "Expected an object with text, class_type and a list of labels in "
                f"line {place} of {source.name}, received something else."
            )
        if about:
            gender = labels[0].removeprefix(_ABOUT) if len(labels) == 1 else "several"
            records.append(Record(place, (fields["text"], gender)))
    return records


def _object(line: str) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        # Swallowed on purpose: the decoder's error carries the line.
        return {}
    return value if isinstance(value, dict) else {}


def _official(folder: str, pattern: str) -> dict[str, str]:
    names = zip(_PARTS, ("train", "valid", "test"), strict=True)
    return {part: f"{folder}/{pattern.format(name)}" for part, name in names}


def _page(corpus: str, genders: tuple[str, ...], summary: str) -> MDGenderConfig:
    return MDGenderConfig(
        summary, _official(corpus, "{}.jsonl"), genders, _page_records
    )


def _inferred(corpus: str, summary: str) -> MDGenderConfig:
    files = _official("inferred_about", corpus + "_{}.txt")
    return MDGenderConfig(summary, files, ("female", "male"), _inferred_records)


_CONFIGS = MappingProxyType(
    {
        "funpedia": _page(
            "funpedia", GENDERS, "Funpedia: female, male or neither; official parts."
        ),
        "wizard": _page(
            "wizard",
            ("female", "male"),
            "Wizard of Wikipedia, female against male; official parts.",
        ),
        "wizard_as_published": _page(
            "wizard",
            ("female", "gender-neutral"),
            "Wizard without its male rows, as ADS and RMAT used it; official parts.",
        ),
        "convai2": _inferred(
            "convai2", "ConvAI2, inferred female against male; official parts."
        ),
        "light": _inferred(
            "light", "LIGHT, inferred female against male; official parts."
        ),
        "opensubtitles": _inferred(
            "opensubtitles",
            "OpenSubtitles, inferred female against male; official parts.",
        ),
        "new_data": MDGenderConfig(
            "Rewritten sentences with human labels, female against male; a test set.",
            {"test": "new_data/data.jsonl"},
            ("female", "male"),
            _new_data_records,
        ),
    }
)
