"""Attacks on released text alone: was this record among those it was made from?"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import fraction, one_of, probability
from tfpriv.attacks._ngram_model import NGramModel
from tfpriv.attacks.audit_result import AuditResult
from tfpriv.attacks.audit_texts import AuditTexts
from tfpriv.attacks.membership_score import MembershipScore, score_membership
from tfpriv.attacks.near_copies import longest_runs, nearest_texts

Tokens = Sequence[str]
# Texts that the cost of an attack is measured on before it is run.
_SAMPLE_QUERIES, _SAMPLE_CORPUS = 512, 4096


@dataclasses.dataclass(frozen=True)
class TextMembershipAttack:
    """Tells members from non-members by the synthetic texts alone.

    Nobody needs more than the released file and texts of the same kind, the reference:
    these are attacks of whoever receives the release. Each gives every record a score,
    higher for a member:

    - "nearest neighbour": how like the record the nearest synthetic text is (Jaccard,
      of tokens and pairs of tokens);
    - "calibrated nearest neighbour": that, less how like the nearest reference text is
      (GAN-Leaks, Chen et al. 2020, arXiv:1909.03935, with reference records in the
      place of a reference generator);
    - "n-gram likelihood ratio": mean log probability a token under the synthetic texts,
      less that under the reference texts (likelihood under n-grams of synthetic text:
      Meeus et al. 2025, arXiv:2502.14921; its ratio to a reference model: Carlini et
      al. 2021, arXiv:2012.07805);
    - "longest copied run": how many tokens in a row of the record some synthetic text
      has;
    - "rare words": of the record's tokens that no reference text has, the share that
      the synthetic texts have, with one token more at the share of all records: a
      vocabulary that was read off the records is told by nothing else;
    - "copied details": how many pieces of the record's numbers, links and addresses
      the synthetic texts have and no reference text has;
    - the second and the third once more where there are labels, among texts of the
      record's own label.

    Example:
        >>> from tfpriv.datasets import TextDataset
        >>> data = TextDataset([f"this is the {'very ' * i}end" for i in range(200)])
        >>> members, others = data.select(range(80)), data.select(range(80, 200))
        >>> texts = AuditTexts.make(members, members, others)  # copies of the members
        >>> attack = TextMembershipAttack(["n-gram likelihood ratio"])
        >>> attack.score(texts).worst.auc.low > 0.5
        True

    Attributes:
        attacks: names of attacks, as above; None is all that the texts allow.
        confidence: probability of intervals and bounds, for all attacks together.
        delta: of the bounds on epsilon.

    Raises:
        InputError: no or unknown attacks, or a number out of range.
    """

    attacks: Sequence[str] | None = None
    confidence: float = 0.95
    delta: float = 1e-5

    def __post_init__(self) -> None:
        probability(confidence=self.confidence)
        fraction(delta=self.delta)
        if self.attacks is None:
            return
        names = tuple(self.attacks)
        if isinstance(self.attacks, str) or not names or len(set(names)) < len(names):
            raise InputError(
                f"Expected at least one of attacks and none twice, received "
                f"{self.attacks!r}."
            )
        for name in names:
            one_of(ATTACKS, attacks=name)
        object.__setattr__(self, "attacks", names)

    def names(self, texts: AuditTexts) -> tuple[str, ...]:
        """The attacks that are tried on these texts.

        Raises:
            InputError: one that needs labels where there are none.
        """
        possible = [
            name
            for name, attack in ATTACKS.items()
            if texts.labelled or not attack.same_label
        ]
        for name in self.attacks or ():
            if name not in possible:
                raise InputError(
                    f"Expected labels for the attack {name!r}, received texts without. "
                    "Name their label column, or leave that attack out."
                )
        return tuple(self.attacks or possible)

    def scores(self, texts: AuditTexts, name: str) -> np.ndarray:
        """Runs one attack.

        Returns:
            float64 of shape (members + non-members,), members first.
        """
        return ATTACKS[name](texts)

    def score(
        self,
        texts: AuditTexts,
        *,
        claimed_epsilon: float | None = None,
        found: Mapping[str, np.ndarray] | None = None,
    ) -> AuditResult:
        """Runs all attacks and says what they found.

        Args:
            texts: of the audit.
            claimed_epsilon: what the release is said to guarantee at `delta`; None
                where nothing is.
            found: scores that `scores` gave before, by name, which are taken as they
                are; those of attacks of other kinds on the same records may be among
                them, and count as tried.

        Returns:
            The result. It comes from private records and is internal.
        """
        found = dict(found or {})
        for name in self.names(texts):
            if name not in found:
                found[name] = self.scores(texts, name)
        members, tried = len(texts.members), len(found)

        def scored(name: str, scores: np.ndarray) -> MembershipScore:
            return score_membership(
                name,
                scores[:members],
                scores[members:],
                confidence=self.confidence,
                delta=self.delta,
                attacks_tried=tried,
                bounded=texts.single,
            )

        return AuditResult(
            scores=tuple(scored(name, scores) for name, scores in found.items()),
            claimed_epsilon=claimed_epsilon,
            control=scored("likelihood under reference texts", _control(texts)),
        )

    def seconds(self, texts: AuditTexts) -> float:
        """Returns about how long `score` takes here, measured on some of the texts."""
        tokens = texts.tokens
        candidates, synthetic = tokens["candidates"], tokens["synthetic"]
        queries, corpus = candidates[:_SAMPLE_QUERIES], synthetic[:_SAMPLE_CORPUS]
        nearest_texts(queries[:1], corpus[:1])  # imports what it needs
        # Texts are taken apart once; pairs of them are what grows.
        text = _timed(nearest_texts, queries[:1], corpus) / len(corpus)
        whole = _timed(nearest_texts, queries, corpus)
        pair = max(whole - text * len(corpus), 0.0) / (len(queries) * len(corpus))
        model = _timed(NGramModel, corpus, size=1) / len(corpus)
        runs = _timed(longest_runs, queries, corpus) / (len(queries) + len(corpus))
        others = len(synthetic) + len(tokens["reference"])

        def near(corpus: int, share: float) -> float:
            linear = text * (len(candidates) + corpus)
            return linear + pair * len(candidates) * corpus * share

        calibrated = "calibrated nearest neighbour"
        cost = {
            "nearest neighbour": near(len(synthetic), 1.0),
            calibrated: near(others, 1.0),
            calibrated + _SAME_LABEL: near(others, _share_of_pairs(texts)),
            "n-gram likelihood ratio": 2 * model * (len(candidates) + others),
            "longest copied run": runs * (len(candidates) + len(synthetic)),
            "rare words": 0.0,
            "copied details": 0.0,
        }
        return sum(
            cost[name if name in cost else name.removesuffix(_SAME_LABEL)]
            for name in self.names(texts)
        )


_SAME_LABEL = " of the same label"


@dataclasses.dataclass(frozen=True)
class _Attack:
    """An attack: scores of token lists, from synthetic and reference token lists."""

    score: Callable[[list[Tokens], list[Tokens], list[Tokens]], np.ndarray]
    same_label: bool = False
    view: str = "tokens"

    def __call__(self, texts: AuditTexts) -> np.ndarray:
        scores = np.zeros(len(texts.tokens["candidates"]))
        for rows, parts in self._parts(texts):
            scores[rows] = self.score(*parts)
        return scores

    def _parts(
        self, texts: AuditTexts
    ) -> Iterator[tuple[np.ndarray, list[list[Tokens]]]]:
        """Candidates' places, and candidates, synthetic and reference texts."""
        names = ("candidates", "synthetic", "reference")
        seen = getattr(texts, self.view)
        labels = {name: np.array(texts.labels[name]) for name in names}
        if not self.same_label:
            labels = {name: np.full(len(labels[name]), "") for name in names}
        for label in np.unique(labels["candidates"]):
            places = {name: np.flatnonzero(labels[name] == label) for name in names}
            yield (
                places["candidates"],
                [[seen[name][i] for i in places[name]] for name in names],
            )


