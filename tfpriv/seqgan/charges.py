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
        One read for each name, part and noise, in the order of their first charge.
    """
    tally: dict[tuple, int] = {}
    for charge in ledger.events():
        unit, count = charge.event, getattr(charge.event, "count", None)
        if count is not None:
            unit = dataclasses.replace(unit, count=1)
        key = (charge.name, charge.part, unit)
        tally[key] = tally.get(key, 0) + (count or 1)
    return [
        PrivateRead(
            name,
            dataclasses.replace(unit, count=n) if hasattr(unit, "count") else unit,
            notes[name],
            part,
        )
        for (name, part, unit), n in tally.items()
    ]
