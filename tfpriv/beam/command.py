"""`python -m tfpriv.beam`: a corpus of text files to a folder of releases.

Exit codes: 0 done; 2 found before work; 1 failed after; 130 interrupted.
`TFPRIV_DEBUG=1` shows tracebacks and the log.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._figures import rounded_up
from tfpriv._quiet import quiet_import
from tfpriv.beam._require import require_beam
from tfpriv.beam.places import OUTPUT_FORMATS, find_files
from tfpriv.beam.records import FORMATS
from tfpriv.beam.runners import RUNNERS

if TYPE_CHECKING:
    from tfpriv.beam.corpus import CorpusRelease

_NAME = "python -m tfpriv.beam"


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    disabled = logging.root.manager.disable
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _fail("interrupted. What it wrote is gone; what was charged stays.", 130)
    except (InputError, BudgetExceeded) as error:
        return _fail(str(error), 2)
    except Exception as error:
        if os.environ.get("TFPRIV_DEBUG") == "1":
            traceback.print_exc()
        if isinstance(error, OSError) and error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            return _fail(f"{where}{error.strerror}.", 1)
        if isinstance(error, OSError | RuntimeError) and str(error):
            return _fail(str(error), 1)
        # The text of an error that nobody foresaw may quote a private cell.
        kind = type(error).__name__
        return _fail(f"unexpected {kind}. TFPRIV_DEBUG=1 shows more.", 1)
    finally:
        logging.disable(disabled)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InputError(f"{message}. Try '{_NAME} --help'.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=_NAME,
        allow_abbrev=False,
        description="Release a private representation of each record of text files, "
        "on Apache Beam. Any other option is Beam's own, for instance "
        "--direct_num_workers 0 --direct_running_mode multi_processing. Files with a "
        "budget (`tfpriv budget init`) are charged before a record is encoded.",
    )
    parser.add_argument(
        "--input", required=True, nargs="+", metavar="GLOB", help="Files; quote a glob."
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="A new folder: release/ and internal/ in it, _SUCCESS when it is done.",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="DIR",
        help="What `tfpriv export` wrote, where workers can read it.",
    )
    parser.add_argument(
        "--runner", default="DirectRunner", choices=RUNNERS, help="Default: %(default)s"
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="Where the names do not tell it."
    )
    parser.add_argument("--text", metavar="COL", help="Column of a table's texts.")
    parser.add_argument(
        "--key",
        metavar="COL",
        help="Column that tells records apart: a key is released once. It is released "
        "as it is. Default: file and place.",
    )
    parser.add_argument(
        "--output-format",
        default="tfrecord",
        choices=OUTPUT_FORMATS,
        help="%(default)s",
    )
    parser.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="Default: %(default)s"
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=0,
        metavar="N",
        help="Files; 0: as the runner likes.",
    )
    parser.add_argument(
        "--unprotected-training",
        action="store_true",
        help="Release although a data set with a budget trained the encoder, which "
        "protects it not.",
    )
    parser.add_argument("--json", action="store_true", help="Print JSON for machines.")
    return parser


def _run(arguments: list[str]) -> int:
    given, others = _parser().parse_known_args(arguments)
    if os.environ.get("TFPRIV_DEBUG") != "1":
        # What a worker logs about a failed step may quote a record.
        logging.disable(logging.CRITICAL)
    require_beam()
    find_files(given.input)
    with quiet_import():
        import tensorflow  # noqa: F401

        from tfpriv.beam.corpus import privatize_corpus

    if given.runner in ("FlinkRunner", "SparkRunner", "DataflowRunner"):
        logging.disable(logging.NOTSET)
    made = privatize_corpus(
        given.input,
        given.output,
        given.model,
        text=given.text,
        key=given.key,
        format=given.format,
        output_format=given.output_format,
        batch_size=given.batch_size,
        shards=given.shards,
        unprotected_training=given.unprotected_training,
        runner=given.runner,
        options=others,
    )
    _tell(made, as_json=given.json)
    return 0


def _tell(made: CorpusRelease, *, as_json: bool) -> None:
    counters = made.counters
    if counters.get("unread_files"):
        _say(
            f"warning: {counters['unread_files']} files were not read to their end; "
            "internal/dead_letters.jsonl says where."
        )
    epsilon = made.statement.epsilon
    if as_json:
        result = {
            "output": made.output,
            **counters,
            "charged": made.charged,
            "epsilon": None if math.isinf(epsilon) else epsilon,
            "statement": made.statement.to_json(),
        }
        _print(json.dumps(result, indent=2, allow_nan=False))
        return
    if math.isinf(epsilon):
        _say("NO guarantee: the model releases without enough noise for any epsilon.")
    else:
        _say(
            f"epsilon {rounded_up(epsilon)}, certified for any two texts, for each "
            "record. Another run adds as much; the training data is not charged."
        )
    for id, count in made.charged.items():
        _say(f"charged to data set {id}: {count} release{'s' * (count != 1)}")
    _print(f"Wrote {_told(counters, 'released')} representations to {made.output}")
    _print(f"  dead letters: {_told(counters, 'dead_letters')}")


def _told(counters: dict[str, int], name: str) -> str:
    return f"{counters[name]:,}" if name in counters else "an unknown number of"


def _say(line: str) -> None:
    sys.stderr.write(f"tfpriv.beam: {line}\n")


def _fail(message: str, code: int) -> int:
    _say(f"error: {' '.join(message.split())}")
    return code


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
