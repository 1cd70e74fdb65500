"""`tfpriv synthesize`: a private labelled text file in, a synthetic one out."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import as_given, percent, rounded_up
from tfpriv._files import PRIVATE, PUBLIC, atomic_write, write_json
from tfpriv._validation import integer, one_of, positive, probability
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    UsageCommand,
    before_work,
    print_json,
    quiet_import,
    resumable,
    say,
    warn,
)
from tfpriv.cli._data_budget import budget_of
from tfpriv.cli._record_options import (
    FormatOption,
    GroupColumnOption,
    GroupSizeOption,
    RecordsArgument,
    RunOption,
    TextOption,
    group_bound,
)
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget
    from tfpriv.datasets import TextDataset
    from tfpriv.seqgan.dp_seqgan import DPSeqGAN

app = typer.Typer()

# In a run's internal folder: where its records are, for audits.
SOURCE = "source.json"
_DELTA_HINT = "Use a value below 1 / number of records."
# A tenth of it goes to the selection of label names, which takes 1e-12 or more.
_LEAST_DELTA = 1e-11


@app.command(cls=UsageCommand)
def synthesize(
    file: RecordsArgument,
    text: TextOption,
    label: Annotated[
        str, typer.Option("--label", metavar="COL", help="Column of the label.")
    ],
    output: RunOption,
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", metavar="E", help="What the whole release may cost."),
    ] = 8.0,
    delta: Annotated[
        float,
        typer.Option(
            "--delta",
            metavar="D",
            help="Beside epsilon: what may go wrong altogether. Below 1 / records.",
        ),
    ] = 1e-5,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", metavar="N", help="Synthetic rows; else the noisy count."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="A,B",
            help="Label names, if they are public; else they are found privately.",
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="guaranteed; or paper, seqgan: the published settings, which have "
            "no guarantee.",
        ),
    ] = "guaranteed",
    discriminator_steps: Annotated[
        int,
        typer.Option(
            "--discriminator-steps",
            metavar="N",
            help="Private steps of each discriminator; 0 spends all on counts.",
        ),
    ] = 12,
    group: GroupColumnOption = None,
    group_size: GroupSizeOption = None,
    format: FormatOption = None,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", help="Of weights and text, not of noise."),
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Rewrite a private labelled text file into a synthetic one to share.

    DIR/release/ may leave: synthetic.csv, privacy.json, statement.txt. DIR/internal/
    must not: ledger, checkpoints, model. A run that was killed goes on when the
    command is given again; what it had spent stays spent. If FILE has a budget
    (`tfpriv budget init`), the whole run is charged to it first.
    """
    del config
    names = label_names(labels)
    opened = contextlib.ExitStack()
    with opened, before_work():
        _check(epsilon, delta, rows, mode, seed, discriminator_steps)
        bound = group_bound(group, group_size)
        if names is None and mode == "guaranteed" and delta < _LEAST_DELTA:
            raise InputError(
                f"Expected delta >= {_LEAST_DELTA:g} where label names are found "
                f"privately, received delta={delta:g}. Take a larger one, or declare "
                "the names with --labels."
            )
        settings = {
            "mode": mode,
            "epsilon": epsilon if mode == "guaranteed" else None,
            "delta": delta,
            "labels": names if names is None else list(names),
            "discriminator_steps": discriminator_steps,
            "seed": seed,
            "group": bound and dataclasses.asdict(bound),
        }
        model, budget = None, budget_of(file)
        if budget is not None:
            model = make_model(settings)
            ledger = output / "internal" / "ledger.jsonl"
            budget.require(model.event(), f"synthetic text in {output}", ledger)
        data = read_private(file, text=text, label=label, group=group, format=format)
        check_classes(data, names, delta, mode)
        if bound is not None:
            bound.check(data.groups)
        if budget is not None:
            budget.check_data()
        records = zip(data.texts, data.labels, strict=True)
        folder = opened.enter_context(RunFolder(output, records, settings))
        if model is None:
            model = make_model(settings)
        say_resuming(model, folder)
        opened = opened.pop_all()
    with opened, resumable(output):
        source = {"file": str(file.resolve()), "format": format}
        write_json(folder.internal / SOURCE, source, mode=PRIVATE)
        show_plan(model)
        result, _ = release(model, data, folder, rows, budget)
    if as_json:
        print_json(result)
    else:
        show_result(result)


