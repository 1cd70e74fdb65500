from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.attacks import AttributeInferenceAttack, Estimate, _attackers

NAMES = tuple(_attackers.ATTACKERS)
LINEAR = ("logistic_regression",)


def table(n: int, *, tell: float, seed: int = 0, classes: int = 2, d: int = 5, r=None):
    """Noise on n rows, with the class added to a feature each."""
    rng = np.random.default_rng(seed)
    private = np.r_[np.arange(classes), rng.integers(0, classes, n - classes)]
    shape = (n, d) if r is None else (n, r, d)
    x = rng.normal(size=shape)
    told = tell * np.eye(d)[private]
    return x + (told if r is None else told[:, None]), private


def run(train, test, attackers=LINEAR, *, seeds=(0,), groups=None, **options):
    options = {"resamples": 200, **options}
    attack = AttributeInferenceAttack(attackers, seeds=seeds, **options)
    return attack.fit_score(*train, *test, test_groups=groups)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 3])
def test_each_attacker_finds_what_is_told(name, classes):
    train = table(300, tell=3, classes=classes)
    result = run(train, table(200, tell=3, seed=1, classes=classes), [name])
    assert result.leaks
    assert result.worst.name == name
    assert result.worst.auc.value > 0.9
    assert result.worst.macro_f1.value > 0.75
    assert result.p_value < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_each_attacker_finds_nothing_in_noise(name):
    result = run(table(300, tell=0), table(200, tell=0, seed=1), [name])
    # Seven standard errors of an AUC on 100 against 100 rows.
    assert abs(result.worst.auc.value - 0.5) < 7 * 0.041


def test_a_weak_signal_in_many_noisy_features_is_found():
    """A weak penalty would drown in 300 features of noise: AUC about .58."""
    train, test = (
        table(400, tell=1.5, d=300),
        table(400, tell=1.5, d=300, seed=1),
    )
    assert run(train, test).worst.auc.value > 0.68


def test_random_attackers_train_once_a_seed_and_others_once():
    result = run(
        table(80, tell=1),
        table(60, tell=1, seed=1),
        ["logistic_regression", "mlp"],
        seeds=(3, 4),
    )
    runs = {score.name: score.auc_by_run for score in result.attackers}
    assert len(runs["logistic_regression"]) == 1
    assert len(runs["mlp"]) == 2
    assert runs["mlp"][0] != runs["mlp"][1]
    mlp = result.attackers[1].auc
    assert mlp.value == pytest.approx(np.mean(runs["mlp"]))


def test_the_same_seeds_give_the_same_scores():
    parts = table(80, tell=1), table(60, tell=1, seed=1)
    first, second = (run(*parts, ["mlp"], seeds=(0, 1)).to_json() for _ in range(2))
    del first["seconds"], second["seconds"]
    assert first == second


def test_the_floors_are_those_of_facts():
    """Wizard as published: 1743 against 1755 rows in training, 109 against 35 in test.

    FACTS.md: constant 43.1, guess from the prior 46.3.
    """
    rng = np.random.default_rng(0)
    train = np.repeat([0, 1], [1743, 1755])
    test = np.repeat([0, 1], [109, 35])
    result = run((rng.normal(size=(3498, 2)), train), (rng.normal(size=(144, 2)), test))
    assert result.constant_macro_f1 == pytest.approx(0.431, abs=5e-4)
    assert result.prior_macro_f1 == pytest.approx(0.464, abs=1e-3)
    assert result.majority_accuracy == pytest.approx(109 / 144)
    assert not result.leaks


def test_balanced_weights_keep_rare_classes_in_the_guesses():
    rng = np.random.default_rng(0)

    def skewed(n):
        private = (rng.random(n) < 0.1).astype(int)
        return rng.normal(size=(n, 3)) + private[:, None], private

    result = run(skewed(600), skewed(600), NAMES[:2])
    plain, balanced = result.attackers
    assert balanced.balanced_accuracy.value > plain.balanced_accuracy.value + 0.1
    assert result.highest_macro_f1.macro_f1.value == max(
        plain.macro_f1.value, balanced.macro_f1.value
    )


def test_the_worst_of_several_is_judged_by_a_wider_interval():
    parts = table(120, tell=0.3), table(100, tell=0.3, seed=1)
    result = run(*parts, ["logistic_regression", "mlp"])
    for score in result.attackers:
        assert score.adjusted_auc.low < score.auc.low
        assert score.adjusted_auc.high > score.auc.high
    alone = run(*parts).worst
    assert alone.adjusted_auc == alone.auc
    assert result.null_auc_bound > result.null_auc > 0.5


