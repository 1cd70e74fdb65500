"""The commands under `tfpriv account`: one mechanism each, several, or a run's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import integer
from tfpriv.cli._account_output import (
    NEIGHBOURS,
    NOT_COVERED,
    DeltaOption,
    GroupOption,
    priced,
    print_priced,
)
from tfpriv.cli._common import JsonOption, before_work, print_json

if TYPE_CHECKING:
    from tfpriv.accounting import Event

_Noise = Annotated[
    float | None,
    typer.Option(
        "--noise-multiplier",
        metavar="SIGMA",
        help="Standard deviation of the noise over the L2 sensitivity.",
    ),
]
_Target = Annotated[
    float | None,
    typer.Option(
        "--target-epsilon", metavar="EPSILON", help="Find the least noise for this."
    ),
]
_Releases = Annotated[
    int,
    typer.Option(
        "--releases", metavar="N", help="How often, each time with noise of its own."
    ),
]


def counts(
    noise_multiplier: _Noise = None,
    target_epsilon: _Target = None,
    releases: _Releases = 1,
    delta: DeltaOption = 1e-5,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Gaussian noise on counts or sums over all records."""
    from tfpriv.accounting import Gaussian

    def event(sigma: float) -> Event:
        return Gaussian(sigma, releases)

    sigma = _sigma(event, noise_multiplier, target_epsilon, delta)
    result = priced(event(sigma), delta, group)
    result |= {"noise_multiplier": sigma, "releases": releases}
    _show(
        result,
        as_json,
        f"Gaussian counts, noise multiplier {sigma:g}, {_times(releases)}",
        "the counts have the L2 sensitivity that the noise multiplier is a multiple of",
    )


