"""From the ledger of a run to the reads of its privacy statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tfpriv.accounting import PrivacyLedger, PrivateRead


def private_reads(ledger: PrivacyLedger, notes: Mapping[str, str]) -> list[PrivateRead]:
    """Returns what the ledger recorded, equal charges as one with a count.

    Args:
        ledger: of the run.
        notes: name of a charge -> what a reader should know; for one without noise,
            why it has no guarantee.

    Returns:
        Reads in the order of their first charge: one for each name, part and noise.
        A mechanism without a count comes as often as it was charged.
    """
    tally: dict[tuple, int] = {}
    for charge in ledger.events():
        unit, count = charge.event, getattr(charge.event, "count", None)
        if count is not None:
            unit = dataclasses.replace(unit, count=1)
        key = (charge.name, charge.part, unit)
        tally[key] = tally.get(key, 0) + (count or 1)
    reads = []
    for (name, part, unit), times in tally.items():
        if hasattr(unit, "count"):
            unit, times = dataclasses.replace(unit, count=times), 1
        reads += [PrivateRead(name, unit, notes[name], part)] * times
    return reads
