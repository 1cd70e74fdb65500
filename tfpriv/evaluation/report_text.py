"""The chapters on the synthetic text: its quality, its use, copies, samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tfpriv._figures import percent
from tfpriv.evaluation.quality import NEAR
from tfpriv.evaluation.report_blocks import (
    Block,
    Figure,
    Paragraph,
    Section,
    Table,
    rows_of,
)
from tfpriv.evaluation.report_plots import (
    accuracy_picture,
    lengths_picture,
    words_picture,
)

if TYPE_CHECKING:
    from tfpriv.datasets import TextDataset
    from tfpriv.evaluation.quality import Overlap, TextQuality
    from tfpriv.evaluation.text_statistics import TextStatistics
    from tfpriv.evaluation.utility import Utility

_WORDS = 20
_SAMPLES = 16
_LONGEST_SAMPLE = 300
_WITHHELD = (
    "Texts and words are not shown: without a guarantee a synthetic text may hold "
    "private ones. They are in release/synthetic.csv."
)


def quality(measured: TextQuality, *, model: str = "") -> Section:
    """How the text reads and how diverse it is, beside the real one if it is there.

    Args:
        measured: the quality.
        model: what perplexity was measured with, in words.
    """
    synthetic, real = measured.synthetic, measured.real
    columns = ["", "synthetic"] + ["real"] * (real is not None)
    rows = [
        (name, value) + ((_statistic(real, name),) if real is not None else ())
        for name, value in _statistics(synthetic).items()
    ]
    blocks: list[Block] = [
        Table(columns, rows, "Diversity and fluency of the texts."),
        Paragraph(
            f"Distinct n-grams and self-BLEU are counted on {synthetic.sample:,} texts"
            f"{' of each side' if real is not None else ''}, since they change with "
            "the number of texts. High self-BLEU and few distinct n-grams mean that "
            "the texts repeat each other.",
            "note",
        ),
    ]
    if synthetic.perplexity is not None:
        blocks.append(
            Paragraph(
                f"Perplexity under {model}: how surprising the order of words is to it "
                "(lower is more fluent), over the tokens it knows. The row below has "
                "the same words in random order.",
                "note",
            )
        )
    if measured.word_distance is not None:
        blocks += _divergences(measured)
    return Section("Text quality", blocks)


def distributions(measured: TextQuality, *, words: bool) -> Section:
    """Lengths and words; real words never show, only their share where both have them.

    Args:
        measured: the quality.
        words: whether synthetic words may be shown.
    """
    synthetic, real = measured.synthetic, measured.real
    sets = {"synthetic": synthetic.lengths}
    if real is not None:
        sets["real"] = real.lengths
    blocks: list[Block] = [lengths_picture(sets)]
    if words:
        few = list(synthetic.word_shares.items())[:_WORDS]
        rows = [
            (word, share, None if real is None else real.word_shares.get(word, 0.0))
            for word, share in few
        ]
        if rows:
            blocks.append(words_picture(rows))
    else:
        blocks.append(Paragraph(_WITHHELD, "warning"))
    return Section("Lengths and words", blocks)


def copies(overlap: Overlap | None, held_out: Overlap | None) -> Section:
    """What synthetic rows have word for word from private ones."""
    if overlap is None:
        text = (
            "Not looked for: that takes the private records. Give their file: tfpriv "
            "report DIR --members FILE."
        )
        return Section("Copied text", [Paragraph(text)])
    sides = {"synthetic": overlap}
    if held_out is not None:
        sides["held-out real"] = held_out
    rows = [
        ("texts", *(f"{side.rows:,}" for side in sides.values())),
        (
            "longest run of tokens of any text",
            *(f"{side.longest}" for side in sides.values()),
        ),
        ("longest run, mean", *(f"{side.mean:.2f}" for side in sides.values())),
        (
            "texts that lie whole in a private row",
            *(f"{side.whole:,}" for side in sides.values()),
        ),
    ]
    rows += [
        (
            f"near copies (Jaccard similarity of {NEAR:g} or more)",
            *(f"{side.near:,}" for side in sides.values()),
        ),
        (
            "similarity to the nearest private row, largest",
            *(f"{side.nearest:.2f}" for side in sides.values()),
        ),
        (
            "similarity to the nearest private row, mean",
            *(f"{side.nearest_mean:.2f}" for side in sides.values()),
        ),
    ]
    rows += [
        (f"share of {n}-grams", *(_share(side.shares[n]) for side in sides.values()))
        for n in overlap.shares
    ]
    blocks: list[Block] = [
        Table(
            ("", *sides), rows, "What the texts have word for word from private rows."
        ),
        Paragraph(
            "Every synthetic text was compared with every private row, and every run "
            "of its tokens looked for in all of them, exactly. Short runs are how "
            "people speak; real rows that were not used, if given, show how much of it."
        ),
        Paragraph(
            "What is found here never chose, filtered or changed what was released.",
            "note",
        ),
    ]
    return Section("Copied text", blocks)


def use(found: Utility | None) -> Section:
    """What classifiers learn from the text."""
    if found is None:
        text = (
            "Not measured: that takes the private records. Give their file, and held-"
            "out rows if there are any: tfpriv report DIR --members FILE "
            "--non-members FILE."
        )
        return Section("Usefulness", [Paragraph(text)])
    level = f"{100 * found.confidence:g} %"
    rows = [
        (
            score.classifier,
            str(score.real),
            str(score.synthetic),
            f"{score.difference.value:+.3f} [{score.difference.low:+.3f}, "
            f"{score.difference.high:+.3f}]",
        )
        for score in found.scores
    ]
    blocks: list[Block] = [
        accuracy_picture(
            [(score.classifier, score.real, score.synthetic) for score in found.scores],
            found.constant,
        ),
        Table(
            ("Classifier", "real", "synthetic", "difference"),
            rows,
            f"Accuracy on {found.test_rows:,} real rows after training on real and on "
            f"synthetic ones [{level} interval over rows and trainings]; a constant "
            f"guess: {found.constant:.3f}.",
        ),
    ]
    if found.held_out:
        text = "The test rows had no part in the synthetic text."
        if found.left_out:
            text += (
                f" {found.left_out:,} more were left out: their texts are among the "
                "run's records."
            )
    else:
        text = (
            "The test rows are the run's own records, since no others were given: the "
            "real side is cross-validated, the synthetic side is not and may look "
            "better than it is. With --non-members FILE both are tested on new rows."
        )
    blocks += [
        Paragraph(text, "note"),
        Paragraph(
            f"Label consistency: a linear classifier that was trained on real rows "
            f"gives {found.consistency} of the synthetic rows the label they carry."
        ),
    ]
    return Section("Usefulness", blocks)


def use_figure(found: Utility) -> Figure:
    """Accuracy after training on synthetic rows, for the summary."""
    score = found.scores[0]
    return Figure(
        f"Accuracy, {score.classifier}",
        f"{score.synthetic.value:.3f}",
        f"trained on synthetic rows; {score.real.value:.3f} on real ones",
    )


def copies_figure(overlap: Overlap) -> Figure:
    """The longest run, for the summary."""
    value = f"{overlap.longest} tokens" if overlap.longest != 1 else "1 token"
    return Figure("Longest copied run", value, f"{overlap.whole:,} texts copied whole")


def samples(
    rows: TextDataset, *, shown: bool, dropped: int = 0, seed: int = 0
) -> Section:
    """Some synthetic rows, as many of each label as there can be.

    Args:
        rows: the released ones.
        shown: whether texts may be shown.
        dropped: released rows without a text, which are not among them.
        seed: of the draw.
    """
    counts = {name: len(part) for name, part in rows.by_label().items()}
    caption = f"{len(rows):,} synthetic rows."
    if dropped:
        caption += f" {dropped:,} more have no text and count nowhere."
    blocks: list[Block] = [
        Table(
            ("Label", "rows", "share"),
            [(name, f"{n:,}", percent(n / len(rows))) for name, n in counts.items()],
            caption,
        )
    ]
    if not shown:
        return Section("Samples", [*blocks, Paragraph(_WITHHELD, "warning")])
    draw = np.random.default_rng(seed)
    each = max(1, _SAMPLES // len(counts))
    found = [
        (name, _cut(part.texts[i]))
        for name, part in list(rows.by_label().items())[:_SAMPLES]
        for i in sorted(draw.permutation(len(part))[:each].tolist())
    ]
    caption = "Drawn at random from the synthetic rows; none was chosen."
    return Section("Samples", [*blocks, Table(("Label", "Text"), found, caption, 2)])


def _divergences(measured: TextQuality) -> list[Block]:
    rows = rows_of(
        [
            (
                "difference of word shares (total variation, 0 is alike)",
                f"{measured.word_distance:.3f}",
            ),
            (
                "MAUVE, synthetic against real (1 is alike)",
                measured.divergence and str(measured.divergence.area),
            ),
            (
                "MAUVE, real against other real rows",
                measured.real_divergence and str(measured.real_divergence.area),
            ),
        ]
    )
    blocks: list[Block] = [
        Table(("Measure", "value"), rows, "Distance of synthetic from real.")
    ]
    if (found := measured.divergence) is not None:
        text = (
            f"MAUVE on MiniLM's vectors of {found.rows:,} rows of each side in "
            f"{found.clusters} clusters, with {100 * found.confidence:g} % intervals "
            "over rows. Its size depends on these numbers: compare it with the row "
            "below alone."
        )
    else:
        text = f"MAUVE was not measured: {measured.without_divergence}"
    return [*blocks, Paragraph(text, "note")]


def _statistics(found: TextStatistics) -> dict[str, str]:
    values = {
        "rows": f"{found.rows:,}",
        "tokens a text, median (5 to 95 %)": _quantiles(found),
        **{f"distinct {n}-grams": f"{s:.3f}" for n, s in found.distinct_n.items()},
        "self-BLEU": _number(found.self_bleu, 3),
        "duplicates": _share(found.duplicate_rate),
    }
    if found.coverage is not None:
        values |= {
            "perplexity": _number(found.perplexity, 0),
            "perplexity, words shuffled": _number(found.shuffled_perplexity, 0),
            "tokens that the model knows": _share(found.coverage),
        }
    return values


def _statistic(found: TextStatistics, name: str) -> str:
    return _statistics(found).get(name, "")


def _quantiles(found: TextStatistics) -> str:
    low, *_, high = found.length_quantiles.values()
    return f"{found.length_quantiles[0.5]:g} ({low:g} to {high:g})"


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:,.{digits}f}"


def _share(value: float) -> str:
    """A percentage that shows a share above 0 as above 0."""
    digits = 1 if value >= 0.001 or not value else 1 - math.floor(math.log10(value)) - 2
    return f"{100 * value:.{digits}f} %"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SAMPLE else f"{text[:_LONGEST_SAMPLE]}…"
