"""What a finished run of `tfpriv synthesize` says of itself."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.cli._common import warn
from tfpriv.cli._declared_labels import of_declared_labels
from tfpriv.cli.synthesize import SOURCE

if TYPE_CHECKING:
    from tfpriv.accounting.verification import Statement
    from tfpriv.datasets import TextDataset

_GO_ON = "Give its `tfpriv synthesize` command again to go on."


@dataclasses.dataclass(frozen=True)
class SynthesisRun:
    """A finished run.

    Attributes:
        path: its folder.
        text: name of the text column.
        label: name of the label column.
        labels: label names that were declared; records with others were left out.
            None where they were found.
        statement: what its release is said to guarantee.
    """

    path: Path
    text: str
    label: str
    labels: tuple[str, ...] | None
    statement: Statement

    @classmethod
    def read(cls, path: Path) -> SynthesisRun:
        """Reads statement and settings.

        Raises:
            InputError: there is no run, its release is not there yet, or another
                version wrote it.
        """
        from tfpriv.accounting.verification import differences, read_statement

        if not (path / "internal").is_dir():
            raise InputError(
                f"Expected the folder of a run of `tfpriv synthesize` or `tfpriv rmat "
                f"train`, received {path}, which has no internal/. For files of other "
                "text give --synthetic."
            )
        for name in (
            "release/privacy.json",
            "release/synthetic.csv",
            "internal/model/model.json",
        ):
            if not (path / name).is_file():
                raise InputError(
                    f"Expected a run that has ended, received {path} without {name}. "
                    f"{_GO_ON}"
                )
        recorded = _json(path / "release" / "privacy.json")
        statement = read_statement(recorded)
        for fault in differences(recorded, statement)[:1]:
            warn(
                f"{path}/release/privacy.json states otherwise than its events give: "
                f"{fault}. The claim is taken from the events."
            )
        config = _json(path / "internal" / "model" / "model.json")
        try:
            text, label = map(str, config["columns"])
            labels = config["labels"]
            labels = None if labels is None else tuple(map(str, labels))
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"Expected a run of `tfpriv synthesize` of this version, received "
                f"{path}, whose internal/model/model.json is another's. Use the tfpriv "
                "that wrote it."
            ) from None
        return cls(path, text, label, labels, statement)

    @property
    def delta(self) -> float:
        """Delta of the statement."""
        return self.statement.delta

    def epsilon(self, delta: float) -> float:
        """What the same events cost at a delta; infinite where that is no claim."""
        from tfpriv import accounting

        if delta == self.delta:
            return self.statement.epsilon
        if not delta:
            return math.inf
        event = self.statement.event()
        return accounting.epsilon(event, delta, self.statement.accountant)

    @property
    def source(self) -> tuple[Path | None, str | None]:
        """Where the records were, and their format; None where it is not known."""
        try:
            value = json.loads((self.path / "internal" / SOURCE).read_text("utf-8"))
            return Path(value["file"]), value["format"]
        except (OSError, ValueError, KeyError, TypeError):
            return None, None

    @property
    def synthetic(self) -> Path:
        """The file of the released texts."""
        return self.path / "release" / "synthetic.csv"

    def used(self, records: TextDataset) -> TextDataset:
        """The records that a run learns from: those of the declared labels.

        Raises:
            InputError: there is none.
        """
        return of_declared_labels(records, self.labels, self.path)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(
            f"Expected {path} as `tfpriv synthesize` wrote it, received a damaged file."
        ) from None
