"""SeqGAN's synthetic-data experiment against a random-weight oracle LSTM.

    python -m experiments.seqgan_oracle --seeds 0 --output runs/seqgan_oracle

Run again on the same folder it goes on where it was. Under 25 minutes a seed on two
cores; `--quick` takes under a minute and its figures mean nothing.
"""

from __future__ import annotations

import json
import sys

from experiments._cells.machine import machine, versions
from experiments._cells.options import make_parser
from experiments._cells.progress import say
from tfpriv._quiet import quiet_import


def main(arguments: list[str] | None = None) -> int:
    """Runs every seed and writes results.json, results.md and tradeoff.png."""
    parser = make_parser("seqgan_oracle", __doc__.splitlines()[0])
    parser.set_defaults(seeds=[0])
    options = parser.parse_args(arguments)

    import numpy

    with quiet_import():
        from experiments.seqgan_oracle.runner import Seed
    from experiments.seqgan_oracle import report
    from experiments.seqgan_oracle.schedule import FULL, QUICK
    from tfpriv._files import PUBLIC, write_json

    schedule = QUICK if options.quick else FULL
    options.output.mkdir(parents=True, exist_ok=True)
    kept = options.output / "schedule.json"
    if kept.exists():
        if json.loads(kept.read_text(encoding="utf-8")) != schedule.to_json():
            message = (
                f"Expected an empty folder or one of the same schedule, received "
                f"{options.output}. Choose another --output."
            )
            sys.stderr.write(message + "\n")
            return 2
    elif any(options.output.iterdir()):
        sys.stderr.write(
            f"Expected an empty folder, received {options.output}. "
            "Choose another --output.\n"
        )
        return 2
    else:
        write_json(kept, schedule.to_json(), mode=PUBLIC)

    seeds = {}
    for seed in options.seeds:
        folder = options.output / f"seed_{seed}"
        seeds[seed] = Seed(seed, schedule, folder, say).run()
        names = seeds[seed]
        results = {
            "experiment": "seqgan_oracle",
            "quick": options.quick,
            "seeds": list(seeds),
            "schedule": schedule.to_json(),
            "published": report.PUBLISHED,
            "measurements": report.measurements(seeds),
            "seconds": {
                name: float(
                    numpy.mean([parts[name]["seconds"] for parts in seeds.values()])
                )
                for name in names
            },
            "curves": {str(seed): parts for seed, parts in seeds.items()},
            "versions": versions(),
            "machine": machine(),
        }
        write_json(options.output / "results.json", results, mode=PUBLIC)
        report.write_markdown(options.output / "results.md", results)
        report.write_plot(options.output / "tradeoff.png", seeds)
    say(f"wrote {options.output / 'results.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
