"""`tfpriv rmat`: the group of `train` and `attack`."""

from __future__ import annotations

import typer

from tfpriv.cli._common import UsageCommand
from tfpriv.cli.rmat_attack import attack
from tfpriv.cli.rmat_train import train

app = typer.Typer(
    help="Train representations that do a task and hide an attribute; attack them."
)
app.command(cls=UsageCommand)(train)
app.command(cls=UsageCommand)(attack)