def selection(
    selection_delta: Annotated[
        float,
        typer.Option(
            "--selection-delta",
            metavar="D",
            help="Probability that a name of one record alone is named; part of delta.",
        ),
    ],
    noise_multiplier: _Noise = None,
    target_epsilon: _Target = None,
    max_contributions: Annotated[
        int,
        typer.Option(
            "--max-contributions", metavar="K", help="Names that one record counts for."
        ),
    ] = 1,
    delta: DeltaOption = 1e-5,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Partition selection: names whose noisy count passes a threshold."""
    from tfpriv.accounting import GaussianThreshold
    from tfpriv.mechanisms import selection_threshold

    def event(sigma: float) -> Event:
        return GaussianThreshold(sigma, selection_delta, max_contributions)

    sigma = _sigma(event, noise_multiplier, target_epsilon, delta)
    result = priced(event(sigma), delta, group)
    threshold = selection_threshold(
        sigma, selection_delta, max_contributions=max_contributions
    )
    result |= {
        "noise_multiplier": sigma,
        "selection_delta": selection_delta,
        "max_contributions": max_contributions,
        "threshold": threshold,
    }
    _show(
        result,
        as_json,
        f"Selection of names, noise multiplier {sigma:g}, threshold {threshold:.1f}",
        f"a record counts for at most {max_contributions} of the names",
    )


def response(
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", metavar="E", help="Of one answer, with delta 0."),
    ],
    labels: Annotated[
        int, typer.Option("--labels", metavar="K", help="Answers to choose from.")
    ] = 2,
    releases: _Releases = 1,
    delta: DeltaOption = 1e-5,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Randomised response: one of K answers, the true one more likely than others."""
    from tfpriv.accounting import PureDP
    from tfpriv.mechanisms import RandomizedResponse

    integer(2, labels=labels)
    if labels > 10**6:
        raise InputError(f"Expected at most 1e6 labels, received labels={labels}.")
    mechanism = RandomizedResponse(tuple(range(labels)), epsilon)
    result = priced(PureDP(epsilon, releases), delta, group)
    result |= {
        "labels": labels,
        "releases": releases,
        "keep_probability": mechanism.keep_probability,
        "adjacency": "replace-one",
    }
    _show(
        result,
        as_json,
        f"Randomised response on {labels} labels, {_times(releases)}: the true one "
        f"stays with probability {mechanism.keep_probability:.4g}",
        "the list of labels is public; how many records there are is not hidden",
    )


def laplace(
    dimension: Annotated[
        int,
        typer.Option(
            "--dimension", metavar="D", help="Coordinates; symbols of a code."
        ),
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", metavar="E", help="Certified, for any two texts, per release."
        ),
    ] = None,
    nominal_epsilon: Annotated[
        float | None,
        typer.Option(
            "--nominal-epsilon", metavar="E", help="The papers' reading: scale 1 / E."
        ),
    ] = None,
    domain: Annotated[
        str,
        typer.Option(
            "--domain", metavar="DOMAIN", help="unit_box (min-max), l1_ball or code."
        ),
    ] = "unit_box",
    radius: Annotated[
        float | None,
        typer.Option("--radius", metavar="R", help="Of the L1 ball. Default: 1."),
    ] = None,
    mask_rate: Annotated[
        float, typer.Option("--mask-rate", metavar="M", help="Share of masked words.")
    ] = 0.0,
    mask_mode: Annotated[
        str, typer.Option("--mask-mode", metavar="MODE", help="exact or bernoulli.")
    ] = "exact",
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths", metavar="A,B", help="Fewest and most words that a text has."
        ),
    ] = None,
    releases: _Releases = 1,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Laplace representations of a text: what papers claim, and what is certified."""
    from tfpriv.accounting import LaplaceCertificate

    if (epsilon is None) == (nominal_epsilon is None):
        received = "neither" if epsilon is None else "both"
        raise InputError(
            f"Expected one of --epsilon and --nominal-epsilon, received {received}."
        )
    settings: dict[str, Any] = {
        "mask_rate": mask_rate,
        "mask_mode": mask_mode if mask_rate else None,
        "lengths": _lengths(lengths),
        "radius": 1.0 if radius is None and domain == "l1_ball" else radius,
    }
    if epsilon is None:
        certificate = LaplaceCertificate.nominal(
            nominal_epsilon, dimension, domain, **settings
        )
    else:
        certificate = LaplaceCertificate.from_epsilon(
            epsilon, dimension, domain, **settings
        )
    cost = certificate.compose(releases)
    together = None
    if group is not None:
        # Each text has noise of its own.
        integer(group=group)
        together = certificate.compose(releases * group)
    if as_json:
        result = {
            "schema_version": 1,
            "releases": releases,
            "claimed_epsilon": certificate.claimed_epsilon,
            "claim_holds": certificate.claim_holds,
            "record_epsilon": cost.record_epsilon,
            "word_epsilon": cost.word_epsilon,
            "delta": cost.delta,
            "group": together
            and {
                "size": group,
                "record_epsilon": together.record_epsilon,
                "word_epsilon": together.word_epsilon,
                "delta": together.delta,
            },
            "certificate": certificate.to_json(),
            "event": certificate.event(releases).to_json(),
        }
        print_json(result)
        return
    typer.echo(str(certificate))
    if releases > 1:
        record, word = cost.record_epsilon, cost.word_epsilon
        typer.echo(
            f"Together:  epsilon {rounded_up(record, 6)} for {releases:,} releases of "
            f"one text; {rounded_up(word, 6)} for texts that differ in one word"
        )
    if together is not None:
        typer.echo(
            f"For {group:,} texts of one person: epsilon "
            f"{rounded_up(together.record_epsilon, 6)}"
        )
    for line in certificate.explain():
        typer.echo(
            f"  {line.name} = {line.value:,.6g}: {line.formula} ({line.source}; "
            f"{line.condition})"
        )


def compose(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="YAML or JSON: a list of uses."),
    ],
    delta: Annotated[
        float | None,
        typer.Option("--delta", metavar="DELTA", help="Default: the file's, or 1e-5."),
    ] = None,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Several uses of the same records, composed.

    A use is {KIND: {...}}: dp_sgd (examples, batch, steps, noise_multiplier,
    sampling), gaussian_counts (noise_multiplier), selection (noise_multiplier,
    delta, max_contributions), response (epsilon), exponential (epsilon), laplace
    (epsilon, delta), nothing, search (mean, shape, run: the use that is repeated a
    random number of times, the best kept); each may have times and name, and part:
    NAME beside it for disjoint records.
    """
    from tfpriv.accounting import epsilon
    from tfpriv.accounting.event_list import event_of, read_uses

    with before_work():
        uses, own = read_uses(file)
    delta = delta if delta is not None else 1e-5 if own is None else own
    result = priced(event_of(uses), delta, group)
    result["uses"] = [
        {
            "name": use.name,
            "part": use.part,
            "event": use.event.to_json(),
            "epsilon_alone": epsilon(use.event, delta),
        }
        for use in uses
    ]
    alone = [
        f"{use['name']}{'' if use['part'] is None else ' [' + use['part'] + ']'}: "
        f"epsilon {rounded_up(use['epsilon_alone'])} alone"
        for use in result["uses"]
    ]
    _show(
        result,
        as_json,
        f"{len(uses)} use{'s' * (len(uses) != 1)} of the same records",
        "every use is as it says, with noise of its own",
        alone,
    )


