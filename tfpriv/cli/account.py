"""`tfpriv account`: the epsilon of a DP-SGD run, or the noise for an epsilon."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv.cli._common import ConfigOption, JsonOption, print_json

if TYPE_CHECKING:
    from tfpriv.accounting import DPSGDPlan

app = typer.Typer()

_COVERS = {
    "poisson": "each record joins each batch independently at random (Poisson sampling)"
    ", batches vary in size, and sums are divided by the expected size",
    "full_batch": "every record is in every batch",
    "once_per_epoch": "no record comes twice in one pass over the records; nothing is "
    "claimed for the order they come in",
    "none": "nothing: a record might be in every batch",
}
_NEIGHBOURS = {
    "add-or-remove-one": "adding or removing one record",
    "zero-out-one": "replacing one record by an empty one",
}
_NOT_COVERED = [
    "anything else that read the records: pre-training, a vocabulary or label names "
    "taken from them, counts, early stopping, a choice among several runs",
    "several records of one person (k of them: k-fold group privacy, a k times larger "
    "epsilon or more)",
]


@app.command()
def account(
    examples: Annotated[
        int,
        typer.Option("--examples", metavar="N", help="Records to sample from."),
    ],
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", help="Noisy gradient steps.")
    ],
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            metavar="N",
            help="Expected batch size. All records for --sampling full_batch.",
        ),
    ] = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(
            "--noise-multiplier",
            metavar="SIGMA",
            help="Standard deviation of the noise over the clipping norm.",
        ),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            "--target-epsilon",
            metavar="EPSILON",
            help="Find the smallest noise multiplier for this, instead.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", metavar="DELTA")] = 1e-5,
    sampling: Annotated[
        str,
        typer.Option(
            "--sampling",
            metavar="KIND",
            help="poisson, full_batch, once_per_epoch, or none (nothing assumed).",
        ),
    ] = "poisson",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Epsilon of a DP-SGD run, or the noise that a target epsilon takes.

    Two accountants side by side: RDP, which the project states, and PLD, which is
    tighter. Both are upper bounds for the same run; neither adds to the other.
    """
    from tfpriv.accounting import DPSGDPlan

    if (noise_multiplier is None) == (target_epsilon is None):
        received = "neither" if noise_multiplier is None else "both"
        raise InputError(
            "Expected one of --noise-multiplier and --target-epsilon, received "
            f"{received}."
        )
    if batch is None:
        if sampling != "full_batch":
            raise InputError(
                f"Expected --batch for --sampling {sampling}, received none."
            )
        batch = examples
    if target_epsilon is None:
        plan = DPSGDPlan(examples, batch, steps, noise_multiplier, sampling=sampling)
    else:
        plan = DPSGDPlan.calibrate(
            epsilon=target_epsilon,
            delta=delta,
            num_examples=examples,
            batch_size=batch,
            steps=steps,
            sampling=sampling,
        )
    result = _result(plan, delta, target_epsilon)
    if as_json:
        print_json(result)
    else:
        _print_for_people(result)


def _result(
    plan: DPSGDPlan, delta: float, target_epsilon: float | None
) -> dict[str, Any]:
    from tfpriv.accounting import epsilon

    prices: dict[str, float | None] = {"rdp": epsilon(plan.event(), delta)}
    try:
        prices["pld"], reason = epsilon(plan.event(), delta, "pld"), None
    except InputError as error:
        prices["pld"], reason = None, f"no PLD: {error}"
    warnings = [*_warnings(plan, delta, prices["rdp"]), reason]
    return {
        "schema_version": 1,
        "epsilon": prices,
        "delta": delta,
        "target_epsilon": target_epsilon,
        "noise_multiplier": plan.noise_multiplier,
        "examples": plan.num_examples,
        "batch": plan.batch_size,
        "steps": plan.steps,
        "passes": plan.passes if plan.sampling == "once_per_epoch" else None,
        "sampling": plan.sampling,
        "sampling_rate": plan.sampling_rate,
        "adjacency": plan.adjacency,
        "event": plan.event().to_json(),
        "covers": [
            f"the {plan.steps:,} noisy gradients of the run, and whatever is "
            "made from them alone"
        ],
        "assumption": _COVERS[plan.sampling],
        "not_covered": _NOT_COVERED,
        "warnings": [warning for warning in warnings if warning],
    }


def _warnings(plan: DPSGDPlan, delta: float, price: float) -> list[str | None]:
    found = [plan.delta_warning(delta)]
    if price == 0:
        found.append(
            f"epsilon 0 is true and no mistake: the run moves the model by less than "
            f"delta={delta:g} in total variation, so delta alone covers it."
        )
    if price > 10:
        found.append(
            "an epsilon above 10 is true and rules out next to nothing: one record may "
            "shift the odds of what is seen by e^epsilon."
        )
    if plan.sampling == "once_per_epoch" and plan.steps > 1:
        shorter = dataclasses.replace(plan, steps=plan.steps - 1)
        if shorter.passes < plan.passes:
            found.append(
                f"the last step begins pass {plan.passes}; {shorter.steps:,} steps "
                f"stay within {shorter.passes}."
            )
    return found


def _print_for_people(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("accountant")
    table.add_column(f"epsilon at delta = {result['delta']:g}", justify="right")
    for name, value in result["epsilon"].items():
        table.add_row(name.upper(), _figure(value))
    sigma = f"noise multiplier {result['noise_multiplier']:.4f}".rstrip("0").rstrip(".")
    if result["target_epsilon"] is not None:
        sigma += f" (the smallest for epsilon {result['target_epsilon']:g} by RDP)"
    console.print(
        Text(
            f"{result['steps']:,} steps, batch {result['batch']:,} of "
            f"{result['examples']:,} records, {result['sampling']}: {sigma}"
        )
    )
    console.print()
    console.print(table)
    console.print()
    rows = [
        ("Covers", [*result["covers"], f"for {_NEIGHBOURS[result['adjacency']]}"]),
        ("Assumes", [result["assumption"]]),
        ("Does not cover", result["not_covered"]),
        ("Note", result["warnings"]),
    ]
    grid = Table.grid(padding=(0, 2))
    for title, lines in rows:
        for index, line in enumerate(lines):
            grid.add_row(title if index == 0 else "", Text(line))
    console.print(grid)


def _figure(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.4f}" if value < 1e9 else f"{value:.4g}"
