import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from experiments.rmat_tables import measures
from experiments.rmat_tables.data import INTENSITIES, JOINT, Part
from experiments.rmat_tables.figures import Measured, rows_of
from experiments.rmat_tables.settings import Arm, Settings
from tfpriv._errors import InputError
from tfpriv.datasets.md_gender import SENTIMENTS
from tfpriv.mechanisms import RandomizedResponse


@pytest.fixture
def labels():
    rng = np.random.default_rng(3)
    truth = rng.choice(3, 400, p=[0.1, 0.3, 0.6])
    wrong = rng.random(400) < 0.2
    return truth, np.where(wrong, rng.integers(0, 3, 400), truth)


def test_macro_f1_is_that_of_scikit_learn(labels):
    counts = measures.confusion(*labels, 3)
    expected = f1_score(*labels, average="macro")
    assert measures.macro_f1(counts) == pytest.approx(expected)
    both = measures.macro_f1(np.stack([counts, counts.T]))
    np.testing.assert_allclose(both, expected)


def test_a_class_without_test_rows_is_left_out():
    counts = np.array([[8, 2, 0], [1, 9, 0], [0, 0, 0]])
    expected = f1_score([0] * 10 + [1] * 10, [0] * 8 + [1] * 2 + [0] + [1] * 9)
    assert measures.macro_f1(counts) == pytest.approx((16 / 19 + expected) / 2)


def test_the_interval_covers_what_other_test_rows_would_give(labels):
    truth, guess = labels
    score = measures.task_score(truth, guess, 3)
    rng = np.random.default_rng(0)
    again = [
        f1_score(truth[rows], guess[rows], average="macro")
        for rows in (rng.integers(0, 400, 400) for _ in range(300))
    ]
    assert score["half"] == pytest.approx(1.96 * np.std(again), rel=0.2)
    assert np.sum(score["confusion"]) == 400


def test_floors_are_those_of_blind_guesses(labels):
    truth, _ = labels
    train = np.repeat([0, 1, 2], [100, 100, 800])
    found = measures.floors(train, truth, 3)
    constants = [f1_score(truth, [c] * 400, average="macro") for c in range(3)]
    assert found["constant"] == pytest.approx(max(constants))
    p, q = np.bincount(truth) / 400, np.array([0.1, 0.1, 0.8])
    assert found["prior"] == pytest.approx((2 * p * q / (p + q)).mean())


def test_a_label_told_at_a_large_epsilon_is_the_label(labels):
    counts = measures.confusion(*labels, 3)
    told = measures.label_by_response(counts, 60.0)
    assert told["macro_f1"] == pytest.approx(float(measures.macro_f1(counts)))
    plain = measures.task_score(*labels, 3)
    assert told["half"] == pytest.approx(plain["half"], rel=0.15)


def test_expected_macro_f1_is_that_of_the_mechanism(labels):
    truth, guess = labels
    told = measures.label_by_response(measures.confusion(truth, guess, 3), 1.0)
    mechanism = RandomizedResponse(range(3), 1.0)
    scores = [
        f1_score(truth, mechanism.release(guess.tolist()), average="macro")
        for _ in range(200)
    ]
    # Standard deviation of one release is about .025: the mean of 200 is within
    # 6.5 of its own but for a probability below 1e-9.
    assert told["macro_f1"] == pytest.approx(np.mean(scores), abs=0.0135)


def test_the_response_matrix_keeps_its_epsilon():
    matrix = measures.response_matrix(5, 2.0)
    np.testing.assert_allclose(matrix.sum(1), 1)
    ratios = matrix.max(0) / matrix.min(0)
    np.testing.assert_allclose(ratios, np.exp(2.0), rtol=1e-9)


def test_the_auc_of_a_told_label_is_that_of_the_best_reader():
    rng = np.random.default_rng(1)
    private = rng.integers(0, 2, 500)
    guess = np.where(rng.random(500) < 0.3, private, rng.integers(0, 3, 500))
    counts = np.zeros((2, 3), int)
    np.add.at(counts, (private, guess), 1)
    found = measures.label_auc(counts, counts, 60.0)
    posterior = (counts / counts.sum(0))[1][guess]
    assert found["auc"] == pytest.approx(roc_auc_score(private, posterior))
    assert measures.label_auc(counts, counts, 1e-6)["auc"] == pytest.approx(
        0.5, abs=1e-5
    )
    weaker = [measures.label_auc(counts, counts, e)["auc"] for e in (0.5, 1, 2, 4)]
    assert weaker == sorted(weaker)


