"""One page about a run: what it promises, what it is good for, what attacks found.

`internal_page` is for whoever may see the private records, `release_page` for whoever
gets the release. The second one is given nothing but `ReleasedFiles`.
"""

from __future__ import annotations

import importlib.metadata
import math
import platform
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfpriv.evaluation import report_attacks, report_guarantee, report_text
from tfpriv.evaluation.report_blocks import (
    Block,
    Figure,
    Page,
    Paragraph,
    Section,
    Table,
)
from tfpriv.evaluation.report_plots import curves_picture
from tfpriv.evaluation.report_run import TEXT, InternalFiles, ReleasedFiles

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget
    from tfpriv.evaluation.quality import TextQuality
    from tfpriv.evaluation.utility import Utility

_LIBRARIES = ("tfpriv", "dp-accounting", "tensorflow", "keras", "numpy", "scikit-learn")
# Settings that a report may show: no path, no key, no name of a private label.
_SETTINGS = {
    "mode": "--mode",
    "method": "--method",
    "epsilon": "--epsilon",
    "nominal_epsilon": "--nominal-epsilon",
    "delta": "--delta",
    "discriminator_steps": "--discriminator-steps",
    "mask_rate": "--mask-rate",
    "mask_mode": "--mask-mode",
    "scale": "--scale",
    "dimension": "--dimension",
    "adversary_weight": "--adversary-weight",
    "adversary_steps": "--adversary-steps",
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "learning_rate": "--learning-rate",
    "max_length": "--max-length",
    "seed": "--seed",
}
# Candidates of a class, as internal/model/classes.json names them.
_STAGES = {
    "seed": "seed corpus",
    "pretrained": "pre-trained",
    "adversarial": "adversarial",
}
_CURVES = (
    ("macro-F1", "Task and adversary by epoch (macro-F1).", {
        "task, training": "task_f1",
        "task, validation": "val_task_f1",
        "adversary, training": "private_f1",
        "adversary, validation": "val_private_f1",
    }),
    ("loss", "Loss by epoch.", {"training": "loss", "validation": "val_loss"}),
)  # fmt: skip


def release_page(
    release: ReleasedFiles, quality: TextQuality | None = None, *, model: str = ""
) -> Page:
    """The page that may leave with the release.

    It says what the release says, in words and pictures: every number in it is
    computed from the files of `release/` and from public models.

    Args:
        release: the files.
        quality: of the released text alone; None where there is no text.
        model: what perplexity was measured with, in words.
    """
    sections = [report_guarantee.guarantee(release)]
    summary = [report_guarantee.guarantee_figure(release.statement)]
    rows = release.synthetic
    if rows is not None and quality is not None:
        shown = math.isfinite(release.statement.epsilon)
        summary += [
            Figure("Synthetic rows", f"{len(rows):,}", _labels(release)),
            _diversity(quality),
        ]
        sections += [
            report_text.quality(quality, model=model),
            report_text.distributions(quality, words=shown),
            report_text.samples(rows, shown=shown, dropped=release.dropped),
        ]
    commands = "tfpriv statement DIR --verify\ntfpriv report DIR --release"
    sections.append(report_guarantee.reproduce(release, commands))
    return Page(
        title=f"Release report: {release.kind}",
        audience="For whoever receives the release. Everything here follows from "
        "released files and public models: no private record was looked at for it.",
        leaves=True,
        summary=summary,
        sections=sections,
    )


def internal_page(
    release: ReleasedFiles,
    files: InternalFiles,
    *,
    quality: TextQuality | None = None,
    utility: Utility | None = None,
    data_budget: DataBudget | None = None,
    model: str = "",
) -> Page:
    """The whole page; it is computed from private records and has no epsilon.

    It shows no private text: samples and words are synthetic, real words count only
    where the synthetic text has them too.

    Args:
        release: what was released.
        files: the rest of the run.
        quality: of the released text, beside the real one if that was given.
        utility: what classifiers learn from it, or None.
        data_budget: of the private file, or None.
        model: what perplexity was measured with, in words.
    """
    text = release.kind == TEXT
    statement = release.statement
    made_by = "tfpriv audit DIR --members FILE --non-members FILE."
    if not text:
        made_by = "tfpriv audit DIR."
    attacks, figures = report_attacks.attacks(
        files, made_by, release.digests.get("synthetic.csv")
    )
    summary = [report_guarantee.guarantee_figure(statement)]
    sections = [
        report_guarantee.guarantee(release),
        report_guarantee.budget(files.ledger, data_budget, statement.epsilon),
    ]
    if text and quality is not None:
        if utility is not None:
            summary.append(report_text.use_figure(utility))
        overlap = quality.overlap
        sections += [report_text.use(utility), attacks]
        sections.append(report_text.copies(overlap, quality.held_out_overlap))
        if overlap is not None:
            figures.append(report_text.copies_figure(overlap))
        shown = math.isfinite(statement.epsilon)
        sections += [
            report_text.quality(quality, model=model),
            report_text.distributions(quality, words=shown),
            _chapter("Training", _candidates, files),
            report_text.samples(
                release.synthetic, shown=shown, dropped=release.dropped
            ),
        ]
    else:
        sections += [
            _chapter("Usefulness", _task, files),
            attacks,
            _chapter("Training", _training, files),
        ]
        summary += _task_figure(files)
    settings = {name: files.config[name] for name in _SETTINGS if name in files.config}
    sections.append(
        report_guarantee.reproduce(
            release, _commands(release, files.config), settings, _versions()
        )
    )
    return Page(
        title=f"Report on a run: {release.kind}",
        audience="For whoever answers for the private records. Figures here were "
        "computed from them without noise: they have no epsilon and stay inside."
        + (" Texts shown are synthetic." if text else ""),
        leaves=False,
        summary=[*summary, *figures],
        sections=[section for section in sections if section.blocks],
    )


