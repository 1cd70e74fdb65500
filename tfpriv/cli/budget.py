"""`tfpriv budget`: what all releases of a data set may cost together, and did."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv.cli._common import JsonOption, UsageCommand, before_work, print_json

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget, PrivacyLedger

app = typer.Typer(help="Give a data set a privacy budget, and see what was spent.")

_Id = Annotated[
    str | None,
    typer.Option("--id", metavar="NAME", help="What the data set is called."),
]


@app.command(cls=UsageCommand)
def init(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The file of private records.")
    ],
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon", metavar="E", help="What all releases together may cost."
        ),
    ],
    delta: Annotated[
        float,
        typer.Option(
            "--delta", metavar="D", help="Beside it; below 1 / number of records."
        ),
    ] = 1e-5,
    id: _Id = None,
    as_json: JsonOption = False,
) -> None:
    """Give a data set a budget that every private release of it is charged to.

    The budget is kept under TFPRIV_STATE_DIR, else ~/.local/state/tfpriv, and can
    never be made larger. Without --id the file's name is taken.
    """
    from tfpriv.accounting import DataBudget

    with before_work():
        budget = DataBudget.create(data, epsilon=epsilon, delta=delta, id=id)
    result = {
        "id": budget.id,
        "limit_epsilon": budget.limit_epsilon,
        "delta": budget.delta,
        "ledger": str(budget.ledger.path),
    }
    if as_json:
        print_json(result)
        return
    typer.echo(
        f"Data set {budget.id}: epsilon {budget.limit_epsilon:g} at delta "
        f"{budget.delta:g}, for all releases together."
    )
    typer.echo(f"Charged to {budget.ledger.path}; keep it, and the key beside it.")


@app.command(cls=UsageCommand)
def show(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA|ID|LEDGER]",
            help="A file with a budget, its id, or the ledger or folder of a run. "
            "Default: all budgets.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was spent on what, and what is left. Reads no record.

    The Renyi accountant (RDP) decides what still fits; PLD, which is tighter, is
    shown beside it.
    """
    from tfpriv.accounting import DataBudget
    from tfpriv.accounting._state import budget_ids

    with before_work():
        if what is None:
            results = [
                _of_budget(DataBudget.load(name, read_only=True))
                for name in budget_ids()
            ]
        else:
            results = [_found(what)]
    if as_json:
        print_json(results if what is None else results[0])
        return
    if not results:
        typer.echo("No data set has a budget here. `tfpriv budget init` gives one.")
    for number, result in enumerate(results):
        if number:
            typer.echo()
        _print(result)


