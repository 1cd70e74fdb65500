"""The chapters on what is guaranteed, what was spent and how to make it again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tfpriv._figures import as_given, rounded_up
from tfpriv.accounting import PrivacyStatement
from tfpriv.accounting.plain_words import plain_words
from tfpriv.accounting.statement import describe
from tfpriv.evaluation.report_blocks import (
    Block,
    Bullets,
    Figure,
    Lines,
    Paragraph,
    Section,
    Table,
)

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget, PrivacyLedger
    from tfpriv.accounting.verification import Statement
    from tfpriv.evaluation.report_run import ReleasedFiles

_GROUPS = (2, 5, 10)


def guarantee_figure(statement: Statement) -> Figure:
    """Epsilon, for the summary."""
    if math.isinf(statement.epsilon):
        return Figure("Guarantee", "none", "epsilon is infinite")
    delta = "delta 0"
    if statement.delta:
        delta = f"delta {rounded_up(statement.delta, 3)}"
    return Figure(
        "Guarantee",
        f"ε = {rounded_up(statement.epsilon)}",
        f"{delta}, for one {statement_unit(statement)}",
    )


def statement_unit(statement: Statement) -> str:
    """What is protected: "record", or "text" for a representation."""
    return getattr(statement, "unit", "text")


def guarantee(release: ReleasedFiles) -> Section:
    """What is promised, to whom, and what not: words first, then numbers."""
    statement = release.statement
    blocks: list[Block] = []
    if release.faults:
        blocks.append(
            Paragraph(
                f"privacy.json does not state what its own events cost: "
                f"{release.faults[0]}. What follows was computed from the events.",
                "warning",
            )
        )
    first, *rest = plain_words(statement)
    tone = "warning" if math.isinf(statement.epsilon) else "big"
    blocks += [Paragraph(first, tone), *map(Paragraph, rest)]
    if isinstance(statement, PrivacyStatement):
        blocks += _numbers(statement)
    elif statement.certificate is not None:
        blocks.append(Lines(str(statement.certificate), "The certificate:"))
    blocks += [
        Bullets(title, items)
        for title, items in (
            ("Not covered:", statement.not_covered),
            ("Taken as public:", statement.public),
            ("What the figures rest on:", statement.assumptions),
        )
        if items
    ]
    return Section("Guarantee", blocks)


def _numbers(statement: PrivacyStatement) -> list[Block]:
    """One row a read of private records, and what several records would cost."""
    rows = [
        (
            read.name if read.part is None else f"{read.name} [{read.part}]",
            f"{describe(read.event)}{f' ({read.note})' if read.note else ''}",
            rounded_up(cost) if math.isfinite(cost) else "no guarantee",
        )
        for read, cost in (
            (read, event["epsilon"] if event["epsilon"] is not None else math.inf)
            for read, event in zip(
                statement.reads, statement.to_json()["events"], strict=True
            )
            if read.released
        )
    ]
    whole = rounded_up(statement.epsilon)
    rows.append(("everything together", statement.accountant.upper(), whole))
    delta = rounded_up(statement.delta, 3)
    blocks: list[Block] = [
        Table(
            ("What read the records", "How", f"ε at δ {delta}"),
            rows,
            "The budget and its events. Costs alone do not add up to the whole: they "
            "are composed.",
            words=2,
        )
    ]
    if math.isfinite(statement.epsilon):
        blocks.append(
            Table(
                (f"{statement.unit}s of one person", f"ε at δ {delta}"),
                [(str(k), rounded_up(statement.group_epsilon(k))) for k in _GROUPS],
                "Several together have a weaker guarantee.",
            )
        )
    return blocks


def budget(
    ledger: PrivacyLedger | None, data_budget: DataBudget | None, epsilon: float
) -> Section:
    """What was charged while the run was made; internal."""
    blocks: list[Block] = []
    if ledger is not None:
        charges = Counter((charge.name, charge.part) for charge in ledger.events())
        limit = ledger.limit_epsilon
        rows = [
            (name if part is None else f"{name} [{part}]", f"{count:,}")
            for (name, part), count in charges.items()
        ]
        blocks += [
            Paragraph(
                f"The run's ledger: epsilon {rounded_up(ledger.epsilon())} of "
                f"{as_given(limit) if math.isfinite(limit) else 'no limit'} was "
                f"charged at delta {as_given(ledger.delta)}."
            ),
            Table(("Charged for", "times"), rows, "Charges before each use."),
        ]
        if ledger.epsilon() > epsilon * (1 + 1e-9):
            blocks.append(
                Paragraph(
                    "More was charged than the statement has: steps that were paid for "
                    "and lost count there as well. Verify it: tfpriv statement DIR "
                    "--verify.",
                    "warning",
                )
            )
    else:
        blocks.append(
            Paragraph(
                "Training charged nothing to a ledger: nothing is guaranteed of what "
                "stays inside, and each released text pays for itself.",
            )
        )
    if data_budget is not None:
        blocks.append(
            Paragraph(
                f"The data set's budget {data_budget.id!r}: epsilon "
                f"{rounded_up(data_budget.epsilon())} of "
                f"{as_given(data_budget.limit_epsilon)} at delta "
                f"{as_given(data_budget.delta)} is spent by all releases together."
            )
        )
    return Section("Budget", blocks)


def reproduce(
    release: ReleasedFiles,
    commands: str,
    settings: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
) -> Section:
    """What it takes to make the release, and this page, again.

    Args:
        release: what was released.
        commands: lines for a shell.
        settings: of the run; None in what leaves.
        versions: of the libraries that made this page.
    """
    blocks: list[Block] = [Lines(commands, "Commands:")]
    text = "They read the released files alone: the same files give the same page."
    if settings is not None:
        text = "The noise is fresh each time and has no seed: the same commands "
        text += (
            "make another release of the same kind, which costs again."
            if release.synthetic is not None
            else "train another model of the same kind."
        )
    blocks.append(Paragraph(text, "note"))
    rows = [(name, digest) for name, digest in release.digests.items()]
    blocks.append(
        Table(("File", "SHA-256"), rows, "The files that this page describes.", words=2)
    )
    rows = [(name, str(version)) for name, version in release.versions.items()]
    if rows:
        caption = "Versions that computed the statement."
        blocks.append(Table(("Library", "version"), rows, caption))
    if versions:
        caption = "Versions that made this page."
        blocks.append(Table(("Library", "version"), list(versions.items()), caption))
    if settings:
        rows = [(name, _shown(value)) for name, value in settings.items()]
        blocks.append(Table(("Setting", "value"), rows, "Settings of the run."))
    return Section("To make it again", blocks)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
