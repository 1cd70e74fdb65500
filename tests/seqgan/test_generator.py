"""Generator: its probabilities are those of an LSTM, its samples follow them."""

import itertools

import keras
import numpy as np
import pytest

from tfpriv.seqgan import Generator


def numpy_log_probs(generator, row, temperature=1.0):
    """Log probabilities of one sequence, step by step, written out in numpy."""
    table, kernel, recurrent, bias, head, head_bias = [
        np.asarray(w, np.float64) for w in generator.get_weights()
    ]
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    hidden = carry = np.zeros(generator.units)
    token, result = generator.start_id, []
    for target in row:
        i, f, c, o = np.split(table[token] @ kernel + hidden @ recurrent + bias, 4)
        carry = sigmoid(f) * carry + sigmoid(i) * np.tanh(c)
        hidden = sigmoid(o) * np.tanh(carry)
        logits = (hidden @ head + head_bias) / temperature
        logits[list(generator.forbidden_ids)] = -np.inf
        result.append(logits[target] - np.log(np.exp(logits).sum()))
        token = target
        if target == generator.end_id:
            break
    return result + [0.0] * (len(row) - len(result))


def all_sequences(generator):
    """Every sequence the variable-length generator can draw."""
    words = [3, 4, 5]
    for n in range(generator.max_length):
        for body in itertools.product(words, repeat=n):
            yield [*body, 2] + [0] * (generator.max_length - n - 1)
    for body in itertools.product(words, repeat=generator.max_length):
        yield list(body)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_log_probs_equal_an_lstm_written_out_in_numpy(generator, temperature):
    ids = np.array([[3, 4, 5, 3], [4, 2, 0, 0], [2, 0, 0, 0], [5, 5, 3, 2]])
    expected = [numpy_log_probs(generator, row, temperature) for row in ids]
    got = generator.log_probs(ids, temperature)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_probabilities_of_all_sequences_sum_to_one(generator):
    ids = np.array(list(all_sequences(generator)))
    assert np.exp(generator.log_probs(ids).sum(1)).sum() == pytest.approx(1, abs=1e-5)


def test_what_stands_behind_the_end_is_never_scored(generator):
    clean = np.array([[4, 2, 0, 0]])
    littered = np.array([[4, 2, 5, 2]])
    assert (generator.log_probs(littered)[:, 2:] == 0).all()
    np.testing.assert_array_equal(
        generator.log_probs(clean), generator.log_probs(littered)
    )
    assert generator.nll(clean) == pytest.approx(
        -generator.log_probs(clean)[0, :2].mean(), rel=1e-6
    )


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_are_distributed_as_their_probabilities_say(generator, temperature):
    ids = np.array(list(all_sequences(generator)))
    expected = np.exp(generator.log_probs(ids, temperature).sum(1))
    drawn = generator.sample(20_000, temperature=temperature, seed=1, chunk=20_000)
    index = {tuple(row): i for i, row in enumerate(ids)}
    counts = np.bincount([index[tuple(row)] for row in drawn], minlength=len(ids))
    # Total variation of 20,000 draws over 121 cells is below .04.
    assert np.abs(counts / 20_000 - expected).sum() / 2 < 0.04
    wrong = np.exp(generator.log_probs(ids, temperature * 1.5).sum(1))
    assert np.abs(counts / 20_000 - wrong).sum() / 2 > 0.06


def test_a_fixed_length_generator_draws_every_word_and_no_pad(fixed_generator):
    drawn = fixed_generator.sample(3_000, seed=0)
    assert drawn.shape == (3_000, 3)
    assert set(np.unique(drawn)) == {0, 1, 2, 3}
    assert (fixed_generator.log_probs(drawn) < 0).all()


def test_a_prefix_is_kept_and_gone_on_from(generator):
    prefix = np.tile([[4, 5]], (4_000, 1))
    drawn = generator.sample(4_000, prefix=prefix, seed=2)
    assert (drawn[:, :2] == [4, 5]).all()
    candidates = np.array([[4, 5, w, 2] for w in (3, 4, 5)] + [[4, 5, 2, 0]])
    probability = np.exp(generator.log_probs(candidates)[:, 2])
    share = [(drawn[:, 2] == w).mean() for w in (3, 4, 5, 2)]
    np.testing.assert_allclose(share, probability, atol=0.03)
    ended = generator.sample(2, prefix=[[4, 2], [4, 2]], seed=2)
    assert (ended == [4, 2, 0, 0]).all()


def test_a_seed_repeats_samples_and_no_seed_does_not(generator):
    first = generator.sample(50, seed=7)
    np.testing.assert_array_equal(first, generator.sample(50, seed=7))
    assert (first != generator.sample(50, seed=8)).any()
    assert (generator.sample(50) != generator.sample(50)).any()


def test_chunks_draw_independently_of_each_other(generator):
    drawn = generator.sample(64, seed=7, chunk=32)
    assert (drawn[:32] != drawn[32:]).any()


def test_suppressed_ids_are_not_drawn(generator):
    drawn = generator.sample(500, seed=0, suppress=(3, 2))
    assert not np.isin(drawn, [0, 1, 2, 3]).any()


def test_weights_follow_from_the_seed():
    same = [Generator(6, 4, 3, 4, seed=1).get_weights() for _ in range(2)]
    other = Generator(6, 4, 3, 4, seed=2).get_weights()
    assert all((a == b).all() for a, b in zip(*same, strict=True))
    assert (same[0][0] != other[0]).any()


@pytest.mark.parametrize("end_id", [2, None])
def test_it_is_loaded_without_custom_objects(tmp_path, end_id):
    generator = Generator(6, 4, 3, 4, end_id=end_id, dropout=0.1, seed=1)
    generator.sample(3, seed=0)
    generator.save(tmp_path / "generator.keras")
    loaded = keras.saving.load_model(tmp_path / "generator.keras")
    assert loaded.get_config() == generator.get_config()
    ids = generator.sample(5, seed=3)
    np.testing.assert_array_equal(loaded.sample(5, seed=3), ids)
    np.testing.assert_array_equal(loaded.log_probs(ids), generator.log_probs(ids))


def test_mixed_precision_scores_in_float32():
    generator = Generator(6, 4, 3, 4, dtype="mixed_float16", seed=1)
    log_probs = generator.log_probs(generator.sample(8, seed=0))
    assert log_probs.dtype == np.float32
    assert np.isfinite(log_probs).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 0}, "vocabulary_size >= 1"),
        ({"end_id": 6}, "end_id < vocabulary_size=6, received end_id=6"),
        ({"forbidden_ids": (2,)}, "end_id that may occur"),
        ({"dropout": float("nan")}, "finite dropout"),
        ({"initializer_stddev": -1.0}, "initializer_stddev > 0"),
    ],
)
def test_unusable_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Generator(**{"vocabulary_size": 6, "max_length": 4, **arguments})


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_unusable_temperatures_are_refused(generator, temperature):
    with pytest.raises(ValueError, match="temperature"):
        generator.sample(2, temperature=temperature)


def test_ids_outside_the_vocabulary_are_refused(generator):
    with pytest.raises(ValueError, match="Expected ids from 0 to 5, received 3 to 6"):
        generator.log_probs(np.array([[3, 6]]))
    with pytest.raises(ValueError, match="integers of shape"):
        generator.log_probs(np.array([[0.5]]))
