"""What was to come out of the contests, and whether it did."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.benchmarks.contests import EQUAL_REWARDS, PLAIN, PRIVATE

DISCRIMINATOR = "SeqGAN discriminator step"
STOCK = "TF-Privacy, stock"
# contest, contestant, column of the summary, at most.
_RATIOS = (
    (DISCRIMINATOR, PRIVATE, "ratio", 1.0),
    ("LSTM generator step, 32 units", PRIVATE, "ratio", 1.3),
    ("LSTM generator step, 256 units", PRIVATE, "ratio", 1.3),
    ("BERT step, two of six layers", PRIVATE, "ratio", 1.5),
    ("Accounting", "tfpriv account", "cpu_ratio", 1.3),
    ("RMAT encoding, 256 texts", "tfpriv, `encode`", "ratio", 1 / 0.95),
)
# contest, contestant, how many times as fast as the other, who.
_SPEEDS = (
    (DISCRIMINATOR, PRIVATE, 40.0, STOCK),
    (
        "SeqGAN rewards, 16 rollouts",
        "tfpriv",
        2.2,
        "one rollout a prefix at a time",
    ),
    (EQUAL_REWARDS, "tfpriv", 5.0, "one rollout a prefix at a time"),
    ("RMAT training, 256 texts", "tfpriv", 2.0, "all padded to 32"),
)
_MILLISECONDS = (("import tfpriv", 300.0), ("tfpriv --help", 500.0))
_MEMORY = 1.3


def targets(summary: Sequence[dict], memory: Sequence[dict]) -> list[dict]:
    """One entry a target whose contest was run: what, goal, value, met."""
    rows = {(row["contest"], row["contestant"]): row for row in summary}
    found = []
    for contest, name, column, most in _RATIOS:
        if row := rows.get((contest, name)):
            kind = "CPU time" if column == "cpu_ratio" else "time"
            what = f"{contest}: {kind} of {name}, times the first contestant's"
            found.append(_at_most(what, row[column][1], most))
    for contest, name, least, other in _SPEEDS:
        pair = rows.get((contest, name)), rows.get((contest, other))
        if all(pair):
            value = pair[1]["ms"][1] / pair[0]["ms"][1]
            what = f"{contest}: {name}, times as fast as {other}"
            goal = f">= {least:g}"
            found.append(_target(what, goal, f"{value:.2f}", value >= least))
    for name, most in _MILLISECONDS:
        if row := rows.get(("Start-up", name)):
            found.append(_at_most(f"{name}, ms", row["ms"][1], most))
    for row in memory:
        what = f"{row['contest']}: peak memory, times {PLAIN}'s"
        found.append(_at_most(what, row["ratio"], _MEMORY))
    return found


def _at_most(what: str, value: float, most: float) -> dict:
    return _target(what, f"<= {most:.3g}", f"{value:.3g}", value <= most)


def _target(what: str, goal: str, value: str, met: bool) -> dict:
    return {"what": what, "goal": goal, "value": value, "met": bool(met)}