@app.command(cls=UsageCommand)
def accept(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="A file that is new or has changed."),
    ] = None,
    id: _Id = None,
    moved: Annotated[
        str | None,
        typer.Option(
            "--moved", metavar="NAME", help="A data set whose ledger was copied here."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Declare that a changed file is a known data set, or that a copied ledger counts.

    What was spent stays spent, for the new records too.
    """
    from tfpriv.accounting import DataBudget

    if (data is None) == (moved is None) or (data is not None) != (id is not None):
        raise InputError(
            "Expected DATA with --id NAME, or --moved NAME alone, received something "
            "else."
        )
    with before_work():
        if moved is not None:
            budget = DataBudget.accept_move(moved)
        else:
            budget = DataBudget.load(id)
            budget.accept(data)
    result = {"id": budget.id, "file": None if data is None else str(data)}
    if as_json:
        print_json(result)
    elif moved is None:
        typer.echo(f"{data} is data set {budget.id}; what was spent stays spent.")
    else:
        typer.echo(f"The ledger in {budget.ledger.path.parent} counts from now on.")


def _found(what: str) -> dict[str, Any]:
    """Finds a budget by id or file, or the ledger of a run by file or folder."""
    from tfpriv.accounting import DataBudget, PrivacyLedger
    from tfpriv.accounting._state import budget_ids

    if what in budget_ids():
        return _of_budget(DataBudget.load(what, read_only=True))
    path = Path(what)
    for ledger in (path, path / "ledger.jsonl", path / "internal" / "ledger.jsonl"):
        if ledger.suffix == ".jsonl" and _is_ledger(ledger):
            return _of_ledger(PrivacyLedger.existing(ledger, read_only=True))
    if path.is_file():
        budget = DataBudget.find(path)
        if budget is None:
            raise InputError(
                f"Expected a file with a budget, received {path}, which has none. "
                f"tfpriv budget init {path} --epsilon E gives it one."
            )
        return _of_budget(budget)
    known = ", ".join(budget_ids()) or "none"
    raise InputError(
        f"Expected a file, a run or the id of a data set, received {what!r}. Data "
        f"sets with a budget here: {known}."
    )


def _is_ledger(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"tfpriv-privacy-ledger"' in file.read(4096)


def _of_budget(budget: DataBudget) -> dict[str, Any]:
    result = _of_ledger(budget.ledger)
    left = budget.largest_affordable()
    return result | {
        "id": budget.id,
        "adjacency": budget.adjacency,
        "groups": [dataclasses.asdict(total) for total in budget.group_totals()],
        "left": None
        if left is None
        else {"gaussian_epsilon": left[0], "noise_multiplier": left[1]},
    }


_NOTES = {
    "internal": "internal, not private, not charged",
    "unprotected": "LEFT WITHOUT A GUARANTEE, which no epsilon can pay for",
}


def _of_ledger(ledger: PrivacyLedger) -> dict[str, Any]:
    from tfpriv.accounting import Charge, epsilon
    from tfpriv.accounting.composition import additive_delta
    from tfpriv.accounting.statement import describe

    rows = []
    for line in ledger.lines():
        charged = isinstance(line, Charge)
        kind = None if charged else next((k for k in _NOTES if line.details.get(k)), "")
        if kind == "":
            continue  # about files and places
        rows.append(
            {
                "time": line.time,
                "what": line.name,
                "part": line.part if charged else None,
                "charged": charged,
                "event": line.event.to_json() if charged else None,
                "did": describe(line.event) if charged else _NOTES[kind],
                "epsilon_alone": epsilon(line.event, ledger.delta) if charged else None,
            }
        )
    prices: dict[str, float | None] = {"rdp": ledger.epsilon()}
    try:
        prices["pld"] = ledger.epsilon("pld")
    except InputError:
        prices["pld"] = None
    return {
        "schema_version": 1,
        "ledger": str(ledger.path),
        "limit_epsilon": ledger.limit_epsilon,
        "delta": ledger.delta,
        "epsilon": prices,
        "decided_by": "rdp",
        "additive_delta": additive_delta(ledger.event()),
        "lines": rows,
    }


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    limit, delta = result["limit_epsilon"], result["delta"]
    name = f"Data set {result['id']}" if "id" in result else "A run"
    allowed = "no limit" if math.isinf(limit) else f"epsilon {limit:g}"
    console.print(Text(f"{name}: {allowed} at delta {delta:g} ({result['ledger']})"))
    if result["lines"]:
        table = Table(box=None, pad_edge=False)
        for column in ("when", "what", "how", "epsilon alone"):
            table.add_column(column, overflow="fold")
        for row, times in _counted(result["lines"]):
            what = (
                row["what"] if row["part"] is None else f"{row['what']} [{row['part']}]"
            )
            alone = (
                "not charged" if not row["charged"] else _figure(row["epsilon_alone"])
            )
            how = row["did"] if times == 1 else f"{times:,} times: {row['did']}"
            table.add_row(*map(Text, (row["time"][:10], what, how, alone)))
        console.print(table)
    spent = _figure(result["epsilon"]["rdp"])
    beside = _figure(result["epsilon"]["pld"])
    console.print(
        f"Spent, composed from all events: epsilon {spent} by RDP, which decides "
        f"(PLD: {beside})."
    )
    taken = result["additive_delta"]
    if taken:
        console.print(
            f"Selections and cut-off noise took {rounded_up(taken, 2)} of that delta."
        )
    if "id" in result:
        _print_left(console, result)


def _print_left(console: Any, result: dict[str, Any]) -> None:
    neighbours = {
        "add-or-remove-one": "adding or removing one record",
        "zero-out-one": "replacing one record by an empty one",
        "replace-one": "replacing one record by any other",
    }
    left = result["left"]
    if left is None:
        console.print("Left: nothing that any amount of noise could pay for.")
    else:
        console.print(
            "Left: for instance one more Gaussian release of epsilon "
            f"{_figure(left['gaussian_epsilon'])} by itself (noise multiplier "
            f"{left['noise_multiplier']:.4g})."
        )
    console.print(f"All of it for {neighbours[result['adjacency']]}.")
    for group in result["groups"]:
        console.print(_together(group))


def _together(group: dict[str, Any]) -> str:
    if group["unbounded"]:
        times = (
            "one charge" if group["unbounded"] == 1 else f"{group['unbounded']} charges"
        )
        cost = f": no bound, since {times} did not have --group"
    elif math.isinf(group["epsilon"]):
        cost = f", {group['size']} at most: no bound at this delta"
    else:
        cost = f", {group['size']} at most: {_figure(group['epsilon'])}"
    return f"For all the records of one {group['unit']}{cost}."


def _counted(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Equal lines that follow each other as one, with how many they were."""
    found: list[tuple[dict[str, Any], int]] = []
    for row in rows:
        if found and _but_time(found[-1][0]) == _but_time(row):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((row, 1))
    return found


def _but_time(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "time"}


def _figure(value: float | None) -> str:
    return "n/a" if value is None else rounded_up(value)