def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a run, or a ledger.")
    ],
    delta: Annotated[
        float | None,
        typer.Option("--delta", metavar="DELTA", help="Default: the ledger's own."),
    ] = None,
    group: GroupOption = None,
    as_json: JsonOption = False,
) -> None:
    """Everything that a run was charged for, from its ledger."""
    from tfpriv.accounting import PrivacyLedger
    from tfpriv.accounting.statement import describe

    with before_work():
        ledger = PrivacyLedger.existing(_ledger(directory), read_only=True)
    delta = ledger.delta if delta is None else delta
    result = priced(ledger.event(), delta, group)
    result |= {
        "ledger": str(ledger.path),
        "limit_epsilon": ledger.limit_epsilon,
        "charges": len(ledger.events()),
    }
    parts = [
        f"{'all records' if part is None else part}: {describe(_composed(tally))}"
        for part, tally in ledger.tallies().items()
    ]
    _show(
        result,
        as_json,
        f"{ledger.path}: {result['charges']:,} charges, limit "
        f"{ledger.limit_epsilon:g} at delta {ledger.delta:g}",
        "the ledger is whole, and every use of the records was charged to it",
        parts,
    )


COMMANDS = (counts, selection, response, laplace, compose, run)


def _composed(tally: Any) -> Event:
    from tfpriv.accounting import Compose, Repeat

    return Compose(tuple(Repeat(unit, count) for unit, count in tally.items()))


def _ledger(path: Path) -> Path:
    for file in (path / "internal" / "ledger.jsonl", path / "ledger.jsonl"):
        if file.is_file():
            return file
    if path.is_dir() or not path.exists():
        raise InputError(
            f"Expected the folder of a run with a ledger, received {path}, which has "
            "no internal/ledger.jsonl."
        )
    return path


def _sigma(
    event: Any,
    noise_multiplier: float | None,
    target_epsilon: float | None,
    delta: float,
) -> float:
    from tfpriv.accounting import calibrate_scale

    if (noise_multiplier is None) == (target_epsilon is None):
        received = "neither" if noise_multiplier is None else "both"
        raise InputError(
            "Expected one of --noise-multiplier and --target-epsilon, received "
            f"{received}."
        )
    if target_epsilon is None:
        return noise_multiplier
    return calibrate_scale(event, target_epsilon, delta)


def _show(
    result: dict[str, Any],
    as_json: bool,
    title: str,
    assumption: str,
    covers: list[str] | None = None,
) -> None:
    result.setdefault("adjacency", "add-or-remove-one")
    result |= {"assumption": assumption, "not_covered": NOT_COVERED}
    if as_json:
        print_json(result)
        return
    neighbours = f"for {NEIGHBOURS[result['adjacency']]}"
    rows = {
        "Covers": [*(covers or []), neighbours],
        "Assumes": [assumption],
        "Does not cover": NOT_COVERED,
    }
    print_priced(result, title, rows)


def _lengths(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        first, last = map(int, text.split(","))
    except ValueError:
        raise InputError(
            f"Expected two whole numbers A,B for --lengths, received {text!r}."
        ) from None
    return first, last


def _times(releases: int) -> str:
    return "once" if releases == 1 else f"{releases:,} times"