def _share_of_pairs(texts: AuditTexts) -> float:
    """Of how many pairs of a candidate and a synthetic text the labels are the same."""
    ours, theirs = (Counter(texts.labels[k]) for k in ("candidates", "synthetic"))
    same = sum(count * theirs[label] for label, count in ours.items())
    return same / (ours.total() * theirs.total())


def _control(texts: AuditTexts) -> np.ndarray:
    """Which records are like the reference texts: the release is not looked at."""
    reference = texts.tokens["reference"]
    size = len({token for text in reference for token in text}) + 2
    model = NGramModel(reference, size=size)
    return model.mean_log_probabilities(texts.tokens["candidates"])


def _nearest(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    del reference
    return nearest_texts(candidates, synthetic).similarity


def _calibrated_nearest(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    near = nearest_texts(candidates, synthetic).similarity
    return near - nearest_texts(candidates, reference).similarity


def _likelihood_ratio(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    known = {
        token for texts in (synthetic, reference) for text in texts for token in text
    }
    released, apart = (
        NGramModel(texts, size=len(known) + 2).mean_log_probabilities(candidates)
        for texts in (synthetic, reference)
    )
    return released - apart


def _longest_run(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    del reference
    return longest_runs(candidates, synthetic).astype(float)


def _rare_words(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    common, released = (
        {token for text in texts for token in text} for texts in (reference, synthetic)
    )
    rare = [set(tokens) - common for tokens in candidates]
    count = np.array([len(tokens) for tokens in rare])
    hits = np.array([len(tokens & released) for tokens in rare])
    return (hits + hits.sum() / max(count.sum(), 1)) / (count + 1)


def _copied_details(
    candidates: list[Tokens], synthetic: list[Tokens], reference: list[Tokens]
) -> np.ndarray:
    copied = {detail for text in synthetic for detail in text}
    copied -= {detail for text in reference for detail in text}
    return np.array([len(copied.intersection(text)) for text in candidates], float)


ATTACKS: dict[str, _Attack] = {
    "nearest neighbour": _Attack(_nearest),
    "calibrated nearest neighbour": _Attack(_calibrated_nearest),
    "n-gram likelihood ratio": _Attack(_likelihood_ratio),
    "longest copied run": _Attack(_longest_run),
    "rare words": _Attack(_rare_words),
    "copied details": _Attack(_copied_details, view="details"),
    f"calibrated nearest neighbour{_SAME_LABEL}": _Attack(_calibrated_nearest, True),
    f"n-gram likelihood ratio{_SAME_LABEL}": _Attack(_likelihood_ratio, True),
}


def _timed(function: Callable, *args: object, **kwargs: object) -> float:
    started = time.perf_counter()
    function(*args, **kwargs)
    return time.perf_counter() - started
