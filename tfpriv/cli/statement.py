"""`tfpriv statement`: what a release guarantees, in words, and whether that is true."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import as_given, rounded_up
from tfpriv.cli._common import JsonOption, UsageCommand, before_work, print_json

if TYPE_CHECKING:
    from tfpriv.accounting.verification import Statement

app = typer.Typer()

_SUFFIX = ".privacy.json"


@app.command(cls=UsageCommand)
def statement(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            help="The folder of a run, its release/ folder, or a privacy.json.",
        ),
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Recompute every figure from the recorded events; code 1 if one "
            "differs.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say in words what a release guarantees, and check that it is true.

    First for whoever has to decide, then for whoever wants to compute: every use of
    private records as an event, its noise, and what is not covered. With --verify
    nothing that the file says of epsilon is believed.
    """
    from tfpriv.accounting.plain_words import plain_words
    from tfpriv.accounting.verification import changed_versions, read_statement

    with before_work():
        file = _file(directory)
        recorded = _read(file)
        found = read_statement(recorded)
    faults = _faults(file, recorded, found) if verify else []
    versions = changed_versions(recorded, found)
    if as_json:
        result: dict[str, Any] = {
            "file": str(file),
            "plain_words": plain_words(found),
            "statement": found.to_json(),
            "other_versions": versions,
        }
        if verify:
            result |= {"verified": not faults, "differences": faults}
        print_json(result)
    else:
        if not verify:
            _print(found, plain_words(found))
        _print_versions(recorded, versions)
        if verify and not faults:
            typer.echo(
                f"Verified: {file} states what its recorded events cost, epsilon "
                f"{rounded_up(found.epsilon, 6)} at delta {as_given(found.delta)}."
            )
    if faults:
        more = f" (and {len(faults) - 1} more; see --json)" if len(faults) > 1 else ""
        advice = (
            " A library has another version than when it was written."
            if versions
            else " It was changed after it was written, or written by other means."
        )
        raise RuntimeError(
            f"Expected {file} to state what its recorded events cost, received "
            f"{faults[0]}{more}.{advice}"
        )


def _file(path: Path) -> Path:
    for file in (path / "release" / "privacy.json", path / "privacy.json"):
        if file.is_file():
            return file
    if path.is_file():
        beside = path.with_name(path.name + _SUFFIX)
        return beside if beside.is_file() else path
    raise InputError(
        f"Expected the folder of a release, received {path}, which has no "
        "release/privacy.json and no privacy.json."
    )


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(
            f"Expected the privacy.json of a release, received {file}, which is no "
            "JSON."
        ) from None


def _faults(file: Path, recorded: dict[str, Any], found: Statement) -> list[str]:
    """What differs: in the file, in the text beside it, from the run's own ledger."""
    from tfpriv.accounting.verification import differences

    faults = [str(difference) for difference in differences(recorded, found)]
    text = file.with_name("statement.txt")
    if file.name == "privacy.json" and text.is_file():
        words = text.read_text(encoding="utf-8", errors="replace")
        if words.strip() != str(found).strip():
            faults.append(f"{text.name}: recorded other words than the events give")
    return faults + _against_the_ledger(file, found)


def _against_the_ledger(file: Path, found: Statement) -> list[str]:
    from tfpriv.accounting import PrivacyLedger, PrivacyStatement, epsilon

    path = file.parent.parent / "internal" / "ledger.jsonl"
    if not isinstance(found, PrivacyStatement) or not path.is_file():
        return []
    try:
        ledger = PrivacyLedger.existing(path, read_only=True)
    except InputError as error:
        return [str(error)]
    paid = epsilon(ledger.event(), found.delta, found.accountant)
    # What was charged and lost is stated as well; a statement may have more.
    if found.epsilon < paid * (1 - 1e-9):
        return [
            f"epsilon: recorded {rounded_up(found.epsilon, 6)}, the run's ledger has "
            f"{rounded_up(paid, 6)}"
        ]
    return []


def _print(found: Statement, words: list[str]) -> None:
    for line in words:
        typer.echo(textwrap.fill(line, 88))
    typer.echo()
    typer.echo(str(found))


def _print_versions(recorded: dict[str, Any], versions: dict[str, str]) -> None:
    known = recorded.get("versions")
    if isinstance(known, dict) and known:
        names = ", ".join(f"{name} {version}" for name, version in known.items())
        typer.echo(f"Computed with: {names}")
    for name, change in versions.items():
        typer.echo(f"Another version here: {name} {change}")
