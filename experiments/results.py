"""Puts experiments/RESULTS.md together from what each experiment's full run wrote.

    python -m experiments.results

It reads experiments/NAME/results/results.json and results.md, and writes nothing that
is not in them: figures, targets that were missed, commands, machines, versions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._files import PUBLIC, atomic_write

HERE = Path(__file__).parent
Results = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes RESULTS.md; exit code 2 if there is nothing that may go into it."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.results", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--output", type=Path, help="default: FOLDER/RESULTS.md")
    options = parser.parse_args(arguments)
    try:
        text = put_together(options.folder)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    output = options.output or options.folder / "RESULTS.md"
    with atomic_write(output, mode=PUBLIC) as file:
        file.write(text)
    return 0


def put_together(folder: Path) -> str:
    """Returns RESULTS.md from every NAME/results/ in a folder.

    Raises:
        ValueError: there is none, or one of a quick run or on the tuning split.
    """
    found = {
        path.parents[1].name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*/results/results.json"))
    }
    if not found:
        raise ValueError(
            f"Expected NAME/results/results.json in {folder}, received none. Run an "
            "experiment with --output experiments/NAME/results first."
        )
    for name, results in found.items():
        if results.get("quick"):
            raise ValueError(
                f"Expected results of full runs, received a quick one of {name}."
            )
        if results.get("part", "S3") != "S3":
            raise ValueError(
                f"Expected results on S3, received those of {name} on "
                f"{results['part']}, which is for tuning."
            )
    lines = [
        "# Results",
        "",
        "Made by `python -m experiments.results` from what the commands below wrote; "
        "not edited by hand.",
        "",
        *_missed(found),
        *_made(found),
    ]
    for name in found:
        report = folder / name / "results" / "results.md"
        lines += ["", _embedded(report.read_text(encoding="utf-8"), name)]
    return "\n".join(lines).rstrip() + "\n"


def _missed(found: dict[str, Results]) -> list[str]:
    every = {name: _targets(name, results) for name, results in found.items()}
    missed = [(n, t) for n, targets in every.items() for t in targets if not t["met"]]
    total = sum(map(len, every.values()))
    lines = ["## Missed targets", ""]
    lines += [f"{len(missed)} of {total} targets were missed, by the mean over seeds."]
    if missed:
        lines += ["", "| experiment | what | goal | measured |", "|---|---|---|---|"]
        lines += [
            f"| {name} | {t['what']} | {t['goal']} | {t['value']} |"
            for name, t in missed
        ]
    return [*lines, ""]


def _made(found: dict[str, Results]) -> list[str]:
    lines = ["## How they were made", ""]
    lines += ["| experiment | command | machine |", "|---|---|---|"]
    for name, results in found.items():
        machines = results.get("machine", "-")
        if not isinstance(machines, str):
            machines = "; ".join(machines)
        lines.append(f"| {name} | `{_command(name, results)}` | {machines} |")
    lines += ["", "Versions:", ""]
    for name, results in found.items():
        versions = results.get("versions", {})
        shown = ", ".join(f"{key} {version}" for key, version in versions.items())
        lines.append(f"- {name}: {shown}")
    return lines


def _command(name: str, results: Results) -> str:
    seeds = " ".join(map(str, results.get("seeds", ())))
    plain = f"python -m experiments.{name} --seeds {seeds} --output DIR"
    return results.get("command", plain)


def _embedded(text: str, name: str) -> str:
    """A report one heading lower, its pictures found from this folder."""
    text = re.sub(r"^(#+ )", r"#\1", text.strip(), flags=re.MULTILINE)
    return re.sub(r"\]\((?!https?:)([^)/]+\.png)\)", rf"]({name}/results/\1)", text)


# --- Targets -----------------------------------------------------------------


def _targets(name: str, results: Results) -> list[dict[str, Any]]:
    return results.get("targets") or _TARGETS.get(name, lambda _: [])(results)


def _oracle_targets(results: Results) -> list[dict[str, Any]]:
    """Whether the adversary covers the data as MLE does, and beats its controls."""

    def value(setting: str, metric: str = "nll_oracle") -> float:
        found = [
            row["value"]
            for row in results["measurements"]
            if row["setting"] == setting and row["metric"] == metric
        ]
        return float(np.mean(found)) if found else float("nan")

    ours = value("SeqGAN")
    tests = [value(setting, "nll_test") for setting in ("SeqGAN", "MLE")]
    controls = ("MLE", "tempered MLE", "constant reward")
    return [
        {
            "what": "SeqGAN's NLL_test no worse than MLE's",
            "goal": f"<= {tests[1]:.4f}",
            "value": f"{tests[0]:.4f}",
            "met": tests[0] <= tests[1],
        },
        *(
            {
                "what": f"SeqGAN's NLL_oracle below that of {control}",
                "goal": f"< {value(control):.3f}",
                "value": f"{ours:.3f}",
                "met": ours < value(control),
            }
            for control in controls
            if not np.isnan(value(control))
        ),
    ]


_TARGETS: dict[str, Callable[[Results], list[dict[str, Any]]]] = {
    "seqgan_oracle": _oracle_targets
}


if __name__ == "__main__":
    raise SystemExit(main())