def _labels(release: ReleasedFiles) -> str:
    names = len(release.synthetic.label_names)
    return f"{names} labels" if names != 1 else "1 label"


def _diversity(quality: TextQuality) -> Figure:
    found = quality.synthetic
    return Figure(
        "Distinct word pairs",
        f"{100 * found.distinct_n[2]:.1f} %",
        f"of those in {found.sample:,} texts",
    )


def _chapter(
    title: str, make: Callable[[InternalFiles], list[Block]], files: InternalFiles
) -> Section:
    """A chapter on a file of the run, or that the file cannot be used."""
    try:
        return Section(title, make(files))
    except (KeyError, TypeError, ValueError, AttributeError):
        text = "The run's own record of this is damaged or another version's."
        return Section(title, [Paragraph(text, "warning")])


def _candidates(files: InternalFiles) -> list[Block]:
    """How near the released counts the candidates of each class came."""
    if not files.candidates:
        return []
    names = files.labels or []
    rows: list[list[str]] = []
    for number, found in enumerate(files.candidates):
        name = names[number] if number < len(names) else f"class {number + 1}"
        divergence = found["divergence"]
        cells = [
            f"{divergence[stage]:.3f}" if stage in divergence else ""
            for stage in _STAGES
        ]
        rows.append([name, *cells, _STAGES.get(found["chosen"], found["chosen"])])
    text = (
        "Each class releases what came nearest to its noisy counts, which were paid "
        "for: the seed corpus drawn from them, or the generator after adversarial "
        "training. No private record was looked at to choose."
    )
    table = Table(
        ("Class", *_STAGES.values(), "released"),
        rows,
        "Divergence from the released counts (lower is nearer).",
    )
    return [table, Paragraph(text, "note")]


def _task(files: InternalFiles) -> list[Block]:
    """What a run of `tfpriv rmat train` measured on its held-out part."""
    found = files.evaluation
    if not found:
        text = "internal/evaluation.json is missing: the task was not measured."
        return [Paragraph(text, "warning")]
    rows = int(found["test_rows"])
    low, high = _wilson(found["task_accuracy"], rows)
    table = Table(
        ("Score", "value"),
        [
            ("accuracy", f"{found['task_accuracy']:.3f} [{low:.3f}, {high:.3f}]"),
            ("macro-F1", f"{found['task_macro_f1']:.3f}"),
            ("macro-F1 of a constant guess", f"{found['constant_macro_f1']:.3f}"),
        ],
        f"The task on {rows:,} held-out records, from one release of each [95 % "
        "interval of Wilson, over records].",
    )
    return [table]


def _task_figure(files: InternalFiles) -> list[Figure]:
    found = files.evaluation or {}
    scores = [found.get(name) for name in ("task_macro_f1", "constant_macro_f1")]
    if not all(isinstance(score, float) for score in scores):
        return []
    title, beside = "Task macro-F1", f"a constant guess: {scores[1]:.3f}"
    return [Figure(title, f"{scores[0]:.3f}", beside)]


def _training(files: InternalFiles) -> list[Block]:
    """Figures by epoch."""
    blocks: list[Block] = []
    history = files.history or []
    for ylabel, caption, names in _CURVES:
        curves = {
            shown: [epoch.get(name) for epoch in history]
            for shown, name in names.items()
            if any(epoch.get(name) is not None for epoch in history)
        }
        if curves:
            blocks.append(curves_picture(curves, ylabel, caption))
    return blocks


def _wilson(share: float, rows: int) -> tuple[float, float]:
    from scipy import stats

    hits = round(share * rows)
    found = stats.binomtest(hits, rows).proportion_ci(0.95, method="wilson")
    return float(found.low), float(found.high)


def _commands(release: ReleasedFiles, config: dict[str, Any]) -> str:
    """The commands of a run, with FILE and DIR for what only its owner knows."""
    if release.kind == TEXT:
        rows = release.synthetic
        parts = ["tfpriv synthesize FILE", f"--text {shlex.quote(rows.text_column)}"]
        parts.append(f"--label {shlex.quote(rows.label_column)}")
    else:
        parts = ["tfpriv rmat train FILE"]
        parts += [
            f"--{name} {shlex.quote(str(config[name]))}"
            for name in ("text", "label", "private")
        ]
    if config.get("labels"):
        parts.append(f"--labels {shlex.quote(','.join(config['labels']))}")
    if release.kind == TEXT:
        parts.append(f"--rows {len(rows)}")
    for name, option in _SETTINGS.items():
        # None means that the command chose it.
        if config.get(name) is not None:
            parts.append(f"{option} {shlex.quote(str(config[name]))}")
    made = " \\\n    ".join([*parts, "--output DIR"])
    check = "tfpriv statement DIR --verify"
    records = " --members FILE --non-members FILE" if release.kind == TEXT else ""
    after = [f"tfpriv {command} DIR{records}" for command in ("audit", "report")]
    return "\n".join([made, check, *after])


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
