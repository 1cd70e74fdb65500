"""What `tfpriv report` reads before it works."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.cli._common import say, warn
from tfpriv.cli._data_budget import budget_of
from tfpriv.cli._declared_labels import of_declared_labels
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget
    from tfpriv.datasets import TextDataset
    from tfpriv.evaluation import PublicPerplexity
    from tfpriv.evaluation.report_run import InternalFiles, ReleasedFiles


@dataclasses.dataclass(frozen=True)
class ReportInputs:
    """A run, or its release alone.

    Attributes:
        released: what may leave.
        public: a model of public texts that were given, None for the package's own.
        files: what may not; None for the page of a release.
        real: the records, as far as the run learnt from them; None without.
        held_out: records that it was not made from, or None.
        budget: of the file of the records, or None.
    """

    released: ReleasedFiles
    public: PublicPerplexity | None
    files: InternalFiles | None = None
    real: TextDataset | None = None
    held_out: TextDataset | None = None
    budget: DataBudget | None = None

    @classmethod
    def of_release(
        cls, directory: Path, public: Path | None, given: Mapping[str, Any]
    ) -> ReportInputs:
        """Reads a release, and nothing else of the run.

        Args:
            directory: of the run.
            public: file of public texts, or None.
            given: options that a release has no use for; None where not given.

        Raises:
            InputError: one of these, no release, or one whose statement is not true.
        """
        from tfpriv.evaluation.report_run import ReleasedFiles

        for option, value in given.items():
            if value is not None:
                raise InputError(
                    f"Expected no {option} beside --release, received {option} "
                    f"{value}: what may leave is made of the release alone. Leave out "
                    "one of them."
                )
        released = ReleasedFiles.read(directory)
        if released.faults:
            raise InputError(
                f"Expected a statement that its own events bear out, received "
                f"{directory}, {released.faults[0]}. See tfpriv statement --verify."
            )
        return cls(released, _model_of(public))

    @classmethod
    def of_run(
        cls,
        directory: Path,
        public: Path | None,
        given: Mapping[str, Any],
        opened: contextlib.ExitStack,
    ) -> ReportInputs:
        """Reads a whole run and its records.

        Args:
            directory: of the run.
            public: file of public texts, or None.
            given: --members, --non-members, --networks; None where not given.
            opened: keeps the run locked, where its records are read.

        Raises:
            InputError: no finished run of this version, other records than the run's,
                a file that cannot be used, or an option without what it takes.
        """
        from tfpriv.evaluation.report_run import TEXT, InternalFiles, ReleasedFiles
        from tfpriv.evaluation.utility import comparable

        released = ReleasedFiles.read(directory)
        files = InternalFiles.read(directory, released.kind)
        for name in files.damaged:
            warn(f"internal/{name} is damaged or another version's: it is left out.")
        if released.kind != TEXT:
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"Expected no {option} for a run of `tfpriv rmat train`, "
                        f"received {option} {value}: what it measured is in its "
                        "folder. Leave it out."
                    )
            return cls(released, _model_of(public), files)
        members, non_members = given["--members"], given["--non-members"]
        real, source = _records(directory, released, files, members, opened)
        if real is None:
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"Expected --members FILE beside {option}, received none. Give "
                        "the records that the run was made of."
                    )
            return cls(released, _model_of(public), files)
        held_out = None
        if non_members is not None:
            held_out = of_declared_labels(
                _read(non_members, released), _declared(files), directory
            )
        comparable(real, released.synthetic, held_out)
        budget = budget_of(source)
        return cls(released, _model_of(public), files, real, held_out, budget)


def _records(
    directory: Path,
    released: ReleasedFiles,
    files: InternalFiles,
    members: Path | None,
    opened: contextlib.ExitStack,
) -> tuple[TextDataset | None, Path | None]:
    """The run's records and their file: the one given, or where they were.

    A run whose records were moved or changed since has a report all the same, which
    says what it leaves out; a file that was given has to be theirs.
    """
    source, format = members, None
    if members is None:
        if files.source is None:
            return None, None
        source, format = Path(files.source["file"]), files.source["format"]
    try:
        data = _read(source, released, format)
        records = zip(data.texts, data.labels, strict=True)
        opened.enter_context(RunFolder(directory, records))
    except InputError as error:
        if members is not None:
            raise
        say(f"usefulness and copies are left out, or give --members. {error}")
        return None, None
    return of_declared_labels(data, _declared(files), directory), source


def _read(
    file: Path, released: ReleasedFiles, format: str | None = None
) -> TextDataset:
    from tfpriv.cli.synthesize import read_private

    rows = released.synthetic
    columns = {"text": rows.text_column, "label": rows.label_column}
    return read_private(file, **columns, format=format)


def _declared(files: InternalFiles) -> list[str] | None:
    return files.config.get("labels") or None


def _model_of(file: Path | None) -> PublicPerplexity | None:
    if file is None:
        return None
    from tfpriv.evaluation import PublicPerplexity

    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(
            f"Expected public texts in UTF-8 for --public, one a line, received {file}."
        ) from None
    return PublicPerplexity(dict.fromkeys(lines))
