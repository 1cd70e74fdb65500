"""What the charges of a ledger cost all the records of one author together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from tfpriv.accounting.composition import epsilon
from tfpriv.accounting.events import Compose, Event, Repeat, collapse
from tfpriv.accounting.group import GroupBound, group_epsilon, group_event
from tfpriv.accounting.ledger import Charge


@dataclasses.dataclass(frozen=True)
class GroupTotal:
    """What all charges cost those records together that share a value of a column.

    Attributes:
        unit: the column.
        size: the most records of one value, over the releases that checked it.
        epsilon: at the ledger's delta; infinite where `unbounded` is above 0, or
            where so many records together have no bound at that delta.
        unbounded: how many charges did not check how many records one value has.
    """

    unit: str
    size: int
    epsilon: float
    unbounded: int


def group_details(group: GroupBound | None, local: bool) -> dict[str, Any]:
    """Returns what a charge remembers of its group; nothing where it has none."""
    if group is None:
        return {}
    return {"group": dataclasses.asdict(group), "local": local}


def groups_of(charges: Iterable[Charge]) -> list[GroupBound | None]:
    """Returns the bound of each charge.

    What a run is charged later is about the same records as its first charge. A copy
    of its folder is another run, though it has the same name.
    """
    of_run: dict[tuple[str, int], GroupBound | None] = {}
    found = []
    for charge in charges:
        details = charge.details or {}
        group = GroupBound.from_json(details.get("group"))
        if "run" in details:
            run = details["run"], details["inode"]
            group = of_run.setdefault(run, group)
        found.append(group)
    return found


def group_charge(charge: Charge, size: int) -> Event | None:
    """Returns what `size` records met together; None where that is not known."""
    if (charge.details or {}).get("local"):
        return Repeat(charge.event, size)
    return group_event(charge.event, size)


def group_totals(charges: Iterable[Charge], delta: float) -> list[GroupTotal]:
    """Composes all charges as all the records of one author met them.

    The events of groups are composed, never epsilons that were converted before. Where
    one does not show what so many records meet, all charges as one record met them are
    priced for the largest group: see `group_epsilon`.

    Args:
        charges: of one ledger, in order.
        delta: of the ledger.

    Returns:
        One total for each column that a charge names, in order.
    """
    charges = list(charges)
    groups = groups_of(charges)
    totals = []
    for unit in dict.fromkeys(group.unit for group in groups if group is not None):
        sizes = [group.size for group in groups if group and group.unit == unit]
        unbounded = len(charges) - len(sizes)
        cost = math.inf if unbounded else _together(charges, sizes, delta)
        totals.append(GroupTotal(unit, max(sizes), cost, unbounded))
    return totals


def _together(charges: list[Charge], sizes: list[int], delta: float) -> float:
    whole = collapse(Compose(tuple(charge.event for charge in charges)))
    cost = group_epsilon(whole, delta, max(sizes))
    events = tuple(map(group_charge, charges, sizes))
    return cost if None in events else min(cost, epsilon(Compose(events), delta))
