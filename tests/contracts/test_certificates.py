"""Every figure of a certificate against finite mechanisms, and claims that must fail.

Texts of up to four letters are masked, a table takes the place of the encoder, and
the noise is randomised response or a two-sided geometric: all inputs, masks and
outputs are listed, so the largest log ratio is exact. A certificate must not be
below it, and must be attained by the worst table.
"""

from __future__ import annotations

import functools
import itertools
import math
import types

import numpy as np
import pytest

from tfpriv.accounting import (
    LaplaceCertificate,
    RepresentationStatement,
    fixed_mask_amplification,
    masked_words,
    masking_amplification,
)

MASK = "_"
ROUNDING = 1e-9


# Mechanisms ---------------------------------------------------------------------


def texts(lengths, alphabet="ab"):
    low, high = lengths
    return [
        "".join(letters)
        for length in range(low, high + 1)
        for letters in itertools.product(alphabet, repeat=length)
    ]


def masks(length, rate, mode):
    """Yields (probability, places that are masked)."""
    if mode == "exact":
        chosen = list(itertools.combinations(range(length), masked_words(rate, length)))
        yield from ((1 / len(chosen), places) for places in chosen)
        return
    for count in range(length + 1):
        for places in itertools.combinations(range(length), count):
            yield rate**count * (1 - rate) ** (length - count), places


def hide(text, places):
    return "".join(MASK if i in places else c for i, c in enumerate(text))


class Release:
    """Masks a text and gives what is left to a base; returns output probabilities."""

    def __init__(self, base, rate, mode, spell=hide):
        self.base, self.rate, self.mode, self.spell = base, rate, mode, spell

    def __call__(self, text):
        if self.rate == 0:
            return self.base(self.spell(text, ()))
        return sum(
            probability * self.base(self.spell(text, places))
            for probability, places in masks(len(text), self.rate, self.mode)
        )


def responder(table, symbols, epsilon):
    """Randomised response on the symbol that a table gives a masked text."""
    wrong = 1 / (math.exp(epsilon) + symbols - 1)
    rows = np.full((symbols, symbols), wrong)
    np.fill_diagonal(rows, wrong * math.exp(epsilon))
    return lambda masked: rows[table(masked)]


def geometric(table, size, scale, low=0):
    """Two-sided geometric noise on the whole vector that a table gives.

    Vectors lie in {low, ..., size}^d. Further out, all probabilities fall by the
    same factor, so that the ratios at the edge are all there is.
    """
    outputs = None

    def base(masked):
        nonlocal outputs
        vector = np.asarray(table(masked))
        if outputs is None:
            axis = range(low, size + 1)
            outputs = np.array(list(itertools.product(axis, repeat=len(vector))))
        return np.exp(-np.abs(outputs - vector).sum(1) / (scale * size))

    return base


def random_table(seed, draw):
    """A table of random values, the same for the same text."""
    rng = np.random.default_rng(seed)
    values = {text: draw(rng) for text in texts((1, 4), "ab" + MASK)}
    return values.__getitem__


def sees_a(changed, seen, unseen):
    """The worst table: all that matters is an `a` among the words that differ."""
    return lambda masked: seen if "a" in masked[:changed] else unseen


def ball_vector(rng, size=3):
    vector = rng.integers(-size, size + 1, 2)
    return vector if np.abs(vector).sum() <= size else np.array([size, 0])


# The exact loss -----------------------------------------------------------------


def loss(release, inputs, are_neighbours):
    outputs = {text: np.log(release(text)) for text in inputs}
    return max(
        float(np.max(outputs[a] - outputs[b]))
        for a, b in itertools.permutations(inputs, 2)
        if are_neighbours(a, b)
    )


def any_two(a, b):
    return True


def differ_in(changed):
    def are_neighbours(a, b):
        return len(a) == len(b) and sum(map(str.__ne__, a, b)) <= changed

    return are_neighbours


def check_record_epsilon(certificate, release, inputs):
    assert loss(release, inputs, any_two) <= certificate.record_epsilon + ROUNDING


def check_words_epsilon(certificate, release, inputs, changed=1):
    exact = loss(release, inputs, differ_in(changed))
    assert exact <= certificate.words_epsilon(changed) + ROUNDING


# Cases --------------------------------------------------------------------------

