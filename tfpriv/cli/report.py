"""`tfpriv report`: one page about a run, for those inside or for those outside."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfpriv._files import PRIVATE, PUBLIC, atomic_write
from tfpriv._validation import integer
from tfpriv.cli._common import (
    ConfigOption,
    JsonOption,
    UsageCommand,
    before_work,
    print_json,
    quiet_import,
    say,
)
from tfpriv.cli._report_inputs import ReportInputs
from tfpriv.seqgan.progress_bar import terminal_report

if TYPE_CHECKING:
    from tfpriv.evaluation.quality import TextQuality
    from tfpriv.evaluation.report_blocks import Page
    from tfpriv.evaluation.utility import Utility

app = typer.Typer()

_FILE = "report.html"
_NOTE = "an evaluation of a release, with real records: internal, no epsilon"
_SEEDS = 3
_PRIOR = (
    "the language model that comes with tfpriv, from which synthetic text may have "
    "been made"
)


@app.command(cls=UsageCommand)
def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A run of `tfpriv synthesize` or `tfpriv rmat train`."
        ),
    ],
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="The page that may leave with the release: nothing but what is public "
            "or paid for.",
        ),
    ] = False,
    members: Annotated[
        Path | None,
        typer.Option(
            "--members",
            metavar="FILE",
            help="Records of a run of `tfpriv synthesize`, for usefulness and copies, "
            "where they were moved.",
        ),
    ] = None,
    non_members: Annotated[
        Path | None,
        typer.Option(
            "--non-members",
            metavar="FILE",
            help="Records of the same kind that it was not made from, to test on.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            metavar="FILE.txt",
            help="Public texts, one a line, for perplexity. Default: the language "
            "model of tfpriv.",
        ),
    ] = None,
    networks: Annotated[
        bool,
        typer.Option(
            "--networks",
            help="Train a CNN and an RNN beside logistic regression: minutes.",
        ),
    ] = False,
    embeddings: Annotated[
        bool,
        typer.Option(
            "--embeddings/--no-embeddings",
            help="Compare texts by MiniLM's vectors as well.",
        ),
    ] = True,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of samples and classifiers.")
    ] = 0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Write one page about a run: what it promises, its use, what attacks found.

    DIR/internal/report.html is for whoever may see the private records: it was
    computed from them and must not leave. With --release, DIR/release/report.html
    says what the release itself tells. Neither shows a private text; both are one
    file that asks for nothing from a network.
    """
    del config
    with contextlib.ExitStack() as opened:
        with before_work():
            integer(0, seed=seed)
            given = {
                "--members": members,
                "--non-members": non_members,
                "--networks": "on" if networks else None,
            }
            if release:
                inputs = ReportInputs.of_release(directory, public, given)
            else:
                inputs = ReportInputs.of_run(directory, public, given, opened)
        if release:
            result, page = _release_page(inputs, seed)
        else:
            result, page = _internal_page(inputs, seed, networks, embeddings)
        path = directory / ("release" if release else "internal") / _FILE
        html = page.render()
        with atomic_write(path, mode=PUBLIC if release else PRIVATE) as file:
            file.write(html)
    if as_json:
        print_json({"report": str(path), **result})
        return
    for figure in page.summary:
        typer.echo(f"{figure.title}: {figure.value} ({figure.reading})")
    fate = "it may leave with the release"
    if not release:
        fate = "found in private records, it stays inside"
    typer.echo(f"\nWrote {path}: {fate}.")


def _release_page(inputs: ReportInputs, seed: int) -> tuple[dict[str, Any], Page]:
    """The page that may leave, and its figures; made of the release alone."""
    from tfpriv.evaluation.report import release_page

    quality = _quality(inputs, seed)
    page = release_page(inputs.released, quality, model=_model_in_words(inputs))
    return _result(inputs, quality), page


def _internal_page(
    inputs: ReportInputs, seed: int, networks: bool, embeddings: bool
) -> tuple[dict[str, Any], Page]:
    """The page that stays, and its figures."""
    from tfpriv.evaluation.report import internal_page

    if inputs.budget is not None:
        inputs.budget.note(_NOTE)
    quality = _quality(inputs, seed, embeddings)
    utility = _utility(inputs, seed, networks)
    page = internal_page(
        inputs.released,
        inputs.files,
        quality=quality,
        utility=utility,
        data_budget=inputs.budget,
        model=_model_in_words(inputs),
    )
    result = _result(inputs, quality)
    if utility is not None:
        result["utility"] = utility.to_json()
    return result, page


def _quality(
    inputs: ReportInputs, seed: int, embeddings: bool = False
) -> TextQuality | None:
    from tfpriv.evaluation import PublicPerplexity, measure_quality
    from tfpriv.text import LanguagePrior

    rows, held_out, embed = inputs.released.synthetic, inputs.held_out, None
    if rows is None:
        return None
    if embeddings and inputs.real is not None:
        say("comparing texts by MiniLM's vectors.")
        embed = _embed
    return measure_quality(
        rows.texts,
        inputs.real,
        None if held_out is None else held_out.texts,
        model=inputs.public or PublicPerplexity.of_prior(LanguagePrior.load()),
        embed=embed,
        seed=seed,
    )


def _utility(inputs: ReportInputs, seed: int, networks: bool) -> Utility | None:
    from tfpriv.evaluation import measure_utility

    if inputs.real is None:
        return None
    sides = inputs.real, inputs.released.synthetic, inputs.held_out
    if not networks:
        return measure_utility(*sides)
    with quiet_import():
        import tensorflow as tf
    tf.get_logger().setLevel("ERROR")  # each network is traced anew, and meant to be
    with terminal_report() as progress:
        return measure_utility(
            *sides,
            names=("LR", "CNN", "RNN"),
            seeds=range(seed, seed + _SEEDS),
            progress=progress,
        )


def _model_in_words(inputs: ReportInputs) -> str:
    # Not the file's name: it may say whose texts it holds.
    return _PRIOR if inputs.public is None else "a trigram model of public texts"


def _embed(texts: Any) -> Any:
    with quiet_import():
        from tfpriv.evaluation.embeddings import minilm_embeddings

        return minilm_embeddings(texts)


def _result(inputs: ReportInputs, quality: TextQuality | None) -> dict[str, Any]:
    return {
        "kind": inputs.released.kind,
        "epsilon": inputs.released.statement.epsilon,
        "delta": inputs.released.statement.delta,
        "quality": None if quality is None else quality.to_json(),
    }
