from __future__ import annotations

import dataclasses
import math
import time

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.attacks import AuditTexts, TextMembershipAttack, text_membership
from tfpriv.attacks._ngram_model import NGramModel
from tfpriv.attacks.text_membership import ATTACKS
from tfpriv.datasets import TextDataset

SECRET = "hunter2"


def written(seed: int, count: int, *, labels: bool = True) -> TextDataset:
    """Texts of one language: frequent words, rare ones, each with words of a label."""
    rng = np.random.default_rng(seed)
    texts, names = [], []
    for _ in range(count):
        label = rng.integers(2)
        common = rng.zipf(1.4, 8) % 500 + 500 * label
        rare = rng.integers(10_000, 60_000, 2)
        words = [f"w{word}" for word in rng.permutation(np.r_[common, rare])]
        number = str(rng.integers(10**9))  # which the tokenizer does not keep
        texts.append(" ".join([SECRET, *words, number]))
        names.append(("ham", "spam")[label])
    return TextDataset(texts, names if labels else None)


def edited(data: TextDataset, seed: int = 0) -> TextDataset:
    """The same texts, a word in six changed and the order of two words."""
    rng = np.random.default_rng(seed)
    texts = []
    for text in data.texts:
        words = [f"w{rng.integers(500)}" if rng.random() < 1 / 6 else w
                 for w in text.split()]  # fmt: skip
        place = rng.integers(len(words) - 1)
        words[place : place + 2] = words[place : place + 2][::-1]
        texts.append(" ".join(words))
    return dataclasses.replace(data, texts=tuple(texts))


MEMBERS, OTHERS = written(1, 300), written(2, 450)
INDEPENDENT = written(3, 300)


def score(synthetic, attacks=None, **changes):
    texts = AuditTexts.make(synthetic, MEMBERS, OTHERS, **changes)
    return TextMembershipAttack(attacks).score(texts)


def test_a_bound_leaves_out_members_that_stand_for_several_records():
    """They are the ones that the release has: a claim is about one record."""
    often = MEMBERS.select([*range(300), *range(100), *range(100)])
    texts = AuditTexts.make(MEMBERS.select(range(100)), often, OTHERS)
    assert texts.sizes["members"] == 300
    assert texts.copies == (3,) * 100 + (1,) * 200
    found = TextMembershipAttack(["n-gram likelihood ratio"]).score(texts).worst
    assert found.bounded == 200
    assert found.epsilon_lower == 0 < found.auc.low - 0.5
    once = score(MEMBERS.select(range(100)), ["n-gram likelihood ratio"]).worst
    assert once.bounded is None
    assert once.epsilon_lower > 1


# Each attack on what it must find, and on what it must not.


class Honest:
    """The attacks of the package, and reference texts apart from all others."""

    def __call__(self, synthetic):
        texts = AuditTexts.make(synthetic, MEMBERS, OTHERS)
        return self.attack(texts)

    def attack(self, texts):
        return TextMembershipAttack().score(texts).scores


class CalibratedOnNonMembers(Honest):
    """The reference is scored too: what is like itself looks like no member."""

    def attack(self, texts):
        texts = dataclasses.replace(texts, reference=texts.non_members)
        return super().attack(texts)


class CalibratedOnMembers(Honest):
    def attack(self, texts):
        texts = dataclasses.replace(texts, reference=texts.members)
        return super().attack(texts)


class LosesTheOrderOfRecords(Honest):
    def attack(self, texts):
        attack, rng = TextMembershipAttack(), np.random.default_rng(0)
        found = {
            name: rng.permutation(attack.scores(texts, name))
            for name in attack.names(texts)
        }
        return attack.score(texts, found=found).scores


def check_copies_are_found(audit):
    """By every attack: members word for word, and members slightly changed."""
    for synthetic in (MEMBERS, edited(MEMBERS)):
        scores = audit(synthetic)
        assert [s.name for s in scores if not s.auc.low > 0.5] == []
        assert [s.name for s in scores if not s.epsilon_lower > 0] == []


def check_nothing_is_chance(audit):
    """To every attack, of a release that has nothing of the members."""
    scores = audit(INDEPENDENT)
    assert [s.name for s in scores if not s.auc.low <= 0.5 <= s.auc.high] == []
    assert [s.name for s in scores if s.epsilon_lower > 0] == []


@pytest.mark.parametrize("check", [check_copies_are_found, check_nothing_is_chance])
def test_attacks_on_text(check):
    check(Honest())


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (CalibratedOnNonMembers, check_nothing_is_chance),
        (CalibratedOnMembers, check_copies_are_found),
        (LosesTheOrderOfRecords, check_copies_are_found),
    ],
)
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin())


