"""What a release costs: events, two accountants, a ledger, and the statement.

Pure Python and NumPy; the names below are loaded on first use, and `dp_accounting`
when a price is asked for. Read `dp_sgd.py` first.

- `DPSGDPlan`: one private training run, its epsilon, and the noise for an epsilon.
- `Gaussian`, `PoissonGaussian`, ...: the events; `epsilon(event, delta)` prices one.
- `calibrate_scale`: the noise of a whole release from its budget.
- `PrivacyLedger`: a budget on disk that is charged before each use and cannot be
  overrun.
- `DataBudget`: what all releases of one data set may cost together.
- `PrivacyStatement`: what a release guarantees, from the list of its private reads;
  `group_epsilon`: for all the records of one author at once.
- `LaplaceCertificate`: what the representation of a text costs its author, and
  `RepresentationStatement`: that and what it does not cover.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.accounting.composition import ACCOUNTANTS, calibrate_scale, epsilon
    from tfpriv.accounting.data_budget import DataBudget
    from tfpriv.accounting.dp_sgd import SAMPLINGS, DPSGDPlan, PrivacyWarning
    from tfpriv.accounting.events import (
        ApproxDP,
        Compose,
        Event,
        Gaussian,
        GaussianThreshold,
        NonPrivate,
        Parallel,
        PoissonGaussian,
        PureDP,
        Repeat,
        RepeatAndSelect,
        collapse,
        combine,
    )
    from tfpriv.accounting.group import GroupBound, group_epsilon
    from tfpriv.accounting.laplace import LaplaceCertificate, ReleaseCost
    from tfpriv.accounting.laplace_figures import CertifiedFigure
    from tfpriv.accounting.ledger import Charge, Note, PrivacyLedger
    from tfpriv.accounting.masking import (
        all_masked_probability,
        fixed_mask_amplification,
        masked_words,
        masking_amplification,
    )
    from tfpriv.accounting.representation_statement import RepresentationStatement
    from tfpriv.accounting.statement import PrivacyStatement, PrivateRead

__all__ = [
    "ACCOUNTANTS",
    "SAMPLINGS",
    "ApproxDP",
    "CertifiedFigure",
    "Charge",
    "Compose",
    "DPSGDPlan",
    "DataBudget",
    "Event",
    "Gaussian",
    "GaussianThreshold",
    "GroupBound",
    "LaplaceCertificate",
    "NonPrivate",
    "Note",
    "Parallel",
    "PoissonGaussian",
    "PrivacyLedger",
    "PrivacyStatement",
    "PrivacyWarning",
    "PrivateRead",
    "PureDP",
    "ReleaseCost",
    "Repeat",
    "RepeatAndSelect",
    "RepresentationStatement",
    "all_masked_probability",
    "calibrate_scale",
    "collapse",
    "combine",
    "epsilon",
    "fixed_mask_amplification",
    "group_epsilon",
    "masked_words",
    "masking_amplification",
]

_HOMES = {
    "ACCOUNTANTS": "composition",
    "SAMPLINGS": "dp_sgd",
    "ApproxDP": "events",
    "CertifiedFigure": "laplace_figures",
    "Charge": "ledger",
    "Compose": "events",
    "DPSGDPlan": "dp_sgd",
    "DataBudget": "data_budget",
    "Event": "events",
    "Gaussian": "events",
    "GaussianThreshold": "events",
    "GroupBound": "group",
    "LaplaceCertificate": "laplace",
    "NonPrivate": "events",
    "Note": "ledger",
    "Parallel": "events",
    "PoissonGaussian": "events",
    "PrivacyLedger": "ledger",
    "PrivacyStatement": "statement",
    "PrivacyWarning": "dp_sgd",
    "PrivateRead": "statement",
    "PureDP": "events",
    "ReleaseCost": "laplace",
    "Repeat": "events",
    "RepeatAndSelect": "events",
    "RepresentationStatement": "representation_statement",
    "all_masked_probability": "masking",
    "calibrate_scale": "composition",
    "collapse": "events",
    "combine": "events",
    "epsilon": "composition",
    "fixed_mask_amplification": "masking",
    "group_epsilon": "group",
    "masked_words": "masking",
    "masking_amplification": "masking",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
