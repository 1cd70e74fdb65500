"""Several uses of one data set, as a person writes them down."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.accounting.dp_sgd import DPSGDPlan
from tfpriv.accounting.events import (
    ApproxDP,
    Event,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    PureDP,
    Repeat,
    RepeatAndSelect,
    combine,
)

_MOST = 1000


@dataclasses.dataclass(frozen=True)
class Use:
    """One entry of a list.

    Attributes:
        name: its kind, or what the writer calls it.
        event: what it does to the records, its repetitions counted.
        part: the disjoint part of the records it sees, or None for all.
    """

    name: str
    event: Event
    part: str | None = None


def read_uses(path: Path) -> tuple[list[Use], float | None]:
    """Reads a YAML or JSON file of uses.

    ::

        delta: 1e-5                  # may be left out
        uses:
          - dp_sgd: {examples: 1956, batch: 64, steps: 306, noise_multiplier: 1.0}
          - gaussian_counts: {noise_multiplier: 4.0, times: 2}
            part: spam               # disjoint parts compose in parallel
          # max_contributions: names that one record counts for, 1 unless given
          - selection: {noise_multiplier: 10.0, delta: 1e-6}
          - response: {epsilon: 1.0}
          - exponential: {epsilon: 0.5}   # a choice by the exponential mechanism
          - laplace: {epsilon: 4.0, name: vectors}
          - nothing: {}              # read without noise: no guarantee for the whole
          # the best of a number of runs that was drawn before the search (geometric:
          # shape 1; Poisson: shape .inf), see RepeatAndSelect
          - search: {mean: 10, shape: 1, run: {dp_sgd: {...}}}

    Args:
        path: the file.

    Returns:
        (the uses, delta if the file has one).

    Raises:
        InputError: no such file, no list of uses, or an entry that is unknown or has
            a bad value; the message says which, from 1.
    """
    value = _parsed(path)
    if isinstance(value, list):
        value = {"uses": value}
    if not isinstance(value, dict) or not isinstance(value.get("uses"), list):
        raise InputError(f"Expected a list under uses: in {path}, received none.")
    unknown = sorted(map(str, value.keys() - {"uses", "delta"}))
    if unknown:
        raise InputError(
            f"Expected uses and delta in {path}, received {unknown[0]!r} as well."
        )
    if not 0 < len(value["uses"]) <= _MOST:
        raise InputError(
            f"Expected 1 to {_MOST} uses in {path}, received {len(value['uses'])}."
        )
    uses = []
    for number, entry in enumerate(value["uses"], 1):
        try:
            uses.append(_use(entry))
        except InputError as error:
            raise InputError(f"Use {number} of {path}: {error}") from None
    return uses, value.get("delta")


def event_of(uses: list[Use]) -> Event:
    """Returns all uses as one event, parts in parallel."""
    return combine((use.event, use.part) for use in uses)


def _parsed(path: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.1 takes 1e-5 for text; people take it for a number."""

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+"),
        list("-+0123456789"),
    )
    try:
        # JSON is YAML. The class is SafeLoader but for one more kind of number.
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(
            f"Expected a YAML or JSON file of uses, received {path}: "
            f"{getattr(error, 'strerror', None) or 'it cannot be parsed'}."
        ) from None


def _use(entry: Any) -> Use:
    if not isinstance(entry, dict):
        raise InputError(f"Expected kind: {{...}}, received {type(entry).__name__}.")
    entry = dict(entry)
    part = entry.pop("part", None)
    if not isinstance(part, str | None):
        raise InputError(f"Expected the name of a part as text, received {part!r}.")
    if "type" in entry:
        return Use(str(entry["type"]), Event.from_json(_with_count(entry)), part)
    if len(entry) != 1:
        raise InputError(
            f"Expected one of {', '.join(_KINDS)}, and part, received "
            f"{len(entry)} keys: {', '.join(map(str, entry))}."
        )
    (kind, values), *_ = entry.items()
    if kind not in _KINDS:
        raise InputError(f"Expected one of {', '.join(_KINDS)}, received {kind!r}.")
    if not isinstance(values, dict):
        raise InputError(f"Expected {kind}: {{...}}, received {values!r}.")
    values = dict(values)
    name, times = values.pop("name", kind), values.pop("times", 1)
    integer(times=times)
    if not isinstance(name, str):
        raise InputError(f"Expected a name as text, received {name!r}.")
    needed, make = _KINDS[kind]
    optional = _OPTIONAL.get(kind, frozenset())
    missing = [key for key in needed if key not in values]
    surplus = [key for key in values if key not in needed and key not in optional]
    if missing or surplus:
        what = f"no {missing[0]}" if missing else f"{surplus[0]!r}"
        names = ", ".join([*needed, *sorted(optional), "times", "name"])
        raise InputError(f"Expected {names} of {kind}, received {what}.")
    event = make(values)
    return Use(name, event if times == 1 else Repeat(event, times), part)


def _with_count(entry: dict[str, Any]) -> dict[str, Any]:
    counted = entry["type"] in ("Gaussian", "PoissonGaussian", "PureDP", "ApproxDP")
    return {"count": 1, **entry} if counted else entry


def _dp_sgd(values: Mapping[str, Any]) -> Event:
    sampling = values.get("sampling", "poisson")
    batch = values.get("batch", values["examples"] if sampling == "full_batch" else 0)
    return DPSGDPlan(
        values["examples"],
        batch,
        values["steps"],
        values["noise_multiplier"],
        sampling=sampling,
    ).event()


def _laplace(values: Mapping[str, Any]) -> Event:
    delta = values.get("delta", 0)
    if delta:
        return ApproxDP(values["epsilon"], delta)
    return PureDP(values["epsilon"])


def _search(values: Mapping[str, Any]) -> Event:
    run = _use(values["run"]).event
    return RepeatAndSelect(run, values["mean"], values.get("shape", 1.0))


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Event]]] = {
    "dp_sgd": (("examples", "steps", "noise_multiplier"), _dp_sgd),
    "gaussian_counts": (
        ("noise_multiplier",),
        lambda values: Gaussian(values["noise_multiplier"]),
    ),
    "selection": (
        ("noise_multiplier", "delta"),
        lambda values: GaussianThreshold(
            values["noise_multiplier"],
            values["delta"],
            values.get("max_contributions", 1),
        ),
    ),
    # Choices that depend on a record by a factor of e^epsilon at most.
    "response": (("epsilon",), lambda values: PureDP(values["epsilon"])),
    "exponential": (("epsilon",), lambda values: PureDP(values["epsilon"])),
    "laplace": (("epsilon",), _laplace),
    "search": (("mean", "run"), _search),
    "nothing": ((), lambda values: NonPrivate()),
}
_OPTIONAL = {
    "dp_sgd": frozenset({"batch", "sampling"}),
    "laplace": frozenset({"delta"}),
    "selection": frozenset({"max_contributions"}),
    "search": frozenset({"shape"}),
}