def test_a_few_members_in_a_large_release_are_found():
    """Thirty of three hundred, word for word: no matter to the AUC, but to epsilon."""
    some = [*MEMBERS.texts[:30], *INDEPENDENT.texts]
    labels = [*MEMBERS.labels[:30], *INDEPENDENT.labels]
    found = score(TextDataset(some, labels))
    assert found.worst.epsilon_lower > 0
    assert found.worst.auc.value < 0.65


def test_the_vocabulary_alone_gives_members_away():
    """Rare words of members in other texts: no neighbour, no run, no n-gram."""
    rng = np.random.default_rng(0)
    rare = [w for text in MEMBERS.texts for w in text.split() if len(w) == 6]
    texts = [
        " ".join([*text.split()[:-1], rare[rng.integers(len(rare))]])
        for text in INDEPENDENT.texts
    ]
    found = score(TextDataset(texts, INDEPENDENT.labels), ["rare words"])
    assert found.worst.auc.low > 0.5


def test_a_number_that_was_copied_is_seen_though_all_numbers_are_one_token():
    texts = [
        " ".join([*text.split()[:-1], member.split()[-1]])
        for text, member in zip(INDEPENDENT.texts, MEMBERS.texts, strict=True)
    ]
    found = score(TextDataset(texts, INDEPENDENT.labels))
    assert [s.name for s in found.scores if s.succeeds] == ["copied details"]


@pytest.mark.parametrize("name", [n for n, a in ATTACKS.items() if a.same_label])
def test_a_label_that_gives_a_copy_away_is_used(name):
    """Every member is there, but non-members are too, under the other label."""
    turned = ["spam" if label == "ham" else "ham" for label in OTHERS.labels]
    both = TextDataset(
        [*MEMBERS.texts, *OTHERS.texts], [*MEMBERS.labels, *turned]
    )  # fmt: skip
    aware = score(both, [name]).worst
    blind = score(both, [name.removesuffix(" of the same label")]).worst
    assert aware.auc.low > blind.auc.high


def test_non_members_of_another_population_are_noticed():
    """An independent release: what the attacks find is the population."""
    foreign = TextDataset([text.replace("w1", "v1") for text in OTHERS.texts])
    bare = [TextDataset(part.texts) for part in (INDEPENDENT, MEMBERS)]
    found = TextMembershipAttack().score(AuditTexts.make(*bare, foreign))
    assert found.succeeds
    assert found.groups_differ
    assert "DIFFER before the release is looked at" in found.verdict()
    same = score(INDEPENDENT)
    assert not same.groups_differ
    assert "DIFFER" not in same.verdict()
    assert not score(MEMBERS).groups_differ


def test_texts_without_labels_take_the_attacks_that_need_none():
    bare = [TextDataset(part.texts) for part in (MEMBERS, MEMBERS, OTHERS)]
    texts = AuditTexts.make(*bare)
    found = TextMembershipAttack().score(texts)
    assert [s.name for s in found.scores] == [
        name for name, attack in ATTACKS.items() if not attack.same_label
    ]
    named = TextMembershipAttack(["n-gram likelihood ratio of the same label"])
    with pytest.raises(InputError, match="Expected labels"):
        named.score(texts)


def test_scores_that_were_found_before_are_taken_and_paid_for():
    texts = AuditTexts.make(MEMBERS, MEMBERS, OTHERS)
    attack = TextMembershipAttack(["rare words"])
    one = attack.score(texts)
    assert one.attacks_tried == 1
    rng = np.random.default_rng(0)
    sizes = len(texts.members) + len(texts.non_members)
    two = attack.score(texts, found={"mine": rng.normal(size=sizes)})
    assert two.attacks_tried == 2
    assert {s.name for s in two.scores} == {"mine", "rare words"}
    assert attack.score(texts, found=found_of(attack, texts)).to_json() == one.to_json()


def found_of(attack, texts):
    return {name: attack.scores(texts, name) for name in attack.names(texts)}


def test_reference_texts_are_set_aside_and_never_scored():
    texts = AuditTexts.make(INDEPENDENT, MEMBERS, OTHERS, seed=0)
    assert texts.sizes == {
        "synthetic": 300, "members": 300, "non_members": 300, "reference": 150,
    }  # fmt: skip
    assert not set(texts.reference.texts) & set(texts.non_members.texts)
    assert {*texts.reference.texts, *texts.non_members.texts} == set(OTHERS.texts)
    other = AuditTexts.make(INDEPENDENT, MEMBERS, OTHERS, seed=1)
    assert other.reference.texts != texts.reference.texts
    given = AuditTexts.make(INDEPENDENT, MEMBERS, OTHERS, reference=written(4, 60))
    assert given.sizes["non_members"] == 450
    assert given.sizes["reference"] == 60


def test_of_equal_records_one_counts():
    twice = MEMBERS.select([*range(300), *range(300)])
    assert AuditTexts.make(INDEPENDENT, twice, OTHERS).sizes["members"] == 300


