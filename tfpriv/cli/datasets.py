"""`tfpriv datasets`: which named data sets there are, and getting their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tfpriv.cli._common import UsageCommand

app = typer.Typer(
    help="List the named data sets, or prepare the files of one.",
    invoke_without_command=True,
)

_DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Folder with the files of all data sets. "
        "Default: TFPRIV_DATA_DIR, else ~/.cache/tfpriv.",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.callback()
def list_datasets(
    context: typer.Context, data_dir: _DataDir = None, as_json: _Json = False
) -> None:
    """List the named data sets, or prepare the files of one."""
    if context.invoked_subcommand is not None:
        context.obj = (data_dir, as_json)
        return
    from tfpriv.datasets import registry

    rows = []
    for name in registry.names():
        entry = registry.entry(name)
        row = {
            "name": name,
            "ready": registry.is_prepared(name, data_dir),
            "licence": entry.licence,
            "summary": entry.summary,
        }
        rows.append(row)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    typer.echo(f"Data folder: {registry.data_folder(data_dir)}")
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        state = "ready" if row["ready"] else "not here"
        typer.echo(f"{row['name']:<{width}}  {state:<8}  {row['summary']}")


@app.command(cls=UsageCommand)
def prepare(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The data set, youtube_spam for one."),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER|ZIP",
            help="Files you have. Default: those in place, else the official archive.",
        ),
    ] = None,
    data_dir: _DataDir = None,
    as_json: _Json = False,
) -> None:
    """Verify the files of a data set and put them into the data folder."""
    from tfpriv.datasets import registry

    outer_dir, outer_json = context.obj or (None, False)
    folder = registry.prepare(name, source, data_dir or outer_dir)
    if as_json or outer_json:
        typer.echo(json.dumps({"name": name, "folder": str(folder)}))
    else:
        typer.echo(f"{name} is ready in {folder}.")