def test_few_rows_are_no_leak_though_all_are_right():
    """Two against two rows are ordered rightly by chance in one of six cases."""
    train = table(200, tell=8)
    test = (np.array([[8.0, 0, 0, 0, 0], [0, 8, 0, 0, 0]] * 2), [0, 1, 0, 1])
    result = run(train, test)
    assert result.worst.auc.value == 1
    # All right of two a class leaves nearly every area open.
    assert result.worst.adjusted_auc.low < 0.5
    assert not result.leaks
    # Nor is an interval that is too narrow enough.
    narrow = dataclasses.replace(result.worst, adjusted_auc=Estimate(1.0, 0.9, 1.0))
    assert not dataclasses.replace(result, attackers=(narrow,)).leaks


def test_several_releases_average_the_noise_out():
    train, test = (
        table(300, tell=0.7, r=16),
        table(200, tell=0.7, r=16, seed=1),
    )
    once = run((train[0][:, 0], train[1]), (test[0][:, 0], test[1]))
    result = run(train, test)
    assert [score.name for score in result.attackers] == [
        "logistic_regression (mean of 16)",
        "logistic_regression (all 16)",
    ]
    assert result.attackers[0].auc.value > once.worst.auc.value + 0.1
    assert (result.releases, result.dimension) == (16, 5)
    assert "16 releases" in str(result)


def test_one_release_is_one_release_in_either_shape():
    train, test = table(80, tell=1, r=1), table(60, tell=1, r=1, seed=1)
    flat = run((train[0][:, 0], train[1]), (test[0][:, 0], test[1]))
    assert run(train, test).attackers == flat.attackers


def test_rows_of_a_group_widen_the_interval():
    """Each row twenty times over: twenty times the rows, and no more to see."""
    x, private = table(40, tell=0.8, seed=1)
    many = np.repeat(x, 20, axis=0), np.repeat(private, 20)
    groups = [f"dialogue {i // 20}" for i in range(800)]
    train = table(300, tell=0.8)
    once, naive, grouped = (
        run(train, test, groups=names, resamples=1000).worst.auc
        for test, names in (((x, private), None), (many, None), (many, groups))
    )
    width = once.high - once.low
    assert naive.high - naive.low < 0.4 * width
    assert grouped.high - grouped.low == pytest.approx(width, rel=0.2)


def test_groups_do_not_make_noise_a_leak():
    """Groups share class and noise: twelve rows say what one says."""
    rng = np.random.default_rng(5)
    found = {"grouped": 0, "naive": 0}
    for trial in range(12):
        private = rng.permutation(np.repeat([0, 1], 6)).repeat(12)
        x = rng.normal(size=(12, 2)).repeat(12, axis=0)
        x = x + 0.1 * rng.normal(size=x.shape)
        train = table(200, tell=0, d=2, seed=trial)
        groups = np.arange(12).repeat(12)
        found["grouped"] += run(train, (x, private), groups=groups).leaks
        found["naive"] += run(train, (x, private)).leaks
    assert found["grouped"] <= 2 < found["naive"]


def test_a_class_of_test_rows_alone_is_scored_and_never_guessed():
    x, private = table(200, tell=3, classes=3)
    known = private < 2
    test = table(150, tell=3, classes=3, seed=1)
    result = run((x[known], private[known]), test)
    assert (result.num_classes, result.unseen_classes) == (3, 1)
    assert result.worst.balanced_accuracy.value < 2 / 3 + 1e-9
    assert result.worst.auc.value < 5 / 6 + 1e-9
    assert "1 of them in no training row" in str(result)


def test_a_class_of_training_rows_alone_is_a_wrong_guess():
    x, private = table(150, tell=3, classes=3, seed=1)
    known = private < 2
    result = run(table(200, tell=3, classes=3), (x[known], private[known]))
    assert result.num_classes == 2
    assert result.worst.macro_f1.value > 0.7


@pytest.mark.parametrize("name", NAMES)
def test_a_handful_of_rows_is_enough_to_run(name):
    x = np.arange(12.0).reshape(6, 2)
    result = run((x, list("aaabbc")), (x, list("abcabc")), [name])
    assert 0 <= result.worst.auc.value <= 1


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1] * 10,
        [0.0, 1.0] * 10,
        [False, True] * 10,
        ["0", "1"] * 10,
        [b"0", b"1"] * 10,
        np.array([0, 1] * 10, np.int8),
        [np.int64(0), np.int64(1)] * 10,
    ],
    ids=["int", "float", "bool", "str", "bytes", "array", "scalars"],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_labels_and_numbers_of_many_types_are_taken(labels, dtype):
    x = (10 * np.array([[i % 2, i] for i in range(20)])).astype(dtype)
    result = run((x, labels), (x, labels), resamples=100)
    assert result.worst.accuracy.value == 1