def refused(*parts, **changes) -> str:
    with pytest.raises(InputError) as caught:
        AuditTexts.make(*parts, **changes)
    line = str(caught.value)
    assert "\n" not in line
    assert SECRET not in line
    return line


def test_texts_that_no_audit_can_use_are_refused():
    some = MEMBERS.select(range(49))
    assert "at least 50 distinct members, received 49" in refused(
        INDEPENDENT, some, OTHERS
    )
    assert "distinct non-members, received 40" in refused(
        INDEPENDENT, MEMBERS, OTHERS.select(range(60))
    )
    bare = [TextDataset(part.texts) for part in (MEMBERS, OTHERS)]
    assert "synthetic texts, received 0" in refused(TextDataset([]), *bare)


def test_records_that_are_members_and_not_are_counted():
    mixed = TextDataset(
        [*OTHERS.texts, *(text.upper() for text in MEMBERS.texts[:7])],
        [*OTHERS.labels, *MEMBERS.labels[:7]],
    )
    assert "received 7 of 457" in refused(INDEPENDENT, MEMBERS, mixed)
    assert "received 300 of 300" in refused(MEMBERS, MEMBERS, MEMBERS)
    assert "reference texts" in refused(
        INDEPENDENT, MEMBERS, OTHERS, reference=OTHERS.select(range(60))
    )
    assert "reference texts" in refused(
        INDEPENDENT, MEMBERS, OTHERS, reference=MEMBERS.select(range(60))
    )


def test_labels_that_do_not_meet_are_refused():
    named = dataclasses.replace(INDEPENDENT, labels=("0",) * 300)
    assert "labels that synthetic texts have" in refused(named, MEMBERS, OTHERS)
    bare = TextDataset(INDEPENDENT.texts)
    assert "without" in refused(bare, MEMBERS, OTHERS)


@pytest.mark.parametrize("attacks", [[], ["x"], ["rare words"] * 2, "rare words"])
def test_attacks_that_are_none_are_refused(attacks):
    with pytest.raises(InputError):
        TextMembershipAttack(attacks)


def test_probabilities_of_the_model_sum_to_one():
    model = NGramModel([["a", "b"], ["a", "c", "b"]], size=5, order=3)
    for context in (["a"], ["a", "b"], ["z"], ["c", "z"], []):
        padded = ("<start>", "<start>", *context)
        total = sum(
            model._probability((*padded, token), len(padded))
            for token in ("a", "b", "c", "<end>", "another")
        )
        assert total == pytest.approx(1)


def test_a_probability_worked_out_by_hand():
    model = NGramModel([["a"]], size=4, order=2)
    unigram = (1 + 2 * 1 / 4) / (2 + 2)  # two tokens, both different
    a, end = (1 + unigram) / 2, (1 + unigram) / 2
    found = model.mean_log_probabilities([["a"], []])
    assert found[0] == pytest.approx((math.log(a) + math.log(end)) / 2)
    assert found[1] == pytest.approx(math.log(unigram / 2))


def test_the_estimate_of_time_is_a_time():
    texts = AuditTexts.make(INDEPENDENT, MEMBERS, OTHERS)
    assert 0 < TextMembershipAttack().seconds(texts) < 60


@pytest.mark.slow
def test_ten_thousand_rows_against_ten_thousand_take_less_than_five_minutes():
    synthetic, members, others = (written(seed, 10_000) for seed in (10, 11, 12))
    texts = AuditTexts.make(
        synthetic,
        members.select(range(5000)),
        others.select(range(5000)),
        reference=others.select(range(5000, 10_000)),
    )
    started = time.monotonic()
    found = TextMembershipAttack().score(texts)
    assert time.monotonic() - started < 300
    assert len(found.scores) == 8


def test_the_estimate_grows_with_pairs_and_takes_texts_apart_once(monkeypatch):
    """A tenth of a second a text that is taken apart, a thousandth a pair."""
    monkeypatch.setattr(text_membership, "_timed", seconds_of)
    texts = AuditTexts.make(INDEPENDENT, MEMBERS, OTHERS)
    plain, same = (
        TextMembershipAttack([f"calibrated nearest neighbour{of}"]).seconds(texts)
        for of in ("", " of the same label")
    )
    candidates, others = 300 + 300, 300 + 150
    taken_apart = 0.1 * (candidates + others)
    assert plain == pytest.approx(taken_apart + 1e-3 * candidates * others, rel=0.02)
    # Two labels of about one half each: half of the pairs.
    pairs = (same - taken_apart) / (plain - taken_apart)
    assert pairs == pytest.approx(0.5, abs=0.03)


def seconds_of(function, queries, corpus=(), **options):
    if function is not text_membership.nearest_texts:
        return 0.0
    pairs = len(queries) * len(corpus) if len(queries) > 1 else 0
    return 0.1 * len(corpus) + 1e-3 * pairs
