"""The pictures of a report, as SVG inside the page.

Drawn on Matplotlib's figures without pyplot, so that no window system is asked for.
The same numbers give the same bytes: no date, no random names inside.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfpriv.evaluation.report_blocks import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfpriv.attacks import Estimate
    from tfpriv.attacks.membership_score import MembershipScore

REAL, SYNTHETIC = "#1f5fa8", "#d9662b"
_COLOURS = (SYNTHETIC, REAL, "#2e8b57", "#7b4ea3", "#8a6d1d", "#444444")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
_WIDTH = 5.6
_STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.edgecolor": "#5a6270",
    "axes.grid": True,
    "axes.axisbelow": True,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": "#e3e7ec",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "tfpriv",
}


def lengths_picture(sets: Mapping[str, Sequence[int]]) -> Picture:
    """How many tokens texts have: share of texts by length.

    Args:
        sets: name to counts of texts with 0, 1, 2, ... tokens, the last for all longer.
    """
    last = max(
        (i for counts in sets.values() for i, n in enumerate(counts) if n), default=1
    )

    def draw(axes: Axes) -> None:
        for name, counts in sets.items():
            shares = np.asarray(counts[: last + 1]) / max(sum(counts), 1)
            style = _side(name)
            axes.stairs(shares, np.arange(last + 2) - 0.5, label=name, **style)
        axes.set_xlabel("tokens in a text")
        axes.set_ylabel("share of texts")
        axes.set_xlim(-0.5, last + 0.5)
        _legend(axes, len(sets))

    medians = ", ".join(
        f"{name} {_median(counts)} tokens (median)" for name, counts in sets.items()
    )
    caption = "Length of the texts."
    if any(last + 1 == len(counts) and counts[last] for counts in sets.values()):
        caption = f"Length of the texts; the last bar is of {last} tokens and more."
    return _picture(draw, 2.6, f"Lengths of texts: {medians}.", caption)


def words_picture(rows: Sequence[tuple[str, float, float | None]]) -> Picture:
    """The most frequent synthetic words, with their share among the real ones.

    Args:
        rows: (token, share of synthetic tokens, share of real tokens or None).
    """

    def draw(axes: Axes) -> None:
        places = np.arange(len(rows))[::-1]
        axes.hlines(places, 0, [100 * row[1] for row in rows], color=SYNTHETIC, lw=1)
        axes.plot(
            [100 * row[1] for row in rows], places, "o", color=SYNTHETIC, ms=5,
            label="synthetic",
        )  # fmt: skip
        real = [(100 * row[2], place) for row, place in zip(rows, places, strict=True)
                if row[2] is not None]  # fmt: skip
        if real:
            axes.plot(
                *zip(*real, strict=True), "D", color=REAL, ms=4.5, mfc="none",
                label="real",
            )  # fmt: skip
        axes.set_yticks(places, [_plain(row[0]) for row in rows])
        axes.set_ylim(-0.8, len(rows) - 0.2)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("% of all tokens")
        axes.set_xlim(left=0)
        _legend(axes, 1 + bool(real))

    beside = ", with their share in the real texts" if rows and rows[0][2] else ""
    return _picture(
        draw,
        max(1.6, 0.6 + 0.19 * len(rows)),
        f"The {len(rows)} most frequent synthetic words{beside}.",
        f"The most frequent words of the synthetic text{beside}.",
    )


def accuracy_picture(
    rows: Sequence[tuple[str, Estimate, Estimate]], constant: float
) -> Picture:
    """Accuracies of classifiers trained on real and on synthetic rows."""

    def draw(axes: Axes) -> None:
        for place, (_, real, synthetic) in enumerate(reversed(rows)):
            _interval(axes, real, place + 0.14, REAL, "D", "real" * (place == 0))
            label = "synthetic" * (place == 0)
            _interval(axes, synthetic, place - 0.14, SYNTHETIC, "o", label)
        axes.axvline(constant, color="#5a6270", ls=":", lw=1.2, label="constant guess")
        axes.set_yticks(range(len(rows)), [row[0] for row in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("accuracy on real test rows")
        _legend(axes, 3)

    parts = "; ".join(f"{name}: real {a}, synthetic {b}" for name, a, b in rows)
    return _picture(
        draw,
        1.4 + 0.45 * len(rows),
        f"Accuracy after training on real and on synthetic rows. {parts}.",
        "Accuracy on real test rows after training on real and on synthetic ones.",
    )


def areas_picture(rows: Sequence[tuple[str, Estimate]], bound: float | None) -> Picture:
    """The areas under the ROC curves of attackers, with .5 for chance."""

    def draw(axes: Axes) -> None:
        for place, (_, area) in enumerate(reversed(rows)):
            _interval(axes, area, place, SYNTHETIC, "o", "attack" * (place == 0))
        axes.axvline(0.5, color="#5a6270", ls=":", lw=1.2, label="chance")
        if bound is not None:
            label = "best of them by chance"
            axes.axvspan(0.5, bound, color="#e3e7ec", lw=0, label=label)
        names = [row[0].replace("_", " ") for row in reversed(rows)]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(min(0.4, *(row[1].low for row in rows)) - 0.02, 1.0)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("area under the ROC curve")
        _legend(axes, 3)

    return _picture(
        draw,
        1.4 + 0.3 * len(rows),
        "Areas under the ROC curves of the attackers: "
        + "; ".join(f"{name} {area}" for name, area in rows),
        "How well each attacker tells the classes apart; .5 is chance.",
    )


def roc_picture(scores: Sequence[MembershipScore], *, of: int | None = None) -> Picture:
    """ROC curves of membership attacks on two log axes.

    The bars are the intervals of the true positive rates that the audit gives.

    Args:
        scores: whose curves are drawn, the largest AUC first.
        of: how many attacks there were; None is these.
    """
    some = ""
    if of is not None and of > len(scores):
        some = f" of the {len(scores)} of {of} attacks with the largest AUC"
    fewest = max(score.non_members for score in scores)
    least = min(1e-3, 1 / max(fewest, 2)) / 1.5

    def draw(axes: Axes) -> None:
        axes.plot([least, 1], [least, 1], color="#5a6270", lw=1, ls=":", label="chance")
        for number, score in enumerate(scores):
            colour, dash = _nth(_COLOURS, number), _nth(_DASHES, number)
            fpr = np.maximum(score.curve.fpr, least)
            tpr = np.maximum(score.curve.tpr, least)
            axes.plot(fpr, tpr, color=colour, ls=dash, lw=1.5, label=score.name)
            for rate, found in score.tpr.items():
                # Beside one another, so that each can be read.
                x = rate * 1.12 ** (number - (len(scores) - 1) / 2)
                low, high = max(found.low, least), max(found.high, least)
                axes.plot([x, x], [low, high], color=colour, lw=1, alpha=0.8)
        axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.1))
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.figure.legend(loc="outside lower left", handlelength=2.6)

    named = "; ".join(f"{score.name}: AUC {score.auc}" for score in scores)
    return _picture(
        draw,
        3.6 + 0.2 * len(scores),
        f"ROC curves of membership attacks on logarithmic axes. {named}.",
        f"ROC curves{some} on logarithmic axes; bars are intervals at false positive "
        "rates of 1 % and .1 %. A curve along the dotted line tells nothing.",
    )


def curves_picture(
    curves: Mapping[str, Sequence[float | None]], ylabel: str, caption: str
) -> Picture:
    """Figures by epoch, one line each."""
    longest = max(map(len, curves.values()))

    def draw(axes: Axes) -> None:
        for number, (name, values) in enumerate(curves.items()):
            values = [np.nan if value is None else value for value in values]
            epochs = np.arange(1, len(values) + 1)
            axes.plot(
                epochs, values, label=name, marker="o", ms=3.5,
                color=_nth(_COLOURS, number), ls=_nth(_DASHES, number),
            )  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel(ylabel)
        axes.locator_params(axis="x", integer=True)
        if longest <= 2:
            # Of so few Matplotlib would make fractions all the same.
            axes.set_xticks(range(1, longest + 1))
            axes.set_xlim(0.5, longest + 0.5)
        _legend(axes, len(curves))

    ends = ", ".join(f"{name} ends at {_last(v)}" for name, v in curves.items())
    return _picture(draw, 2.6, f"{caption} {ends}.", caption)


def _picture(
    draw: Callable[[Axes], None], height: float, description: str, caption: str
) -> Picture:
    # Matplotlib refuses to be imported where this names a backend that is not there;
    # none is needed here.
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    encoded = base64.b64encode(file.getvalue()).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{encoded}", description, caption)


def _side(name: str) -> dict[str, Any]:
    if name == "real":
        return {"color": REAL, "lw": 1.6, "ls": "--"}
    return {"color": SYNTHETIC, "lw": 1.6, "fill": False}


def _interval(
    axes: Axes, found: Estimate, place: float, colour: str, marker: str, label: str
) -> None:
    axes.hlines(place, found.low, found.high, color=colour, lw=2.2, alpha=0.6)
    axes.plot(found.value, place, marker, color=colour, ms=6, label=label or None)


def _legend(axes: Axes, columns: int) -> None:
    # The figure's: it may be wider than the axes where row names are long.
    axes.figure.legend(
        loc="outside upper left", ncol=min(columns, 3), handlelength=1.6,
        columnspacing=1.2,
    )  # fmt: skip


def _plain(token: str) -> str:
    """A token that Matplotlib shows as it is: a dollar would begin a formula.

    What its font does not have would all be the same box: it is named by its number.
    """
    from matplotlib.font_manager import findfont, get_font

    known = get_font(findfont(_STYLE["font.family"])).get_char_index
    if not all(map(known, map(ord, token))):
        return " ".join(f"U+{ord(character):04X}" for character in token)
    return token.replace("$", r"\$")


def _nth(values: Sequence[Any], number: int) -> Any:
    return values[number % len(values)]


def _median(counts: Sequence[int]) -> str:
    """The median length; not a mean, since the last count is of all longer texts."""
    middle = int(np.searchsorted(np.cumsum(counts), sum(counts) / 2))
    return f"{middle} or more" if middle and middle == len(counts) - 1 else str(middle)


def _last(values: Sequence[float | None]) -> str:
    value = values[-1] if values else None
    return "nothing" if value is None else f"{value:.3f}"
