"""A progress bar for long training, where there is a terminal to draw it on."""

from __future__ import annotations

import sys
from collections.abc import Callable


def terminal_report() -> Callable[[str, float], None]:
    """Returns a function of (stage, share done) that draws a bar on stderr.

    Off a terminal it prints a line whenever the stage changes.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        return _Lines()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    task = bar.add_task("starting", total=1.0)
    bar.start()

    def report(stage: str, done: float) -> None:
        bar.update(task, description=f"{stage:<28}", completed=done)
        if done >= 1.0:
            bar.stop()

    return report


class _Lines:
    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, stage: str, done: float) -> None:
        if stage != self._stage:
            self._stage = stage
            sys.stderr.write(f"{done:4.0%} {stage}\n")
            sys.stderr.flush()
