"""A progress bar for long training, where there is a terminal to draw it on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def terminal_report() -> Iterator[Callable[[str, float], None]]:
    """Yields a function of (stage, share done) that draws a bar on stderr.

    Off a terminal it prints a line whenever the stage changes. However the block
    ends, the bar is taken down: it hides the cursor.
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
        yield _Lines()
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    task = bar.add_task("starting", total=1.0)

    def report(stage: str, done: float) -> None:
        bar.update(task, description=f"{stage:<28}", completed=done)

    with bar:
        yield report


class _Lines:
    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, stage: str, done: float) -> None:
        if stage != self._stage:
            self._stage = stage
            sys.stderr.write(f"{done:4.0%} {stage}\n")
            sys.stderr.flush()
