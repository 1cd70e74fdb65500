"""Whether Apache Beam is there."""

from __future__ import annotations

import importlib.util

from tfpriv._errors import InputError


def require_beam() -> None:
    """Raises InputError unless Apache Beam can be imported."""
    if importlib.util.find_spec("apache_beam") is None:
        raise InputError(
            "Expected Apache Beam to be installed, received no such package. "
            "pip install 'tfpriv[beam]'."
        )
