"""`tfpriv audit`: attacks on a release, ours or anybody's."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tfpriv._files import PRIVATE, write_json
from tfpriv.cli._audit_options import AuditOptions
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    UsageCommand,
    before_work,
    print_json,
    resumable,
    say,
)
from tfpriv.cli._data_budget import budget_of
from tfpriv.cli._membership_audit import MembershipAudit
from tfpriv.cli._representation_audit import RepresentationAudit
from tfpriv.seqgan.progress_bar import terminal_report

app = typer.Typer()

_NOTE = "an audit of a release, with real records: internal, no epsilon"


@app.command(cls=UsageCommand)
def audit(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="A run of `tfpriv synthesize` or `tfpriv rmat train`; or give "
            "--synthetic.",
        ),
    ] = None,
    members: Annotated[
        Path | None,
        typer.Option(
            "--members",
            metavar="FILE",
            help="Records that the release was made from. Default: those of DIR.",
        ),
    ] = None,
    non_members: Annotated[
        Path | None,
        typer.Option(
            "--non-members",
            metavar="FILE",
            help="Records of the same population that it was not made from.",
        ),
    ] = None,
    synthetic: Annotated[
        Path | None,
        typer.Option(
            "--synthetic", metavar="FILE", help="Synthetic text, without DIR."
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="FILE",
            help="More records like --non-members, to calibrate with; else a third of "
            "those.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="COL",
            help="Column of the text, with --synthetic. Default: text.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label", metavar="COL", help="Column of the label, with --synthetic."
        ),
    ] = None,
    claimed_epsilon: Annotated[
        float | None,
        typer.Option(
            "--claimed-epsilon",
            metavar="E",
            help="What --synthetic is said to guarantee at --delta.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            metavar="D",
            help="Of bounds on epsilon. Default: the run's, or 1e-5.",
        ),
    ] = None,
    attacks: Annotated[
        str | None,
        typer.Option(
            "--attacks", metavar="A,B", help="On the text, by name. Default: all."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE.json",
            help="Where the result goes, with --synthetic; else it is only shown.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of what attackers draw.")
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Attack a release, to see what it tells of the records that it was made from.

    Synthetic text: can members be told from non-members, by the text alone and, of a
    run, by its networks? That takes --non-members, and without DIR --members.
    Representations of a run of `tfpriv rmat train`: do they tell
    the private attribute, or words? That takes the run alone.

    What is found is private: it stays in DIR/internal/audit.json, or in --output. An
    audit that was killed goes on when the command is given again.
    """
    del config
    options = AuditOptions(
        directory=directory,
        members=members,
        non_members=non_members,
        synthetic=synthetic,
        reference=reference,
        text=text,
        label=label,
        claimed_epsilon=claimed_epsilon,
        delta=delta,
        attacks=attacks,
        output=output,
        seed=seed,
    )
    opened = contextlib.ExitStack()
    with opened, before_work():
        options.check()
        job = _job(options, opened)
        budgets = [budget_of(file) for file in job.private]
        opened = opened.pop_all()
    with opened, _going_on(job.progress):
        for budget in budgets:
            if budget is not None:
                budget.note(_NOTE)
        say(f"{job.describe()} take about {_duration(job.seconds())}.")
        with terminal_report() as report:
            result = job.run(report)
        if job.output is not None:
            write_json(job.output, _without_infinity(result), mode=PRIVATE)
        job.finish()
    if as_json:
        print_json({**result, "file": None if job.output is None else str(job.output)})
        return
    job.show(result)
    if job.output is not None:
        typer.echo(f"\nWrote {job.output}: found in private records, it stays inside.")


def _job(
    options: AuditOptions, opened: contextlib.ExitStack
) -> MembershipAudit | RepresentationAudit:
    if options.directory is None:
        return MembershipAudit.of_files(options)
    if _command_of(options.directory) is None:
        return MembershipAudit.of_run(options, opened)
    return RepresentationAudit.of_run(options, opened)


def _command_of(directory: Path) -> Any:
    """What made a run; None for `tfpriv synthesize`, and for what is no run."""
    try:
        path = directory / "internal" / "config.json"
        return json.loads(path.read_text(encoding="utf-8")).get("command")
    except (OSError, ValueError, AttributeError):
        return None


def _going_on(progress: Path | None) -> contextlib.AbstractContextManager:
    return contextlib.nullcontext() if progress is None else resumable(progress)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} minutes"


def _without_infinity(value: Any) -> Any:
    """An infinite epsilon is no number in JSON."""
    if isinstance(value, dict):
        return {key: _without_infinity(part) for key, part in value.items()}
    return None if value == math.inf else value
