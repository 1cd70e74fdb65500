"""DP-SeqGAN's table and figures: is it attacked, is it useful, why?

    python -m experiments.dp_seqgan --output runs/dp_seqgan

Run again on the same folder it goes on where it was; processes that are given
different `--seeds` or `--only` may share one.
"""

from __future__ import annotations

from experiments.dp_seqgan.command import main
from experiments.dp_seqgan.settings import Settings

if __name__ == "__main__":
    raise SystemExit(main(Settings()))
