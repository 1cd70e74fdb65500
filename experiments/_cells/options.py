"""The options that every experiment has."""

from __future__ import annotations

import argparse
from pathlib import Path


def make_parser(
    name: str,
    description: str,
    *,
    arms: str | None = None,
    folder: str = "folder of the run; given again, the run goes on",
) -> argparse.ArgumentParser:
    """Returns a parser with --quick, --seeds, --output and, with arms, --only.

    Args:
        name: of the module in `experiments`.
        description: one sentence.
        arms: what --only may name, as its help says it.
        folder: what --output is, as its help says it.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{name}", description=description
    )
    parser.add_argument("--quick", action="store_true", help="smallest sizes")
    parser.add_argument(
        "--seeds", type=int, nargs="+", metavar="N", help="one run of every arm a seed"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs", name),
        help=folder,
    )
    if arms is not None:
        parser.add_argument("--only", nargs="+", metavar="ARM", help=arms)
    return parser
