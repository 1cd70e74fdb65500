"""`tfpriv account`: what a DP-SGD run costs, or what a budget allows it.

The other mechanisms are commands under it, in `_account_mechanisms.py`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import as_given
from tfpriv.cli import _account_mechanisms as mechanisms
from tfpriv.cli._account_output import (
    NEIGHBOURS,
    NOT_COVERED,
    DeltaOption,
    GroupOption,
    check_plot,
    draw_curve,
    priced,
    print_priced,
)
from tfpriv.cli._common import ConfigOption, JsonOption, print_json

if TYPE_CHECKING:
    from tfpriv.accounting import DPSGDPlan

app = typer.Typer(invoke_without_command=True)

_ASSUMED = {
    "poisson": "each record joins each batch independently at random (Poisson sampling)"
    ", batches vary in size, and sums are divided by the expected size",
    "full_batch": "every record is in every batch",
    "once_per_epoch": "no record comes twice in one pass over the records; nothing is "
    "claimed for the order they come in",
    "none": "nothing: a record might be in every batch",
}


@app.callback()
def account(
    context: typer.Context,
    examples: Annotated[
        int | None,
        typer.Option("--examples", metavar="N", help="Records to sample from."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", metavar="N", help="Noisy gradient steps."),
    ] = None,
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
            help="Find what is left out of noise (the least), steps or batch (the "
            "most) for this.",
        ),
    ] = None,
    delta: DeltaOption = 1e-5,
    sampling: Annotated[
        str,
        typer.Option(
            "--sampling",
            metavar="KIND",
            help="poisson, full_batch, once_per_epoch, or none (nothing assumed).",
        ),
    ] = "poisson",
    group: GroupOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE.png", help="Draw epsilon over the steps, too."
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Epsilon of a DP-SGD run, or what a target epsilon allows; or a command below.

    Two accountants side by side: RDP, which the project states, and PLD, which is
    tighter. Both are upper bounds for the same run; neither adds to the other.
    """
    del config
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if examples is None:
        raise InputError(
            "Expected --examples, or a command (counts, laplace, ...), received "
            "neither. Try 'tfpriv account --help'."
        )
    if plot is not None:
        check_plot(plot)
    plan, found = _plan(
        examples, batch, steps, noise_multiplier, target_epsilon, delta, sampling
    )
    result = _result(plan, delta, target_epsilon, found, group)
    title = _title(result)
    if plot is not None:
        points = draw_curve(plot, plan, delta)
        result["plot"] = str(plot)
        result["curve"] = [{"steps": step, "epsilon": value} for step, value in points]
    if as_json:
        print_json(result)
        return
    rows = {
        "Covers": [*result["covers"], f"for {NEIGHBOURS[result['adjacency']]}"],
        "Assumes": [result["assumption"]],
        "Does not cover": result["not_covered"],
    }
    if plot is not None:
        rows["Plot"] = [str(plot)]
    print_priced(result, title, rows)


for _command in mechanisms.COMMANDS:
    app.command()(_command)


def _refuse_options(context: typer.Context) -> None:
    """Options before a command would be for DP-SGD, and do nothing there."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(
                f"Expected options of `account {context.invoked_subcommand}` behind "
                f"it, received {parameter.opts[0]} before it."
            )


def _plan(
    examples: int,
    batch: int | None,
    steps: int | None,
    noise_multiplier: float | None,
    target_epsilon: float | None,
    delta: float,
    sampling: str,
) -> tuple[DPSGDPlan, str | None]:
    """The run, and what of it was found for the target."""
    from tfpriv.accounting import DPSGDPlan
    from tfpriv.accounting.dp_sgd_search import largest_batch, most_steps

    if batch is None and sampling == "full_batch":
        batch = examples
    given = {
        "--noise-multiplier": noise_multiplier,
        "--steps": steps,
        "--batch": batch,
    }
    missing = [name for name, value in given.items() if value is None]
    if target_epsilon is None:
        if missing:
            also = " or --target-epsilon" if missing[0] == "--noise-multiplier" else ""
            raise InputError(
                f"Expected {missing[0]}{also} for --sampling {sampling}, received "
                "neither."
                if also
                else f"Expected {missing[0]} for --sampling {sampling}, received none."
            )
        plan = DPSGDPlan(examples, batch, steps, noise_multiplier, sampling=sampling)
        return plan, None
    if len(missing) != 1:
        received = "all of them" if not missing else f"no {' and no '.join(missing)}"
        raise InputError(
            "Expected --target-epsilon with one of --noise-multiplier, --steps and "
            f"--batch left out, to be found, received {received}."
        )
    common: dict[str, Any] = {
        "delta": delta,
        "num_examples": examples,
        "sampling": sampling,
    }
    if noise_multiplier is None:
        plan = DPSGDPlan.calibrate(
            epsilon=target_epsilon, batch_size=batch, steps=steps, **common
        )
        return plan, "noise_multiplier"
    common |= {"target_epsilon": target_epsilon, "noise_multiplier": noise_multiplier}
    if steps is None:
        return most_steps(batch_size=batch, **common), "steps"
    return largest_batch(steps=steps, **common), "batch"


def _result(
    plan: DPSGDPlan,
    delta: float,
    target_epsilon: float | None,
    found: str | None,
    group: int | None,
) -> dict[str, Any]:
    result = priced(plan.event(), delta, group)
    extra = [plan.delta_warning(delta), _next_pass(plan)]
    return result | {
        "target_epsilon": target_epsilon,
        "found": found,
        "noise_multiplier": plan.noise_multiplier,
        "examples": plan.num_examples,
        "batch": plan.batch_size,
        "steps": plan.steps,
        "passes": plan.passes if plan.sampling == "once_per_epoch" else None,
        "sampling": plan.sampling,
        "sampling_rate": plan.sampling_rate,
        "adjacency": plan.adjacency,
        "covers": [
            f"the {plan.steps:,} noisy gradients of the run, and whatever is "
            "made from them alone"
        ],
        "assumption": _ASSUMED[plan.sampling],
        "not_covered": NOT_COVERED,
        "warnings": [*filter(None, extra), *result["warnings"]],
    }


def _next_pass(plan: DPSGDPlan) -> str | None:
    if plan.sampling != "once_per_epoch" or plan.steps == 1:
        return None
    shorter = dataclasses.replace(plan, steps=plan.steps - 1)
    if shorter.passes == plan.passes:
        return None
    return (
        f"the last step begins pass {plan.passes}; {shorter.steps:,} steps stay "
        f"within {shorter.passes}."
    )


def _title(result: dict[str, Any]) -> str:
    sigma = f"noise multiplier {as_given(result['noise_multiplier'])}"
    title = (
        f"{result['steps']:,} steps, batch {result['batch']:,} of "
        f"{result['examples']:,} records, {result['sampling']}: {sigma}"
    )
    if result["found"]:
        what = {
            "noise_multiplier": "the least noise",
            "steps": "the most steps",
            "batch": "the largest batch",
        }[result["found"]]
        title += f" ({what} for epsilon {result['target_epsilon']:g} by RDP)"
    return title