def test_constant_and_huge_features_are_harmless():
    x, private = table(100, tell=3)
    x = np.concatenate([x, np.ones((100, 1)), x[:, :1] * 1e90], axis=1)
    test = x.copy()
    test[0, 0] = 1e99
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run((x, private), (test, private))
    assert result.worst.auc.value > 0.9


X, PRIVATE = np.arange(24.0).reshape(12, 2), ["secret", "other"] * 6


def with_value(value, row=3):
    x = X.copy()
    x[row, 1] = value
    return x


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_representations": with_value(np.nan)}, "1 of 12 rows.* row 3 "),
        ({"test_representations": with_value(np.inf, 5)}, "test_.* row 5 "),
        ({"train_representations": with_value(1e101)}, "larger number.* row 3 "),
        ({"train_representations": X[:, 0]}, r"shape \(12,\)"),
        ({"train_representations": X[:, :0]}, r"shape \(12, 0\)"),
        ({"train_representations": X.astype(str)}, "dtype <U"),
        ({"train_representations": [[1.0], [1.0, 2.0]]}, "dtype object"),
        ({"train_representations": X[:, :1]}, "same shape"),
        ({"train_representations": X[:, None, :].repeat(2, 1)}, "same shape"),
        ({"train_private": PRIVATE[:5]}, "5 labels and 12 rows"),
        ({"test_private": PRIVATE[:5]}, "5 labels and 12 rows"),
        ({"train_private": ["secret"] * 12}, "two classes in train_private"),
        ({"test_private": ["secret"] * 12}, "two classes in test_private"),
        ({"train_private": ["secret"] * 3 + [None] * 9}, "row 3 of train_private"),
        ({"train_private": ["secret"] * 3 + [""] * 9}, "row 3 of train_private"),
        ({"train_private": [0.0, 1.0, np.nan] * 4}, "row 2 of train_private"),
        ({"train_private": [0.0, 1.5, 1.0] * 4}, "row 1 of train_private"),
        ({"train_private": "secretothers"}, "list of labels"),
        ({"train_private": 3}, "list of labels"),
        ({"test_private": [["secret"]] * 12}, "row 0 of test_private"),
        ({"test_groups": [1] * 12}, "two groups"),
        ({"test_groups": [1, 2]}, "2 labels and 12 rows"),
        (
            {
                "train_representations": X[:2],
                "train_private": PRIVATE[:2],
                "test_private": ["secret", "b", "c"] * 4,
            },
            r"as classes \(4\), received 2",
        ),
    ],
)
def test_bad_input_is_refused_without_showing_a_label(changes, words):
    arguments = {
        "train_representations": X,
        "train_private": PRIVATE,
        "test_representations": X,
        "test_private": PRIVATE,
    }
    with pytest.raises(InputError, match=words) as caught:
        AttributeInferenceAttack(LINEAR).fit_score(**{**arguments, **changes})
    message = str(caught.value)
    assert message.startswith("Expected")
    assert "\n" not in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attackers": []}, "at least one of attackers"),
        ({"attackers": ["mlp", "mlp"]}, "none twice"),
        ({"attackers": "mlp"}, "list for attackers"),
        ({"attackers": ["svm"]}, "one of logistic_regression"),
        ({"seeds": []}, "at least one of seeds"),
        ({"seeds": [1, 1]}, "none twice"),
        ({"seeds": [-1]}, "seeds >= 0"),
        ({"seeds": 3}, "list for seeds"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"resamples": 10}, "resamples >= 100"),
    ],
)
def test_bad_settings_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        AttributeInferenceAttack(**options)


def test_the_table_names_the_worst_and_both_floors():
    result = run(table(120, tell=3), table(100, tell=3, seed=1), NAMES[:2])
    text = str(result)
    assert text == result.to_markdown()
    lines = text.splitlines()
    assert lines[0].startswith("| attacker | AUC [95 %] |")
    assert sum("**" in line for line in lines) == 1
    assert f"**{result.worst.name}**" in text
    assert f"{result.constant_macro_f1:.3f}" in text
    assert f"{result.prior_macro_f1:.3f}" in text
    assert "LEAKS" in text
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert widths == {6}
    quiet = str(run(table(120, tell=0), table(100, tell=0, seed=1)))
    assert "no leak was found, which is no proof" in quiet


def test_json_is_plain_and_complete():
    result = run(table(120, tell=3), table(100, tell=3, seed=1), NAMES[:2])
    value = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert value["leaks"] is True
    assert value["worst"] == result.worst.name
    assert value["attackers"][0]["auc"] == result.attackers[0].auc.to_json()
    assert (value["train_rows"], value["test_rows"]) == (120, 100)