MASKING = [
    {"mask_rate": 0.0, "mask_mode": None, "lengths": (1, 3)},
    {"mask_rate": 0.5, "mask_mode": "bernoulli", "lengths": (1, 3)},
    {"mask_rate": 0.3, "mask_mode": "bernoulli", "lengths": None},
    {"mask_rate": 0.5, "mask_mode": "exact", "lengths": (2, 4)},
    {"mask_rate": 0.5, "mask_mode": "exact", "lengths": (3, 3)},
    {"mask_rate": 0.75, "mask_mode": "exact", "lengths": (4, 4)},
    {"mask_rate": 0.5, "mask_mode": "exact", "lengths": (1, 3)},
    {"mask_rate": 0.5, "mask_mode": "exact", "lengths": None},
]


def certificates(masking):
    """(certificate, a base from a table, random draws, the two worst values)."""
    yield (
        LaplaceCertificate(3, None, "code", code_epsilon=1.0, **masking),
        lambda table: responder(table, 3, 1.0),
        lambda rng: rng.integers(3),
        (0, 1),
    )
    yield (
        # Scaled to [0, 1] as the papers do: every vector has a 0 and a 1.
        LaplaceCertificate.nominal(1.0, 2, **masking),
        lambda table: geometric(table, 3, 1.0),
        lambda rng: rng.permutation([0, 3]),
        (np.array([0, 3]), np.array([3, 0])),
    )
    yield (
        LaplaceCertificate(3, 2.0, **masking),
        lambda table: geometric(table, 2, 2.0),
        lambda rng: rng.integers(0, 3, 3),
        (np.array([0, 0, 0]), np.array([2, 2, 2])),
    )
    yield (
        LaplaceCertificate(2, 0.8, "l1_ball", radius=1.0, **masking),
        lambda table: geometric(table, 3, 0.8, low=-3),
        ball_vector,
        (np.array([0, 3]), np.array([0, -3])),
    )


CASES = [(masking, case) for masking in MASKING for case in certificates(masking)]
IDS = [
    f"{case[0].domain}-{case[0].dimension}-{m['mask_mode']}-{m['mask_rate']}-"
    f"{m['lengths']}"
    for m, case in CASES
]


def _inputs(masking):
    return texts(masking["lengths"] or (1, 3))


@pytest.mark.parametrize(("masking", "case"), CASES, ids=IDS)
def test_no_table_shows_more_than_is_certified(masking, case):
    certificate, make, draw, _ = case
    for seed in range(3):
        base = make(random_table(seed, draw))
        release = Release(base, masking["mask_rate"], masking["mask_mode"])
        check_record_epsilon(certificate, release, _inputs(masking))
        for changed in (1, 2, 3):
            check_words_epsilon(certificate, release, _inputs(masking), changed)


@pytest.mark.parametrize(("masking", "case"), CASES, ids=IDS)
def test_the_worst_table_attains_what_is_certified(masking, case):
    certificate, make, _, worst = case
    inputs = _inputs(masking)
    for changed in (1, 2, 3):
        base = make(sees_a(changed, *worst))
        release = Release(base, masking["mask_rate"], masking["mask_mode"])
        check_words_epsilon(certificate, release, inputs, changed)
        attained = loss(release, inputs, differ_in(changed))
        # Bernoulli masks of unknown lengths are certified for longer texts, too.
        assert attained == pytest.approx(
            certificate.words_epsilon(min(changed, len(inputs[-1]))), abs=1e-9
        )


@pytest.mark.parametrize(("masking", "case"), CASES, ids=IDS)
def test_record_level_is_practically_attained(masking, case):
    certificate, make, _, worst = case
    release = Release(
        make(lambda masked: worst[len(masked) % 2]),
        masking["mask_rate"],
        masking["mask_mode"],
    )
    exact = loss(release, texts((1, 4)), any_two)
    assert exact == pytest.approx(certificate.record_epsilon, abs=1e-9)


# Claims that the same checks reject ---------------------------------------------

# Two min-max scaled vectors that are as far apart as such vectors get.
WORST = (np.array([0, 3]), np.array([3, 0]))


def _says(value):
    return types.SimpleNamespace(record_epsilon=value, words_epsilon=lambda _: value)


