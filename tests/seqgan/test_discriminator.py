"""Discriminator: a TextCNN of any widths, in SeqGAN's full setting too."""

import keras
import numpy as np
import pytest

from tfpriv.seqgan import Discriminator


def test_logits_equal_convolution_and_maximum_written_out_in_numpy(discriminator):
    ids = np.array([[3, 1, 4, 5], [2, 0, 0, 0]])
    weights = [np.asarray(w, np.float64) for w in discriminator.get_weights()]
    table, kernel_1, bias_1, kernel_2, bias_2, head, head_bias = weights
    embedded = table[ids]
    ones = np.einsum("ble,ef->blf", embedded, kernel_1[0]) + bias_1
    pairs = (
        np.einsum("ble,ef->blf", embedded[:, :-1], kernel_2[0])
        + np.einsum("ble,ef->blf", embedded[:, 1:], kernel_2[1])
        + bias_2
    )
    features = np.maximum(np.concatenate([ones.max(1), pairs.max(1)], axis=1), 0)
    expected = features @ head + head_bias
    np.testing.assert_allclose(discriminator(ids), expected, atol=1e-5)
    odds = np.exp(expected)
    np.testing.assert_allclose(
        discriminator.real_probability(ids), odds[:, 1] / odds.sum(1), rtol=1e-5
    )


def test_the_highway_layer_mixes_its_input_with_its_transform():
    model = Discriminator(6, 4, 3, widths=(2,), filters=(5,), highway=True, seed=1)
    layer = model.highway_layer
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    gate = 1 / (1 + np.exp(-(x @ layer.gate.kernel.numpy() - 2)))
    transform = np.maximum(x @ layer.transform.kernel.numpy(), 0)
    np.testing.assert_allclose(layer(x), gate * transform + (1 - gate) * x, atol=1e-5)
    assert len(model.trainable_variables) == 9


def test_the_full_setting_has_1720_filters_and_only_an_output_penalty():
    model = Discriminator.seqgan(50, 20, seed=0)
    assert sum(model.filters) == 1720
    assert (model.highway, model.dropout, model.output_l2) == (True, 0.25, 0.2)
    kernel, bias = (np.asarray(w) for w in (model.head.kernel, model.head.bias))
    penalty = 0.2 * ((kernel**2).sum() + (bias**2).sum()) / 2
    assert sum(map(float, model.losses)) == pytest.approx(penalty, rel=1e-5)


def test_the_full_setting_leaves_out_widths_that_do_not_fit():
    assert Discriminator.seqgan(10, 7, highway=False).widths == (1, 2, 3, 4, 5, 6, 7)


def test_dropout_is_on_in_training_only():
    model = Discriminator(6, 4, 3, widths=(1,), filters=50, dropout=0.5, seed=0)
    ids = np.array([[3, 4, 5, 0]])
    np.testing.assert_array_equal(model(ids), model(ids))
    assert (np.asarray(model(ids, training=True)) != np.asarray(model(ids))).any()


def test_it_is_loaded_without_custom_objects(tmp_path):
    model = Discriminator(6, 4, 3, (1, 2), (4, 5), highway=True, output_l2=0.1, seed=0)
    model.save(tmp_path / "d.keras")
    loaded = keras.saving.load_model(tmp_path / "d.keras")
    assert loaded.get_config() == model.get_config()
    ids = np.array([[3, 4, 5, 0]])
    np.testing.assert_array_equal(loaded(ids), model(ids))


def test_weights_follow_from_the_seed():
    make = lambda seed: Discriminator(6, 4, highway=True, widths=(2,), seed=seed)  # noqa: E731
    first, same, other = (make(seed).get_weights() for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, same, strict=True))
    assert (first[0] != other[0]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": (5,)}, "widths from 1 to max_length=4"),
        ({"widths": ()}, "as many filters as widths"),
        ({"widths": (1, 2), "filters": (3,)}, "as many filters as widths"),
        ({"output_l2": -1}, "output_l2 >= 0"),
    ],
)
def test_unusable_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Discriminator(6, 4, **arguments)
