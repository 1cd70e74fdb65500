"""Beam's runners and options, checked before work."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import one_of

RUNNERS = (
    "DirectRunner",
    "FlinkRunner",
    "DataflowRunner",
    "SparkRunner",
    "PortableRunner",
)


def checked_options(flags: Sequence[str]) -> Any:
    """Beam's options; one that no Beam class knows is refused, not passed over."""
    from apache_beam.options.pipeline_options import PipelineOptions

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            raise InputError(f"Expected options of Apache Beam: {message}.")

    parser = Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    unknown = parser.parse_known_args(list(flags))[1]
    if unknown:
        raise InputError(
            f"Expected options of this command or of Apache Beam, received "
            f"{unknown[0]!r}."
        )
    return PipelineOptions(list(flags))


def made_runner(runner: Any) -> Any:
    """Returns a runner of a name in `RUNNERS`; one that is made already as it is.

    Raises:
        InputError: an unknown name, or a runner whose packages are missing.
    """
    from apache_beam.runners import runner as runners

    if not isinstance(runner, str):
        return runner
    one_of(RUNNERS, runner=runner)
    if runner == "DirectRunner":
        # The runner of that name would first fetch another program and try that.
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner

        return FnApiRunner()
    try:
        return runners.create_runner(runner)
    except (AttributeError, ImportError) as error:
        raise InputError(
            f"Expected what {runner} needs to be installed, received "
            f"{type(error).__name__}. For Dataflow: pip install 'apache-beam[gcp]'."
        ) from None


def stop_workers(pid: int | None = None) -> None:
    """Ends the worker processes below this one, where /proc tells them (Linux)."""
    tasks = Path(f"/proc/{os.getpid() if pid is None else pid}/task")
    with contextlib.suppress(OSError):
        for task in tasks.iterdir():
            for child in map(int, (task / "children").read_text().split()):
                stop_workers(child)
                os.kill(child, signal.SIGKILL)


def why(error: BaseException) -> str:
    """One line about a failed pipeline: our own, or else the class of the error."""
    own = re.search(
        r"Expected [^\n]*?received [^\n]*?(?= \[while running|\n|$)", str(error)
    )
    if own:
        return own.group()
    return (
        f"Expected the pipeline to finish, received {type(error).__name__}. Nothing "
        "was written. TFPRIV_DEBUG=1 shows more, private text maybe among it."
    )