def make_model(settings: dict[str, Any]) -> DPSeqGAN:
    """Returns the untrained model; its import takes seconds."""
    with quiet_import():
        from tfpriv.seqgan.dp_seqgan import DPSeqGAN

    if settings["epsilon"] is None:
        settings = {**settings, "epsilon": math.inf}
    group = settings.get("group")
    if group is not None:
        from tfpriv.accounting import GroupBound

        group = GroupBound(**group)
    return DPSeqGAN(**{**settings, "group": group})


def read_private(
    file: Path,
    *,
    text: str,
    label: str,
    group: str | None = None,
    format: str | None = None,
) -> TextDataset:
    """Reads the records; what was left out is said on stderr."""
    from tfpriv.datasets import read_table

    if text == label:
        raise InputError(
            f"Expected different columns for --text and --label, received {text!r} "
            "for both."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_table(file, text=text, label=label, group=group, format=format)
    for warning in caught:
        warn(str(warning.message))
    return data


def check_classes(
    data: TextDataset, names: tuple[str, ...] | None, delta: float, mode: str
) -> None:
    """Refuses data that no run can use, and warns of a delta that means little."""
    found = set(data.labels)
    if names is None and len(found) < 2:
        raise InputError(
            f"Expected at least two labels in column {data.label_column!r}, received "
            f"{len(found)}. Choose the column that tells the classes apart."
        )
    # Not refused: a release that is there would tell that each name has a record.
    missing = [name for name in names or () if name not in found]
    if missing:
        warn(
            f"no record has the label {missing[0]!r} of --labels; its rows will be "
            "noise. Check the names, and the column given as --label."
        )
    if names is not None and len(names) < 2:
        raise InputError(f"Expected at least two --labels, received {len(names)}.")
    others = sum(label not in names for label in data.labels) if names else 0
    if others:
        warn(
            f"{others} of {len(data)} records have a label that is not among --labels "
            "and are left out."
        )
    if delta >= 1 / len(data) and mode == "guaranteed":
        warn(
            f"delta={delta:g} is not below 1 / number of records: at such a delta a "
            "mechanism may publish a whole record now and then. Take a smaller one."
        )


def show_plan(model: DPSeqGAN) -> None:
    """Prints how the budget is divided, before anything is read with it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    if model.mode == "guaranteed":
        title = (
            f"Plan: epsilon {as_given(model.epsilon)} at delta "
            f"{as_given(model.delta)}, for everything in release/"
        )
    else:
        title = f"Plan: mode {model.mode}; the release has NO guarantee"
    console.print(title, highlight=False)
    table = Table()
    rows = model.plan()
    for column in rows[0]:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(_shown(name, value) for name, value in row.items()))
    console.print(table)


def release(
    model: DPSeqGAN,
    data: TextDataset,
    folder: RunFolder,
    rows: int | None,
    budget: DataBudget | None = None,
) -> tuple[dict[str, Any], TextDataset]:
    """Trains or goes on training, then writes the release.

    Returns:
        (what a command shows or prints as JSON, the synthetic records).
    """
    before = folder.statement()
    model.fit(data, run_dir=folder.internal, data_budget=budget)
    for name, number in model.collapsed.items():
        warn(
            f"label {name!r}: after adversarial round {number} its text was half as "
            "diverse as before the first, or less (mode collapse). Its training ended "
            "there, with the weights of the round before."
        )
    model.save(folder.internal / "model")
    synthetic = model.generate(rows)
    statement = model.privacy_statement()
    with folder.staged_release() as staged:
        synthetic.to_csv(staged / "synthetic.csv", mode=PUBLIC)
        with atomic_write(staged / "statement.txt", mode=PUBLIC) as file:
            file.write(str(statement) + "\n")
        statement.write(staged / "privacy.json")
    finished = before is not None and before == folder.statement()
    if finished:
        say("the run was finished already: nothing more was charged.")
    result = {
        "synthetic": str(folder.release / "synthetic.csv"),
        "privacy": str(folder.release / "privacy.json"),
        "statement": str(folder.release / "statement.txt"),
        "finished_before": finished,
        "rows": len(synthetic),
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "group": statement.to_json()["group"],
        "collapsed": model.collapsed,
        "labels": {
            name: sum(label == name for label in synthetic.labels)
            for name in synthetic.label_names
        },
        "text_column": synthetic.text_column,
        "label_column": synthetic.label_column,
        "examples": [
            [label, text]
            for label, text in zip(
                synthetic.labels[:10], synthetic.texts[:10], strict=True
            )
        ],
    }
    return result, synthetic


def say_resuming(model: DPSeqGAN, folder: RunFolder) -> None:
    """Says where a run that was broken off goes on; of a new one nothing.

    Raises:
        InputError: its ledger is damaged.
    """
    from tfpriv.seqgan.run_store import RunStore

    if not (folder.internal / "ledger.jsonl").exists():
        return
    store = RunStore(folder.internal)
    ledger = store.ledger(limit_epsilon=model.epsilon, delta=model.delta)
    charged = len(ledger.events())
    if not charged or folder.statement() is not None:
        return
    spent = ""
    if math.isfinite(ledger.epsilon()):
        spent = (
            f", epsilon {rounded_up(ledger.epsilon())} of {as_given(model.epsilon)}; "
            "steps behind the last checkpoint are charged again"
        )
    say(f"going on from step {charged + 1}: {charged} were charged before{spent}.")


def show_result(result: dict[str, Any]) -> None:
    """Prints up to ten synthetic rows, the guarantee and what was written."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    # Not the table's title, which would be as narrow as the rows.
    console.print(f"{len(result['examples'])} of {result['rows']} synthetic rows")
    table = Table()
    table.add_column(result["label_column"])
    table.add_column(result["text_column"], overflow="fold")
    for label, text in result["examples"]:
        table.add_row(Text(label), Text(text))
    console.print(table)
    if math.isinf(result["epsilon"]):
        console.print("Guarantee: none. See statement.txt for why.")
    else:
        console.print(
            f"Guarantee: epsilon {rounded_up(result['epsilon'])} at delta "
            f"{as_given(result['delta'])}, for adding or removing one record."
        )
        _show_group(result["group"])
    console.print(f"Wrote {result['rows']} rows:")
    for name in ("synthetic", "privacy", "statement"):
        console.print(f"  {result[name]}", soft_wrap=True, highlight=False)


def _show_group(group: dict[str, Any] | None) -> None:
    if group is None:
        return
    cost = group["epsilon"]
    typer.echo(
        f"For all the records of one {group['unit']}, {group['size']} at most: "
        + ("no bound." if cost is None else f"epsilon {rounded_up(cost)}.")
    )


def _check(
    epsilon: float,
    delta: float,
    rows: int | None,
    mode: str,
    seed: int,
    discriminator_steps: int,
) -> None:
    one_of(("guaranteed", "paper", "seqgan"), mode=mode)
    positive(epsilon=epsilon)
    probability(_DELTA_HINT, delta=delta)
    if rows is not None:
        integer(rows=rows)
    integer(0, seed=seed, discriminator_steps=discriminator_steps)


def label_names(labels: str | None) -> tuple[str, ...] | None:
    """Returns the names of --labels, which commas separate."""
    if labels is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in labels.split(",")))
    if not all(names):
        raise InputError(
            f"Expected names separated by commas for --labels, received {labels!r}."
        )
    return names


def _shown(column: str, value: Any) -> str:
    if value is None:
        return "none"
    if column == "share":
        return percent(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
