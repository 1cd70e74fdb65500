"""What the charges of a ledger cost all the records of one author together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from tfpriv.accounting.composition import epsilon
from tfpriv.accounting.events import Compose, Event, Repeat
from tfpriv.accounting.group import GroupBound, group_event
from tfpriv.accounting.ledger import Charge


@dataclasses.dataclass(frozen=True)
class GroupTotal:
    """What all charges cost those records together that share a value of a column.

    Attributes:
        unit: the column.
        size: the most records of one value, over the releases that checked it.
        epsilon: at the ledger's delta; infinite where `unbounded` is above 0.
        unbounded: how many charges did not check how many records one value has, or
            do not show what so many of them cost.
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

    What a run is charged later is about the same records as its first charge.
    """
    of_run: dict[str, GroupBound | None] = {}
    found = []
    for charge in charges:
        details = charge.details or {}
        group = GroupBound.from_json(details.get("group"))
        if "run" in details:
            group = of_run.setdefault(details["run"], group)
        found.append(group)
    return found


def group_charge(charge: Charge, size: int) -> Event | None:
    """Returns what `size` records met together; None where that is not known."""
    if (charge.details or {}).get("local"):
        return Repeat(charge.event, size)
    return group_event(charge.event, size)


def group_totals(charges: Iterable[Charge], delta: float) -> list[GroupTotal]:
    """Composes all charges as all the records of one author met them.

    The events of groups are composed, never epsilons that were converted before.

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
        sizes, events = [], []
        for charge, group in zip(charges, groups, strict=True):
            if group is None or group.unit != unit:
                events.append(None)
                continue
            sizes.append(group.size)
            events.append(group_charge(charge, group.size))
        unbounded = events.count(None)
        cost = math.inf if unbounded else epsilon(Compose(tuple(events)), delta)
        totals.append(GroupTotal(unit, max(sizes), cost, unbounded))
    return totals
