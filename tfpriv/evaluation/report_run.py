"""What a report reads of a run: what was released, and apart from it the rest.

`ReleasedFiles` opens nothing outside `release/`. The report that may leave is made of
it alone, so that it cannot tell more than the release does.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.accounting import PrivacyLedger
from tfpriv.accounting.representation_statement import RepresentationStatement
from tfpriv.accounting.verification import differences, read_statement
from tfpriv.datasets import TextDataset, read_table

if TYPE_CHECKING:
    from tfpriv.accounting.verification import Statement

TEXT, REPRESENTATION = "synthetic text", "representation"
_AGAIN = {
    TEXT: "tfpriv synthesize",
    REPRESENTATION: "tfpriv rmat train",
}
# Versions of a run's settings that this tfpriv reads; those of `tfpriv synthesize`
# carry no number.
_CONFIG_VERSIONS = (None, 1)
_MODES = ("guaranteed", "paper", "seqgan")
_COMMAND = "rmat train"


@dataclasses.dataclass(frozen=True)
class ReleasedFiles:
    """The contents of a run's `release/`.

    Attributes:
        statement: computed anew from what privacy.json records.
        faults: values that privacy.json states otherwise than its events give.
        versions: of the libraries that wrote it.
        synthetic: the released rows, or None where no text is released.
        dropped: rows of the released file without text or label, which do not count.
        digests: name of a released file to its SHA-256.
    """

    statement: Statement
    faults: tuple[str, ...]
    versions: dict[str, str]
    synthetic: TextDataset | None
    dropped: int
    digests: dict[str, str]

    @property
    def kind(self) -> str:
        """What was released: "synthetic text" or "representation"."""
        return REPRESENTATION if self.synthetic is None else TEXT

    @classmethod
    def read(cls, run: Path) -> ReleasedFiles:
        """Reads the release of a run.

        Raises:
            InputError: no run, one that is not finished or of another version, or a
                damaged file.
        """
        folder = run / "release"
        if not (run / "internal").is_dir() and not folder.is_dir():
            raise InputError(
                f"Expected the folder of a run of tfpriv, received {run}, which has no "
                "release/ and no internal/. Make one with `tfpriv synthesize` or "
                "`tfpriv rmat train`."
            )
        path = folder / "privacy.json"
        if not path.is_file():
            raise InputError(
                f"Expected a run that has ended, received {run} without "
                "release/privacy.json. Give its command again to go on."
            )
        try:
            recorded = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise InputError(
                f"Expected {path} as the run wrote it, received no JSON."
            ) from None
        statement = read_statement(recorded)
        synthetic, dropped = None, 0
        if not isinstance(statement, RepresentationStatement):
            synthetic, dropped = _read_synthetic(folder / "synthetic.csv", run)
        versions = recorded.get("versions")
        return cls(
            statement=statement,
            faults=tuple(map(str, differences(recorded, statement))),
            versions=versions if isinstance(versions, dict) else {},
            synthetic=synthetic,
            dropped=dropped,
            digests={
                name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                for name in ("privacy.json", "synthetic.csv")
                if (folder / name).is_file()
            },
        )


@dataclasses.dataclass(frozen=True)
class InternalFiles:
    """What a report shows of a run's `internal/`. None where there is no such file.

    Attributes:
        config: the settings of the run.
        ledger: of what was charged.
        evaluation: scores of the task on held-out rows.
        history: figures of each epoch.
        candidates: how near each class's candidates came to the released counts.
        labels: names of the classes, in the order of `candidates`.
        attribute_attack: what `tfpriv rmat attack` wrote.
        audit: what `tfpriv audit` wrote.
        source: "file" and "format" of the records, of a run of `tfpriv synthesize`.
        damaged: names of files that are there and cannot be used.
    """

    config: dict[str, Any]
    ledger: PrivacyLedger | None
    evaluation: dict[str, Any] | None
    history: list[dict[str, Any]] | None
    candidates: list[dict[str, Any]] | None
    labels: list[str] | None
    attribute_attack: dict[str, Any] | None
    audit: dict[str, Any] | None
    source: dict[str, Any] | None
    damaged: tuple[str, ...]

    @classmethod
    def read(cls, run: Path, kind: str) -> InternalFiles:
        """Reads what is there.

        Args:
            run: its folder.
            kind: of `ReleasedFiles.kind`.

        Raises:
            InputError: no settings, or those of another version; a damaged ledger.
        """
        folder = run / "internal"
        config = _config(folder / "config.json", run, kind)
        damaged: list[str] = []

        def optional(name: str, expected: type) -> Any:
            path = folder / name
            if not path.is_file():
                return None
            try:
                value = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, expected):
                damaged.append(name)
                return None
            return value

        source = optional("source.json", dict)
        if source is not None and not {"file", "format"} <= set(source):
            source = None
        ledger = folder / "ledger.jsonl"
        return cls(
            config=config,
            ledger=PrivacyLedger.existing(ledger, read_only=True)
            if ledger.is_file()
            else None,
            evaluation=optional("evaluation.json", dict),
            history=optional("history.json", list),
            candidates=optional("model/classes.json", list),
            labels=optional("labels.json", list) or config.get("labels"),
            attribute_attack=optional("attack.json", dict),
            audit=optional("audit.json", dict),
            source=source,
            damaged=tuple(damaged),
        )


def _read_synthetic(path: Path, run: Path) -> tuple[TextDataset, int]:
    """Reads the released rows; the first column is the text, the second the label."""
    if not path.is_file():
        raise InputError(
            f"Expected a run that has ended, received {run} without "
            "release/synthetic.csv. Give its `tfpriv synthesize` command again."
        )
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"Expected {path} as the run wrote it, received no CSV in UTF-8. Give the "
            "run's `tfpriv synthesize` command again."
        ) from None
    if len(header) != 2:
        raise InputError(
            f"Expected {path} with a text and a label column, received {len(header)} "
            "columns. Give the run's `tfpriv synthesize` command again."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is left out is counted instead
        rows = read_table(path, text=header[0], label=header[1])
    return rows, rows.provenance["rows"] - len(rows)


def _names(labels: Any) -> bool:
    """Whether these are names of labels, or None."""
    if labels is None:
        return True
    return isinstance(labels, list) and all(isinstance(name, str) for name in labels)


def _config(path: Path, run: Path, kind: str) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"Expected a whole run, received {run} without internal/config.json. For "
            "the release alone there is `tfpriv report DIR --release`."
        ) from None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict) or not _names(config.get("labels")):
        raise InputError(
            f"Expected the settings of a run in {path}, received a damaged file."
        )
    if (version := config.get("schema_version")) not in _CONFIG_VERSIONS:
        raise InputError(
            f"Expected a run of a version that this tfpriv knows, received {run} of "
            f"version {version!r}. Use the tfpriv that made it."
        )
    ours = config.get("command") == _COMMAND
    if ours != (kind == REPRESENTATION) or (
        kind == TEXT and config.get("mode") not in _MODES
    ):
        raise InputError(
            f"Expected a run of `{_AGAIN[kind]}`, which released a {kind}, received "
            f"{run}, whose settings are another command's or another version's."
        )
    return config
