"""Peak memory of a contestant, in a process of its own.

    python -m experiments.benchmarks.memory "TextCNN step" "plain Keras"

prints, as JSON, how much the process held when everything was imported and at its
peak, three turns later.
"""

from __future__ import annotations

import json
import subprocess
import sys

from experiments._cells.machine import peak_mib
from experiments.benchmarks.contests import CONTESTS, PLAIN, PRIVATE

STEPS = (
    "TextCNN step",
    "SeqGAN discriminator step",
    "LSTM generator step, 32 units",
    "LSTM generator step, 256 units",
    "BERT step, two of six layers",
)
TURNS = 3


def measure(contest: str, seed: int) -> dict:
    """What the private step of a contest holds beside the plain one, in MiB."""
    row = {"contest": contest, "seed": seed}
    for key, contestant in (("plain", PLAIN), ("private", PRIVATE)):
        command = (sys.executable, "-m", __spec__.name, contest, contestant, str(seed))
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        row[f"{key}_mib"] = found["peak_mib"] - found["imported_mib"]
    return row | {"ratio": row["private_mib"] / row["plain_mib"]}


def main(contest: str, contestant: str, seed: str = "0") -> None:
    """Takes a few turns and prints what they took."""
    run = CONTESTS[contest](int(seed))[contestant]
    imported = peak_mib()
    for _ in range(TURNS):
        run()
    print(json.dumps({"imported_mib": imported, "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
