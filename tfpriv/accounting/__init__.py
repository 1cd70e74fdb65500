"""What a release costs: events, two accountants, a ledger, and the statement.

Pure Python and NumPy; `dp_accounting` is imported when a price is asked for. Read
`dp_sgd.py` first.

- `DPSGDPlan`: one private training run, its epsilon, and the noise for an epsilon.
- `Gaussian`, `PoissonGaussian`, ...: the events; `epsilon(event, delta)` prices one.
- `calibrate_scale`: the noise of a whole release from its budget.
- `PrivacyLedger`: a budget on disk that is charged before each use and cannot be
  overrun.
- `PrivacyStatement`: what a release guarantees, from the list of its private reads.
"""

from tfpriv.accounting.composition import ACCOUNTANTS, calibrate_scale, epsilon
from tfpriv.accounting.dp_sgd import SAMPLINGS, DPSGDPlan, PrivacyWarning
from tfpriv.accounting.events import (
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    collapse,
    combine,
)
from tfpriv.accounting.ledger import Charge, PrivacyLedger
from tfpriv.accounting.statement import PrivacyStatement, PrivateRead

__all__ = [
    "ACCOUNTANTS",
    "SAMPLINGS",
    "Charge",
    "Compose",
    "DPSGDPlan",
    "Event",
    "Gaussian",
    "GaussianThreshold",
    "NonPrivate",
    "Parallel",
    "PoissonGaussian",
    "PrivacyLedger",
    "PrivacyStatement",
    "PrivacyWarning",
    "PrivateRead",
    "PureDP",
    "Repeat",
    "calibrate_scale",
    "collapse",
    "combine",
    "epsilon",
]
