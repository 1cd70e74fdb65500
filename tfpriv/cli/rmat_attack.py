"""`tfpriv rmat attack`: does a trained representation tell the private attribute?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, write_json
from tfpriv._validation import integer
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    before_work,
    print_json,
    say,
)
from tfpriv.cli._representation_run import (
    COMMAND,
    columns_of,
    load_model,
    parts_of,
    read_config,
    records,
)
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from tfpriv.attacks import AttributeInferenceAttack, AttributeInferenceResult
    from tfpriv.datasets import Splits

_TRAININGS = 3


def attack(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run of `tfpriv rmat train`.")
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The run's records, where they were moved."
        ),
    ] = None,
    attackers: Annotated[
        str | None,
        typer.Option(
            "--attackers",
            metavar="A,B",
            help="Of logistic_regression, balanced_logistic_regression, mlp, "
            "gradient_boosting. Default: all.",
        ),
    ] = None,
    releases: Annotated[
        int,
        typer.Option(
            "--releases", metavar="R", help="Releases of each text that are seen."
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of the attackers, not of noise.")
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Train fresh attackers on a run's representations and test them on others.

    The training part is encoded for them, the test part to score them, with noise
    drawn afresh. What they find is private: it stays in DIR/internal/attack.json.
    """
    del config
    opened = contextlib.ExitStack()
    with opened, before_work():
        integer(releases=releases)
        integer(0, seed=seed)
        attempt = make_attack(attackers, seed)
        run = read_config(directory)
        source = Path(run["file"]) if file is None else file
        data = columns_of(run).read(source)
        folder = opened.enter_context(
            RunFolder(directory, records(data), {"command": COMMAND})
        )
        parts = parts_of(data, run["split_key"])
        check_parts(parts)
        model = load_model(directory)
        opened = opened.pop_all()
    with opened:
        found = attack_model(attempt, model, parts, releases)
        path = folder.internal / "attack.json"
        statement = model.privacy_statement(releases=releases).to_json()
        result = {**found.to_json(), "statement": statement}
        write_json(path, result, mode=PRIVATE)
    if as_json:
        print_json({**result, "file": str(path)})
    else:
        show_attack(found)
        typer.echo(f"\nWrote {path}: it was found in private records and stays inside.")


def check_parts(parts: Splits) -> None:
    """Refuses parts of a run in which there is nothing to guess.

    Raises:
        InputError: the test part has one private label.
    """
    if len(parts.test.private_names) < 2:
        raise InputError(
            "Expected at least two private labels in the test part, received one: "
            "there is nothing to guess. Give more records."
        )


def make_attack(attackers: str | None, seed: int) -> AttributeInferenceAttack:
    """The attack with the attackers named, separated by commas."""
    from tfpriv.attacks import AttributeInferenceAttack

    seeds = range(seed, seed + _TRAININGS)
    if attackers is None:
        return AttributeInferenceAttack(seeds=seeds)
    names = [name.strip() for name in attackers.split(",")]
    return AttributeInferenceAttack(names, seeds=seeds)


def attack_model(
    attempt: AttributeInferenceAttack, model: Any, parts: Splits, releases: int = 1
) -> AttributeInferenceResult:
    """Encodes training and test part with fresh noise, and attacks."""
    say(f"encoding {len(parts.train) + len(parts.test)} texts.")
    encoded = [
        model.encode(list(part.texts), releases=releases)
        for part in (parts.train, parts.test)
    ]
    say(f"training {len(attempt.attackers)} kinds of attackers.")
    return attempt.fit_score(
        encoded[0], parts.train.private, encoded[1], parts.test.private
    )


def show_attack(found: AttributeInferenceResult) -> None:
    """Prints the attackers beside what can be guessed blindly, and the verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    percent = f"{100 * found.confidence:g} %"
    table = Table(
        title="Private attribute, guessed from released representations",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for column in ("", f"AUC [{percent}]", f"macro-F1 [{percent}]"):
        table.add_column(Text(column), no_wrap=True)
    for score in found.attackers:
        mark = "*" if score is found.worst else " "
        table.add_row(f"{mark} {score.name}", str(score.auc), str(score.macro_f1))
    for name, floor in (
        ("best constant guess", found.constant_macro_f1),
        ("guess by training shares", found.prior_macro_f1),
    ):
        table.add_row(f"  {name}", "0.500", f"{floor:.3f}")
    console = Console(highlight=False)
    console.print(table)
    # Below its table, the text of the attack says which is the worst and what it means.
    said = found.to_markdown().partition("\n\n")[2]
    console.print(said, soft_wrap=True, markup=False)
