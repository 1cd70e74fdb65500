"""What all forms of `tfpriv account` print: two accountants side by side, and why."""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import shutil
import textwrap
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up

if TYPE_CHECKING:
    from tfpriv.accounting import DPSGDPlan, Event

NEIGHBOURS = {
    "add-or-remove-one": "adding or removing one record",
    "zero-out-one": "replacing one record by an empty one",
    "replace-one": "replacing one record by any other",
}
NOT_COVERED = [
    "anything else that read the records: pre-training, a vocabulary or label names "
    "taken from them, counts, early stopping, a choice among several runs",
    "several records of one person (--group K says what K of them cost)",
]

# Room for the longest heading, "Does not cover".
_HEADINGS = 16

DeltaOption = Annotated[float, typer.Option("--delta", metavar="DELTA")]
GroupOption = Annotated[
    int | None,
    typer.Option(
        "--group", metavar="K", help="Also for K records of one person at once."
    ),
]


def priced(event: Event, delta: float, group: int | None = None) -> dict[str, Any]:
    """Prices an event by both accountants.

    Returns:
        `schema_version`; `epsilon` {"rdp", "pld"}, None where an accountant has none;
        `delta`; `additive_delta`; `rdp_order` {"order", "widened",
        "default_grid_epsilon"} or None; `group` {"size", "epsilon"} or None; `event`;
        `warnings`.
    """
    _import_dp_accounting()
    from tfpriv.accounting import epsilon, group_epsilon, rdp
    from tfpriv.accounting.composition import additive_delta, is_private

    prices: dict[str, float | None] = {"rdp": epsilon(event, delta)}
    warnings = []
    try:
        prices["pld"] = epsilon(event, delta, "pld")
    except InputError as error:
        prices["pld"] = None
        warnings.append(f"no PLD: {error}")
    taken = additive_delta(event)
    order = None
    if is_private(event) and taken < delta:
        found = rdp.price(event, delta - taken)
        order = {
            "order": found.order,
            "widened": found.widened,
            "default_grid_epsilon": found.default_epsilon,
        }
        if found.widened and found.default_epsilon > 1.01 * found.epsilon:
            warnings.append(
                "the best Renyi order is at an end of the usual grid, which gives "
                f"{rounded_up(found.default_epsilon)}; the grid was widened there."
            )
    return {
        "schema_version": 1,
        "epsilon": prices,
        "delta": delta,
        "additive_delta": taken,
        "rdp_order": order,
        "group": None
        if group is None
        else {"size": group, "epsilon": group_epsilon(event, delta, group)},
        "event": event.to_json(),
        "warnings": [*_explained(prices["rdp"], delta, taken, event), *warnings],
    }


def _import_dp_accounting() -> None:
    """Imports it on a stack of its own.

    CPython 3.11 keeps frames in pieces of 16 KiB, and where a piece ends just above a
    loop it takes and gives back one at every call: inside Typer's forty frames that
    made a fifth of the command.
    """

    def load() -> None:
        # What an import makes stays: there is nothing for the collector to find.
        gc.disable()
        # One that fails is told by the import that needs it.
        with contextlib.suppress(ImportError):
            importlib.import_module("dp_accounting")
        gc.enable()

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()


def _explained(price: float, delta: float, taken: float, event: Event) -> list[str]:
    from tfpriv.accounting.composition import is_private

    if not is_private(event):
        return [
            "a part reads records without noise: there is no guarantee for the whole, "
            "however private the rest."
        ]
    if taken >= delta:
        return [
            f"selections and cut-off noise alone take delta {rounded_up(taken, 3)}: "
            f"there is no guarantee at delta {delta:g}."
        ]
    if price == 0:
        return [
            "epsilon 0 is true and no mistake: all of it moves what is released by "
            f"less than delta={delta:g} in total variation, so delta alone covers it."
        ]
    if price > 10:
        return [
            "an epsilon above 10 is true and rules out next to nothing: one record may "
            "shift the odds of what is seen by e^epsilon."
        ]
    return []


def print_priced(
    result: Mapping[str, Any], title: str, rows: Mapping[str, Sequence[str]]
) -> None:
    """Prints a title, the prices, and what they are about.

    Args:
        result: of `priced`.
        title: one line.
        rows: heading -> lines.
    """
    prices = [("accountant", f"epsilon at delta = {result['delta']:g}")]
    prices += [(name.upper(), figure(x)) for name, x in result["epsilon"].items()]
    group = result.get("group")
    if group:
        prices.append((f"RDP, {group['size']} records", figure(group["epsilon"])))
    names, values = (max(map(len, column)) for column in zip(*prices, strict=True))
    typer.echo(f"{title}\n")
    for name, value in prices:
        typer.echo(f"{name:{names}}  {value:>{values}}")
    typer.echo()
    # No Rich here: its import takes longer than either accountant.
    width = shutil.get_terminal_size().columns
    for heading, lines in {**rows, "Note": result["warnings"]}.items():
        for index, line in enumerate(lines):
            first = f"{heading if index == 0 else '':{_HEADINGS}}"
            typer.echo(
                textwrap.fill(
                    line, width, initial_indent=first, subsequent_indent=" " * _HEADINGS
                )
            )


def figure(value: float | None) -> str:
    """Returns an epsilon for a table, rounded up in its fourth place."""
    if value is None:
        return "n/a"
    return rounded_up(value, places=4) if value < 1e9 else rounded_up(value)


def draw_curve(path: Path, plan: DPSGDPlan, delta: float) -> list[tuple[int, float]]:
    """Draws the epsilon of a DP-SGD run over its steps.

    Returns:
        (step, epsilon by RDP) of every point.
    """
    import dataclasses

    import numpy as np

    from tfpriv.accounting import epsilon

    steps = np.unique(np.geomspace(1, max(plan.steps, 2), 60).round().astype(int))
    steps = [int(step) for step in steps if step <= plan.steps]
    points = [
        (step, epsilon(dataclasses.replace(plan, steps=step).event(), delta))
        for step in steps
    ]
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [(step, value) for step, value in points if math.isfinite(value)]
    drawing, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    if shown:
        axes.plot(*zip(*shown, strict=True), label="RDP")
    axes.set(
        xlabel="steps",
        ylabel=f"epsilon at delta = {delta:g}",
        title=f"batch {plan.batch_size:,} of {plan.num_examples:,}, {plan.sampling}, "
        f"noise multiplier {plan.noise_multiplier:g}",
        ylim=(0, None),
        xlim=(0, None),
    )
    tighter = _pld_points(plan, delta)
    if tighter:
        axes.plot(*zip(*tighter, strict=True), "o", label="PLD")
    axes.grid(alpha=0.3)
    axes.legend()
    drawing.savefig(path, dpi=150)
    pyplot.close(drawing)
    return points


def check_plot(path: Path) -> None:
    """Refuses a file that no plot can be written to."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(
            f"Expected a .png, .svg or .pdf for --plot, received {path.name!r}."
        )
    if not path.parent.is_dir():
        raise InputError(
            f"Expected a folder that exists for --plot, received {path}. Make it first."
        )


def _pld_points(plan: DPSGDPlan, delta: float) -> list[tuple[int, float]]:
    """A few points: each takes a second or so."""
    import dataclasses

    from tfpriv.accounting import epsilon

    found = []
    for share in (0.1, 0.4, 0.7, 1.0):
        steps = max(1, round(plan.steps * share))
        event = dataclasses.replace(plan, steps=steps).event()
        try:
            found.append((steps, epsilon(event, delta, "pld")))
        except InputError:
            return []
    return [point for point in found if math.isfinite(point[1])]