def _box(**masking):
    return LaplaceCertificate.nominal(1.0, 2, **masking)


def _worst_release(rate, mode, spell=hide, changed=1):
    base = geometric(sees_a(changed, *WORST), 3, 1.0)
    return Release(base, rate, mode, spell)


def test_sensitivity_1_for_min_max_scaling_is_rejected():
    claim = _says(_box().claimed_epsilon)
    with pytest.raises(AssertionError):
        check_record_epsilon(claim, _worst_release(0.0, None), texts((1, 2)))
    check_record_epsilon(_box(), _worst_release(0.0, None), texts((1, 2)))


@pytest.mark.parametrize("mode", ["exact", "bernoulli"])
def test_the_papers_claim_is_rejected(mode):
    certificate = _box(mask_rate=0.5, mask_mode=mode, lengths=(2, 2))
    release = _worst_release(0.5, mode)
    with pytest.raises(AssertionError):
        check_words_epsilon(_says(certificate.claimed_epsilon), release, texts((2, 2)))
    check_words_epsilon(certificate, release, texts((2, 2)))
    assert not certificate.claim_holds


def test_word_level_amplification_is_rejected_at_record_level():
    base = geometric(lambda masked: WORST[len(masked) % 2], 3, 1.0)
    release = Release(base, 0.5, "bernoulli")
    certificate = _box(mask_rate=0.5, mask_mode="bernoulli")
    at_word_level = _says(certificate.word_epsilon)
    with pytest.raises(AssertionError):
        check_record_epsilon(at_word_level, release, texts((1, 2)))
    check_record_epsilon(certificate, release, texts((1, 2)))


@pytest.mark.parametrize("lengths", [(1, 3), (3, 3)])
def test_mu_where_fewer_words_are_masked_is_rejected(lengths):
    """floor(mu * D) is 0 at D = 1 and 1 of 3 at D = 3, for mu = 1/2."""
    release = _worst_release(0.5, "exact")
    careless = _says(masking_amplification(2.0, 0.5))
    with pytest.raises(AssertionError):
        check_words_epsilon(careless, release, texts(lengths))
    certificate = _box(mask_rate=0.5, mask_mode="exact", lengths=lengths)
    check_words_epsilon(certificate, release, texts(lengths))


def test_mu_to_the_k_is_rejected_for_a_fixed_number_of_masks():
    release = _worst_release(0.5, "exact", changed=2)
    careless = _says(masking_amplification(2.0, 0.25))
    with pytest.raises(AssertionError):
        check_words_epsilon(careless, release, texts((4, 4)), 2)
    certificate = _box(mask_rate=0.5, mask_mode="exact", lengths=(4, 4))
    check_words_epsilon(certificate, release, texts((4, 4)), 2)


def _spell_pieces(text, places):
    """`a` is one piece and `b` two; a masked word leaves a [MASK] for every piece."""
    pieces = {"a": "a", "b": "bb"}
    return "".join(
        MASK * len(pieces[c]) if i in places else pieces[c] for i, c in enumerate(text)
    )


def test_masking_piece_by_piece_is_rejected():
    base = geometric(lambda masked: WORST[len(masked) % 2], 3, 1.0)
    release = Release(base, 0.5, "bernoulli", _spell_pieces)
    words = _box(mask_rate=0.5, mask_mode="bernoulli", mask_unit="words")
    pieces = _box(mask_rate=0.5, mask_mode="bernoulli", mask_unit="pieces")
    with pytest.raises(AssertionError):
        check_words_epsilon(words, release, texts((2, 2)))
    check_words_epsilon(pieces, release, texts((2, 2)))


def _spell_in_a_window_of_two_pieces(text, places):
    """`b` is two pieces; what does not fit is cut off before words are masked."""
    window, read = 2, ""
    for index, letter in enumerate(text):
        window -= 2 if letter == "b" else 1
        if window < 0:
            break
        read += MASK if index in places else letter
    return read


def test_cutting_texts_by_pieces_before_masking_is_rejected():
    base = geometric(lambda masked: WORST["a" in masked], 3, 1.0)
    release = Release(base, 0.5, "bernoulli", _spell_in_a_window_of_two_pieces)
    by_words = _box(mask_rate=0.5, mask_mode="bernoulli")
    by_pieces = _box(mask_rate=0.5, mask_mode="bernoulli", truncation="pieces")
    with pytest.raises(AssertionError):
        check_words_epsilon(by_words, release, texts((2, 2)))
    check_words_epsilon(by_pieces, release, texts((2, 2)))


