"""Whether what a release states is what its recorded events cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from tfpriv._errors import InputError
from tfpriv.accounting.representation_statement import KIND, RepresentationStatement
from tfpriv.accounting.statement import PrivacyStatement

Statement = PrivacyStatement | RepresentationStatement

# Rounding of other machines' libraries; a statement is printed to four digits.
_RELATIVE = 1e-9
# Named beside the figures, not compared with them.
_NOT_COMPARED = frozenset({"versions"})


# To leave one of these out is to state nothing.
_NEEDED = ("epsilon", "epsilon_finite", "delta")


@dataclasses.dataclass(frozen=True)
class Difference:
    """One value of a statement that is not what its events give.

    Attributes:
        key: where it stands, "events[2].epsilon".
        recorded: what the file says; None if it says nothing.
        recomputed: what the events give; None if nothing.
    """

    key: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return (
            f"{self.key}: recorded {_short(self.recorded)}, recomputed "
            f"{_short(self.recomputed)}"
        )


def read_statement(value: Any) -> Statement:
    """Builds the statement of a release from the contents of its privacy.json.

    Every figure is computed anew from the events or the certificate; what the file
    says of them is not looked at.

    Args:
        value: what `json.loads` returned.

    Raises:
        InputError: no statement of ours, or one of a newer version.
    """
    if not isinstance(value, dict) or "schema_version" not in value:
        raise InputError(
            "Expected the privacy.json of a release, received JSON that is none."
        )
    if value.get("kind") == KIND:
        return RepresentationStatement.from_json(value)
    if "kind" in value:
        raise InputError(
            f"Expected a statement of a kind that this tfpriv knows, received "
            f"kind={value['kind']!r}. Use the tfpriv that wrote it."
        )
    return PrivacyStatement.from_json(value)


def differences(value: dict[str, Any], statement: Statement) -> list[Difference]:
    """Compares what a file states with what its own events give.

    Args:
        value: the contents of privacy.json.
        statement: what `read_statement` made of them.

    Returns:
        Every value that differs, words and figures, of any key but `versions`; empty
        if all is as it should be.
    """
    # A key that is not there at all states nothing: an older tfpriv had fewer.
    recomputed = statement.to_json()
    known = {key: part for key, part in recomputed.items() if key in value}
    return list(_compare("", value, known | {k: recomputed[k] for k in _NEEDED}))


def changed_versions(value: dict[str, Any], statement: Statement) -> dict[str, str]:
    """Returns library -> "recorded -> here", where a version is another one."""
    recorded = value.get("versions")
    recorded = recorded if isinstance(recorded, dict) else {}
    return {
        name: f"{recorded.get(name, 'unknown')} -> {here}"
        for name, here in statement.to_json()["versions"].items()
        if recorded.get(name) != here
    }


def _compare(key: str, recorded: Any, recomputed: Any) -> Iterator[Difference]:
    if key in _NOT_COMPARED:
        return
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        for name in {**recomputed, **recorded}:
            inner = f"{key}.{name}" if key else str(name)
            yield from _compare(inner, recorded.get(name), recomputed.get(name))
    elif isinstance(recorded, list) and isinstance(recomputed, list):
        for place in range(max(len(recorded), len(recomputed))):
            yield from _compare(
                f"{key}[{place}]",
                recorded[place] if place < len(recorded) else None,
                recomputed[place] if place < len(recomputed) else None,
            )
    elif not _same(recorded, recomputed):
        yield Difference(key, recorded, recomputed)


def _same(recorded: Any, recomputed: Any) -> bool:
    numbers = (int, float)
    both = (recorded, recomputed)
    if all(isinstance(x, numbers) and not isinstance(x, bool) for x in both):
        return math.isclose(*both, rel_tol=_RELATIVE)
    return type(recorded) is type(recomputed) and recorded == recomputed


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
