"""Tables 1 to 3 of RMAT, certified releases, and the privacy-utility front.

    python -m experiments.rmat_tables --seeds 0 1 2 --output runs/rmat_tables

Run again on the same folder it goes on where it was; processes that are given
different `--datasets`, `--seeds` or `--only` may share one. A folder holds one set of
settings: to try others, change `Settings` here and choose another folder.
"""

from __future__ import annotations

from experiments.rmat_tables.command import main
from experiments.rmat_tables.settings import Settings

SETTINGS = Settings()

if __name__ == "__main__":
    raise SystemExit(main(SETTINGS))