def test_several_releases_cost_as_often_and_no_less():
    certificate = _box(mask_rate=0.5, mask_mode="bernoulli")
    once = _worst_release(0.5, "bernoulli")

    def twice(text):
        return np.outer(once(text), once(text))

    exact = loss(twice, texts((1, 2)), differ_in(1))
    assert exact == pytest.approx(certificate.compose(2).word_epsilon, abs=1e-9)
    with pytest.raises(AssertionError):
        check_words_epsilon(certificate, twice, texts((1, 2)))


# All the texts of one author ----------------------------------------------------


def check_group(value, release, inputs, size, are_neighbours):
    """All that is released of `size` texts, each of which may be another one."""
    given = list(itertools.product(inputs, repeat=size))
    outputs = {texts: np.log(_all(release, texts)) for texts in given}
    exact = max(
        float(np.max(outputs[a] - outputs[b]))
        for a, b in itertools.product(given, repeat=2)
        if all(itertools.starmap(are_neighbours, zip(a, b, strict=True)))
    )
    assert exact == pytest.approx(value, abs=1e-9)


def _all(release, texts):
    return functools.reduce(np.multiply.outer, map(release, texts))


class ChargesOne(RepresentationStatement):
    """A twin: an author pays for one text."""

    def group_cost(self, size):
        return super().group_cost(1)


class ForgetsReleases(RepresentationStatement):
    """A twin: an author pays for every text, and once for all its releases."""

    def group_cost(self, size):
        return self.certificate.compose(size)


GROUPS = {
    "code": (
        LaplaceCertificate(3, None, "code", code_epsilon=1.0),
        responder(lambda text: "ab".find(text[:1]) + 1, 3, 1.0),
        (0.0, None),
        "record_epsilon",
    ),
    "Laplace": (
        LaplaceCertificate.nominal(1.0, 1),
        geometric(lambda text: np.array([3 * (text[:1] == "a")]), 3, 1.0),
        (0.0, None),
        "record_epsilon",
    ),
    "code behind a mask": (
        LaplaceCertificate(
            2, None, "code", code_epsilon=1.0, mask_rate=0.5, mask_mode="bernoulli"
        ),
        responder(sees_a(1, 0, 1), 2, 1.0),
        (0.5, "bernoulli"),
        "word_epsilon",
    ),
}


def _check_group(kind, name, size, releases):
    certificate, base, mask, level = GROUPS[name]
    once = Release(base, *mask)
    statement = kind(
        certificate,
        method="any",
        encoder_trained_on_private_text=False,
        randomness="any",
        releases=releases,
    )
    check_group(
        getattr(statement.group_cost(size), level),
        lambda text: _all(once, (text,) * releases),
        texts((1, 1)),
        size,
        any_two if level == "record_epsilon" else differ_in(1),
    )


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(("size", "releases"), [(1, 1), (3, 1), (2, 2)])
def test_the_texts_of_one_author_cost_as_often_and_no_less(name, size, releases):
    _check_group(RepresentationStatement, name, size, releases)


@pytest.mark.parametrize("twin", [ChargesOne, ForgetsReleases])
@pytest.mark.parametrize("name", GROUPS)
def test_a_twin_that_charges_an_author_less_is_rejected(name, twin):
    with pytest.raises(AssertionError):
        _check_group(twin, name, 2, 2)


def test_the_tails_of_all_the_texts_of_one_author_add_up():
    certificate = LaplaceCertificate(1, 1.0, tail_delta=1e-9)
    statement = RepresentationStatement(
        certificate,
        method="any",
        encoder_trained_on_private_text=False,
        randomness="any",
        releases=2,
    )
    assert statement.group_cost(3).delta == pytest.approx(6e-9)


# A base that is private word by word only ---------------------------------------


def _distance(a, b):
    return sum(map(str.__ne__, a, b))


