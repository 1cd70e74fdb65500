"""What a run has to pay to a budget beyond what it has paid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tfpriv.accounting.events import Compose, Event, Parallel, Repeat, collapse, flatten

Tally = dict[Event, int]


def unpaid(
    plan: Event | None,
    charged: Mapping[str | None, Mapping[Event, int]],
    paid: Iterable[Event],
) -> Event | None:
    """Returns an event that, beside `paid`, covers a plan and all that was charged.

    Whichever of disjoint parts a record is in, it met a mechanism at most as often
    as the part that met it most. That many times have to be paid for, less the times
    that `paid` holds for every part. So the sum is never too small, and exact where
    nothing is in disjoint parts or all parts are treated alike.

    Args:
        plan: what the run will do, or None for what is in `charged` alone.
        charged: part -> mechanism -> how often, of the run's own ledger.
        paid: what the run was charged for already.

    Returns:
        The event to charge; None if nothing is due.
    """
    paid = list(paid)
    needed = _of_parts(charged)
    have: Tally = {}
    for event in paid:
        _add(have, uses(event, least=True))
    if plan is not None and plan not in paid:
        least = uses(plan, least=True)
        if not paid and all(n <= least.get(unit, 0) for unit, n in needed.items()):
            # As it is: in parallel where it is so.
            return plan if uses(plan) else None
        for unit, count in uses(plan).items():
            needed[unit] = max(count, needed.get(unit, 0))
    due = [
        Repeat(unit, count - have.get(unit, 0))
        for unit, count in needed.items()
        if count > have.get(unit, 0)
    ]
    return collapse(Compose(tuple(due))) if due else None


def uses(event: Event, *, least: bool = False) -> Tally:
    """Returns how often each mechanism meets a record at most, or at least.

    Args:
        event: any event.
        least: at least, in whichever of disjoint parts the record is.
    """
    tally: Tally = {}
    for unit, count in flatten(event).items():
        if isinstance(unit, Parallel):
            parts = [uses(part, least=least) for part in unit.events]
            _add(tally, _over(parts, least=least), count)
        else:
            _add(tally, {unit: 1}, count)
    return tally


def _of_parts(charged: Mapping[str | None, Mapping[Event, int]]) -> Tally:
    bounds = {
        part: uses(Compose(tuple(Repeat(unit, n) for unit, n in tally.items())))
        for part, tally in charged.items()
    }
    total = bounds.pop(None, {})
    _add(total, _over(list(bounds.values()), least=False))
    return total


def _over(parts: list[Tally], *, least: bool) -> Tally:
    choose = min if least else max
    units = dict.fromkeys(unit for part in parts for unit in part)
    return {unit: choose(part.get(unit, 0) for part in parts) for unit in units}


def _add(total: Tally, more: Mapping[Event, int], times: int = 1) -> None:
    for unit, count in more.items():
        if count:
            total[unit] = total.get(unit, 0) + times * count