def test_a_label_says_of_a_second_task_what_is_commonest():
    counts = np.array([[30, 0, 0], [0, 10, 5], [0, 20, 25]])
    found = measures.second_from_label(counts, counts, 60.0)
    truth, guess = [0] * 30 + [1] * 15 + [2] * 45, [0] * 30 + [2] * 60
    assert found["macro_f1"] == pytest.approx(f1_score(truth, guess, average="macro"))


def test_two_labels_share_the_epsilon():
    """Predictions that are right: each label alone is a response at half of it."""
    counts = np.zeros((2, 3, 3, len(JOINT)), int)
    for place, (sentiment, intensity) in enumerate(JOINT):
        counts[:, sentiment, intensity, place] = 40
    cell = {
        "dataset": "wizard",
        "seed": 0,
        "arm": "second",
        "floors": {},
        "counts": {"train": counts.tolist(), "test": counts.tolist()},
    }
    (row,) = rows_of([cell], Settings(certified_epsilons=(2.0,)))
    assert row["arm"] == "pair@2"
    for name, sizes in (("task", (160, 80, 160)), ("intensity", (80, 160, 160))):
        alone = measures.label_by_response(np.diag(sizes), 1.0)
        assert row[name]["macro_f1"] == pytest.approx(alone["macro_f1"])


def test_a_reader_of_one_class_is_a_constant():
    released = np.eye(3)
    guess = measures.read_afresh(released, np.array([2, 2, 2]), released[:2])
    assert guess.tolist() == [2, 2]


def test_intensity_and_sentiment_are_two_readings_of_one_score():
    texts = ("The door is brown.", "It is nice.", "I love this great, great day!")
    texts += ("It was a bit bad.", "What a horrible, awful disaster, I hate it.")
    part = Part(texts, np.array([1, 2, 2, 0, 0]), np.zeros(5, int))
    names = [INTENSITIES[i] for i in part.intensities()]
    assert names == ["none", "mild", "strong", "strong", "strong"]
    pairs = [JOINT[place] for place in part.joint()]
    assert [SENTIMENTS[s] for s, _ in pairs] == [
        *("neutral", "positive", "positive", "negative", "negative")
    ]
    assert len(JOINT) == 5


def test_an_interval_joins_rows_and_seeds():
    one = Measured.of([0.5], [0.03])
    assert (one.half, one.n) == (0.03, 1)
    # t(.975, 2) = 4.30265; equal seeds add nothing to the rows.
    assert Measured.of([0.5] * 3, [0.03] * 3).half == pytest.approx(0.03)
    many = Measured.of([0.4, 0.5, 0.6], [0.03] * 3)
    assert many.half == pytest.approx(np.hypot(0.03, 4.30265 * 0.1 / 3**0.5), rel=1e-4)
    assert Measured.of([], []).percent() == "-"


@pytest.mark.parametrize("key", ["none", "rmat", "l1@0.5", "second"])
def test_an_arm_is_named_as_it_is_read(key):
    assert Arm.parse(key).key == key


def test_the_front_is_a_small_grid_of_arms():
    settings = Settings()
    keys = settings.front()
    assert len(keys) <= 12
    assert [Arm.parse(key).key for key in keys] == keys
    arm = Arm.parse(keys[-1])
    grid = list(
        itertools.product(
            settings.front_epsilons, settings.front_mask_rates, settings.front_weights
        )
    )
    assert (arm.epsilon, arm.mask_rate, arm.adversary_weight) == grid[-1]


@pytest.mark.parametrize(
    "key", ["", "magic", "none@4", "rmat@4", "l1@0", "l1@x", "l1", "front-e1", "front-"]
)
def test_other_arms_are_refused(key):
    with pytest.raises(InputError, match="Expected an arm"):
        Arm.parse(key)