def word_level_base(anchors, epsilon, length):
    """Tells one bit; its log odds change by at most epsilon with every word.

    From values at some masked texts: the largest function below them all that
    changes by at most 1 with every word (McShane's extension).
    """
    inputs = texts((length, length), "abc" + MASK)
    height = {t: min(h + _distance(t, s) for s, h in anchors.items()) for t in inputs}
    chance = {t: 1e-4 * math.exp(epsilon * height[t]) for t in inputs}
    bits = {t: np.array([chance[t], 1 - chance[t]]) for t in inputs}
    assert max(chance.values()) < 0.05
    assert loss(bits.__getitem__, inputs, differ_in(1)) <= epsilon + ROUNDING
    return bits.__getitem__


def _worst_word_level_base(epsilon):
    return word_level_base({"_c": 0, "b_": 1, "a_": 2}, epsilon, 2)


def _random_word_level_bases(epsilon, length):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        inputs = texts((length, length), "abc" + MASK)
        anchors = dict(zip(inputs, rng.integers(0, 5, len(inputs)), strict=True))
        yield word_level_base(anchors, epsilon, length)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_independent_masks_amplify_a_word_level_base(epsilon):
    for base in (
        _worst_word_level_base(epsilon),
        *_random_word_level_bases(epsilon, 2),
    ):
        release = Release(base, 0.5, "bernoulli")
        certified = _says(masking_amplification(epsilon, 0.5))
        check_words_epsilon(certified, release, texts((2, 2), "abc"))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_fixed_masks_amplify_a_word_level_base_less(epsilon):
    weaker = _says(fixed_mask_amplification(epsilon, 0.5))
    careless = _says(masking_amplification(epsilon, 0.5))
    inputs = texts((2, 2), "abc")
    for base in _random_word_level_bases(epsilon, 2):
        check_words_epsilon(weaker, Release(base, 0.5, "exact"), inputs)
    third = _says(fixed_mask_amplification(epsilon, 1 / 3))
    for base in _random_word_level_bases(epsilon, 3):
        release = Release(base, 0.34, "exact")
        check_words_epsilon(third, release, texts((3, 3), "abc"))
    release = Release(_worst_word_level_base(epsilon), 0.5, "exact")
    check_words_epsilon(weaker, release, inputs)
    exact = loss(release, inputs, differ_in(1))
    assert exact == pytest.approx(weaker.words_epsilon(1), abs=1e-9)
    with pytest.raises(AssertionError):
        check_words_epsilon(careless, release, inputs)


# Tails that are cut off ---------------------------------------------------------


def cut_geometric(vector, size, scale, reach):
    """Probabilities of all outputs, with noise of at most `reach` grid steps."""
    axis = np.arange(-reach - size, reach + size + 1)
    probabilities = np.array(1.0)
    for value in vector:
        steps = np.abs(axis - value)
        noise = np.where(steps <= reach, np.exp(-steps / (scale * size)), 0)
        coordinate = noise / noise.sum()
        probabilities = np.multiply.outer(probabilities, coordinate)
    return probabilities


def check_delta(certificate, pairs):
    for p, q in pairs:
        excess = np.maximum(p - math.exp(certificate.record_epsilon) * q, 0).sum()
        assert excess <= certificate.delta + 1e-15


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("reach", [6, 12])
def test_cut_off_tails_cost_a_delta(dimension, reach):
    """A delta that a sampler may state: noise so large that the other text has none."""
    size, scale = 3, 0.7
    vectors = list(itertools.product((0, 1, size), repeat=dimension))
    outputs = {v: cut_geometric(v, size, scale, reach) for v in vectors}
    pairs = [(outputs[a], outputs[b]) for a in vectors for b in vectors]
    steps = np.arange(-reach, reach + 1)
    law = np.exp(-np.abs(steps) / (scale * size))
    law /= law.sum()
    stated = dimension * law[np.abs(steps) > reach - size].sum()
    check_delta(LaplaceCertificate(dimension, scale, tail_delta=stated), pairs)
    # The mass of the ideal noise that was cut off: the total variation, and no delta.
    alpha = math.exp(-1 / (scale * size))
    cut = dimension * 2 * alpha ** (reach + 1) / (1 + alpha)
    for careless in (0.0, cut):
        certificate = LaplaceCertificate(dimension, scale, tail_delta=careless)
        with pytest.raises(AssertionError):
            check_delta(certificate, pairs)
