"""The five methods as Keras models: train, keep, load, release."""

from __future__ import annotations

import errno
import io
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.representation.conftest import make_backbone
from tfpriv._errors import InputError
from tfpriv.representation import ADS, CAPE, DPNR, RMAT, Unprotected
from tfpriv.representation.replicas import BatchWeights

TEXTS = [
    "I love the great table!",
    "he hate it .",
    "the unbelievable door",
    "she plays , it was awful",
    "",
    "a man sees the woman",
] * 2
LABELS = np.array([2, 0, 1, 0, 1, 1] * 2)
PRIVATE = np.array([0, 1, 0, 1, 1, 0] * 2)
TARGETS = {"label": LABELS, "private": PRIVATE}


def build(method, tokenizer, **settings):
    """A model that runs without a graph: tracing one takes longer than any test."""
    arguments = {
        "num_classes": 3,
        "num_private_classes": 2,
        "seed": 1,
        "public_backbone": True,
    }
    model = method(make_backbone(), tokenizer, **{**arguments, **settings})
    model.run_eagerly = True
    return model


def compiled(model, *optimizers, **settings):
    model.compile(*optimizers, run_eagerly=True, **settings)
    return model


METHODS = {
    "rmat": (RMAT, {"scale": "l1"}),
    # An epsilon at which two releases of 48 codes are never equal by chance.
    "rmat-code": (RMAT, {"epsilon": 0.5}),
    "rmat-paper": (RMAT, {"nominal_epsilon": 2.0}),
    "dpnr": (DPNR, {"mask_rate": 0.3}),
    "ads": (ADS, {}),
    "cape": (CAPE, {"post_units": (8, 8)}),
    "none": (Unprotected, {}),
}
# RMAT always; the others share its house, and take as long again.
each_method = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if "rmat" in name else pytest.mark.slow)
        for name in METHODS
    ],
)


@each_method
def test_trains_evaluates_and_predicts(name, tokenizer):
    method, settings = METHODS[name]
    model = build(method, tokenizer, **settings)
    compiled(model)
    history = model.fit(
        TEXTS,
        TARGETS,
        batch_size=6,
        validation_data=(TEXTS[:6], {k: v[:6] for k, v in TARGETS.items()}),
        verbose=0,
    )
    assert np.isfinite(history.history["loss"]).all()
    assert "val_task_f1" in history.history
    assert ("private_loss" in history.history) == (model.objective is not None)
    metrics = model.evaluate(TEXTS, TARGETS, return_dict=True, verbose=0)
    assert 0 <= metrics["task_accuracy"] <= 1
    predicted = model.predict(TEXTS, verbose=0)
    assert predicted.shape == (len(TEXTS), 3)
    np.testing.assert_allclose(predicted.sum(1), 1, rtol=1e-5)
    assert model.encode(TEXTS[:5]).shape == (5, model.encoder.output_dim)


@each_method
def test_is_loaded_without_custom_objects(name, tokenizer, tmp_path):
    method, settings = METHODS[name]
    model = build(method, tokenizer, **settings)
    compiled(model, adversary_weight=0.5, class_weights={"label": [1, 2, 3]})
    model.fit(TEXTS, TARGETS, batch_size=6, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is method
    assert loaded.design == model.design
    assert loaded.get_config() == model.get_config()
    assert loaded.adversary_weight == 0.5
    assert loaded.class_weights == {"label": [1.0, 2.0, 3.0]}
    for ours, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert loaded.optimizer.iterations.numpy() == model.optimizer.iterations.numpy()
    # It goes on training, with its adversary's optimizer where it was.
    loaded.run_eagerly = True
    loaded.fit(TEXTS, TARGETS, batch_size=6, verbose=0)


@each_method
def test_preset_is_read_back(name, tokenizer, tmp_path):
    method, settings = METHODS[name]
    model = build(method, tokenizer, **settings)
    model.save_to_preset(tmp_path / "preset")
    loaded = method.from_preset(tmp_path / "preset")
    assert loaded.design == model.design
    for ours, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(
    "name",
    [
        "rmat",
        "rmat-code",
        "rmat-paper",
        "dpnr",
        pytest.param("cape", marks=pytest.mark.slow),
    ],
)
def test_every_call_and_every_load_has_noise_of_its_own(name, tokenizer, tmp_path):
    method, settings = METHODS[name]
    model = build(method, tokenizer, **settings)
    texts = TEXTS[:6] * 8
    model.save(tmp_path / "model.keras")
    released = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        loaded.run_eagerly = True
        keras.utils.set_random_seed(7)
        released += [loaded.encode(texts), loaded.encode(texts)]
    for i, one in enumerate(released):
        for other in released[:i]:
            assert not np.array_equal(one, other)


def test_unprotected_release_is_the_same_twice(tokenizer):
    model = build(Unprotected, tokenizer)
    once, again = model.encode(TEXTS), model.encode(TEXTS)
    np.testing.assert_allclose(once, again, rtol=1e-5)


def test_trains_in_a_graph(tokenizer):
    model = build(RMAT, tokenizer)
    model.compile(run_eagerly=False)
    assert not model.jit_compile  # XLA cannot draw fresh noise
    history = model.fit(TEXTS, TARGETS, batch_size=6, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert model.encode(TEXTS[:5]).shape == (5, 3)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 12])
def test_xla_computes_the_same_gradients(tokenizer, rows):
    model = build(Unprotected, tokenizer, dropout=0.0)
    for layer in model.backbone._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    ids = model.encoder.word_pieces(tf.constant(TEXTS[:rows]))
    variables = [variable.value for variable in model.encoder.trainable_variables]

    def gradients(jit_compile):
        model.encoder.compile_backbone(jit_compile)
        with tf.GradientTape() as tape:
            released = model.release(ids, training=True)
            loss = tf.reduce_sum(released**2)
        zero = tf.UnconnectedGradients.ZERO
        found = tape.gradient(loss, variables, unconnected_gradients=zero)
        return released, [tf.convert_to_tensor(g) for g in found]

    released, plain = gradients(False)
    compiled_released, compiled = gradients(True)
    assert len(released) == rows
    np.testing.assert_allclose(released, compiled_released, rtol=1e-4, atol=1e-5)
    scale = max(float(tf.reduce_max(tf.abs(g))) for g in plain)
    for ours, theirs in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * scale)


@pytest.mark.slow
def test_trains_under_xla_and_remembers_it(tokenizer, tmp_path):
    model = build(RMAT, tokenizer, mask_rate=0.2)
    model.compile(jit_compile=True)
    history = model.fit(TEXTS, TARGETS, batch_size=5, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_compile_config()["jit_compile"]


def test_encode_keeps_the_order_of_the_texts(tokenizer):
    model = build(Unprotected, tokenizer)
    whole = model.encode(TEXTS[:6], batch_size=2)
    single = np.concatenate([model.encode([text]) for text in TEXTS[:6]])
    np.testing.assert_allclose(whole, single, rtol=1e-4, atol=1e-5)


def test_several_releases_differ(tokenizer):
    model = build(RMAT, tokenizer, scale="l1")
    released = model.encode(TEXTS[:5], releases=3)
    assert released.shape == (5, 3, 3)
    assert len(np.unique(released[:, :, 0], axis=1)[0]) == 3


def test_adversary_learns_while_the_encoder_stands_still(tokenizer):
    """Weight 0: the task alone moves the encoder, the adversary trains all the same."""
    model = build(ADS, tokenizer)
    compiled(model, keras.optimizers.SGD(0.0), adversary_weight=0.0)
    encoder = [v.numpy() for v in model.encoder.trainable_variables]
    adversary = [v.numpy() for v in model.adversary_head.trainable_variables]
    model.fit(TEXTS, TARGETS, batch_size=6, verbose=0)
    for before, after in zip(encoder, model.encoder.trainable_variables, strict=True):
        np.testing.assert_array_equal(before, after.numpy())
    moved = model.adversary_head.trainable_variables
    assert all(
        not np.array_equal(a, b.numpy()) for a, b in zip(adversary, moved, strict=True)
    )


@pytest.mark.parametrize("method", [RMAT, ADS, CAPE])
def test_encoder_moves_against_the_adversary(method, tokenizer):
    """A small step on the penalty alone, nothing else being random, leaves it worse."""
    settings = {"scale": "l1", "cap_adversary": False} if method is RMAT else {}
    keras.utils.set_random_seed(3)
    model = method(
        make_backbone(dropout=0.0),
        tokenizer,
        num_classes=3,
        num_private_classes=2,
        dropout=0.0,
        **settings,
    )
    model.encoder.noise = None
    compiled(
        model,
        keras.optimizers.SGD(1e-3),
        keras.optimizers.SGD(0.0),
        class_weights={"label": [0, 0, 0]},
    )
    ids = model.encoder.word_pieces(tf.constant(TEXTS))

    def unsure():
        logits = model.adversary_head(model.release(ids))
        if method is ADS:
            log_p = tf.nn.log_softmax(logits)
            return -float(tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, axis=1)))
        return float(
            tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(PRIVATE, logits)
            )
        )

    before = unsure()
    model.train_step((ids, {name: tf.constant(v) for name, v in TARGETS.items()}))
    assert unsure() > before


def alike(rows):
    """Weights of a batch on one device, none of them given."""
    return BatchWeights(rows, None)


def test_capped_adversary_is_left_alone_at_chance(tokenizer):
    model = build(RMAT, tokenizer, scale="l1", dropout=0.0)
    compiled(model, adversary_weight=1.0)
    logits = tf.constant([[9.0, -9.0]])
    model.adversary_head = lambda released, training: logits
    targets = {"private": tf.constant([1])}
    penalty, (_, loss) = model._penalty(tf.zeros([1, 3]), targets, alike(logits), 1.0)
    assert loss > 10
    assert float(penalty) == pytest.approx(-np.log(2))


def test_data_sets_are_accepted(tokenizer):
    model = build(RMAT, tokenizer)
    compiled(model)
    data = tf.data.Dataset.from_tensor_slices((TEXTS, TARGETS))
    model.fit(data.batch(6), validation_data=data.batch(8), verbose=0)
    assert model.predict(data.batch(6).map(lambda x, _: x), verbose=0).shape == (12, 3)
    with pytest.raises(InputError, match="batch"):
        model.fit(data, verbose=0)


def test_string_tensors_are_accepted(tokenizer):
    model = build(RMAT, tokenizer)
    assert model(tf.constant(TEXTS[:4])).shape == (4, 3)


def test_callbacks_see_every_epoch_and_training_goes_on(tokenizer, tmp_path):
    class Kill(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    def train(*callbacks):
        model = build(RMAT, tokenizer)
        compiled(model)
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
        history = model.fit(
            TEXTS,
            TARGETS,
            batch_size=6,
            epochs=4,
            callbacks=[
                backup,
                keras.callbacks.TerminateOnNaN(),
                *callbacks,
            ],
            verbose=0,
        )
        return model, history

    with pytest.raises(KeyboardInterrupt):
        train(Kill())
    model, history = train()
    assert history.epoch == [2, 3]
    assert model.optimizer.iterations.numpy() == 8
    assert model.adversary_optimizer.iterations.numpy() == 8


def test_adversary_weight_may_follow_a_schedule(tokenizer, tmp_path):
    model = build(RMAT, tokenizer)
    schedule = keras.optimizers.schedules.PolynomialDecay(0.0, 10, 5.0)
    compiled(model, adversary_weight=schedule)
    model.fit(TEXTS, TARGETS, batch_size=6, verbose=0)
    assert float(model._strength()) == pytest.approx(1.0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert float(loaded._strength()) == pytest.approx(1.0)


def test_mixed_precision_releases_float32(tokenizer):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = build(RMAT, tokenizer)
        compiled(model)
        model.fit(TEXTS, TARGETS, batch_size=6, verbose=0)
    finally:
        keras.config.set_dtype_policy("float32")
    assert model.encode(TEXTS[:3]).dtype == np.float32


BAD = {
    "epsilon-zero": ({"epsilon": 0.0}, "epsilon"),
    "epsilon-nan": ({"epsilon": float("nan")}, "epsilon"),
    "both": ({"epsilon": 1.0, "nominal_epsilon": 1.0}, "one of them"),
    "mask-rate": ({"mask_rate": 1.0}, "mask_rate"),
    "scale": ({"scale": "l2"}, "scale"),
    "one-class": ({"num_classes": 1}, "num_classes"),
    "no-private": ({"num_private_classes": None}, "num_private_classes"),
    "dimension": ({"dimension": 0}, "dimension"),
    "code-of-one": ({"scale": "code", "dimension": 1}, "dimension"),
    "mask-rate-text": ({"mask_rate": "0.1"}, "number for mask_rate"),
    "mask-rate-none": ({"mask_rate": None}, "number for mask_rate"),
    "dropout-large": ({"dropout": 1.5}, "dropout=1.5"),
    "dropout-all": ({"dropout": 1.0, "scale": "l1"}, "dropout=1.0"),
    "dropout-text": ({"dropout": "some"}, "number for dropout"),
    "seed-negative": ({"seed": -1}, "seed=-1"),
    "seed-broken": ({"seed": 1.5}, "whole number for seed"),
    "train-backbone": ({"train_backbone": "no"}, "True or False"),
}


@pytest.mark.parametrize(("settings", "named"), BAD.values(), ids=BAD)
def test_bad_settings_are_refused(settings, named, tokenizer):
    with pytest.raises(InputError, match=named):
        build(RMAT, tokenizer, **settings)


@pytest.mark.parametrize("method", [RMAT, DPNR, ADS, Unprotected])
def test_a_dimension_of_zero_is_no_default(method, tokenizer):
    with pytest.raises(InputError, match="dimension=0"):
        build(method, tokenizer, dimension=0)


@pytest.mark.parametrize("method", [RMAT, DPNR, ADS, CAPE, Unprotected])
def test_what_is_no_bert_is_refused(method, tokenizer):
    settings = {"nominal_epsilon": 1.0} if method is RMAT else {}
    with pytest.raises(InputError, match="BertBackbone"):
        method(
            keras.Sequential(),
            tokenizer,
            num_classes=2,
            num_private_classes=2,
            **settings,
        )


def test_layers_behind_a_release_are_a_tuple_of_widths(tokenizer):
    for units, words in ((5, "tuple of widths"), (("a",), "whole number")):
        with pytest.raises(InputError, match=words):
            build(CAPE, tokenizer, post_units=units)


@pytest.mark.parametrize(
    "given", [(TEXTS,), (TEXTS, TARGETS, None, None), TEXTS, "text", 5], ids=str
)
def test_validation_data_of_other_parts_is_refused(given, tokenizer):
    model = compiled(build(RMAT, tokenizer))
    with pytest.raises(InputError, match="validation_data=") as refused:
        model.fit(TEXTS, TARGETS, validation_data=given, verbose=0)
    assert "love" not in str(refused.value)


@pytest.mark.parametrize("given", [[1, 2], {"label": 3}, {"label": "abc"}], ids=str)
def test_class_weights_of_another_kind_are_refused(given, tokenizer):
    with pytest.raises(InputError, match=r"class_weights|Expected a number"):
        compiled(build(RMAT, tokenizer), class_weights=given)


def test_a_batch_size_of_zero_is_refused_by_predict(tokenizer):
    with pytest.raises(InputError, match="batch_size=0"):
        build(RMAT, tokenizer).predict(TEXTS, batch_size=0, verbose=0)


def _npz(**arrays):
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    return whole.getvalue()


def _transposed(content):
    arrays = dict(np.load(io.BytesIO(content)))
    return _npz(**{name: array.T for name, array in arrays.items()})


def _flipped(content):
    changed = bytearray(content)
    changed[len(content) // 2] ^= 0xFF
    return bytes(changed)


DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "junk": lambda content: b"damaged",
    "empty": lambda content: b"",
    "flipped": _flipped,
    "transposed": _transposed,
    "fewer": lambda content: _npz(a=np.zeros(3)),
    "objects": lambda content: _npz(a=np.array([object()], dtype=object)),
    "texts": lambda content: _npz(a=np.array(["a"])),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_weights_of_a_preset_are_one_line(damage, tokenizer, tmp_path):
    build(RMAT, tokenizer).save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "tfpriv.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"tfpriv\.npz") as refused:
        RMAT.from_preset(tmp_path / "preset")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"class": 5},
        {"config": [1]},
        {"config": {}},
        {"config": {"num_classes": 2, "num_private_classes": 2, "unknown": 1}},
    ],
    ids=str,
)
def test_a_damaged_description_of_a_preset_is_one_line(change, tokenizer, tmp_path):
    build(RMAT, tokenizer).save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "tfpriv.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=r"tfpriv\.json"):
        RMAT.from_preset(tmp_path / "preset")


def test_a_full_folder_for_temporary_files_damages_no_preset(
    tokenizer, tmp_path, monkeypatch
):
    build(RMAT, tokenizer).save_to_preset(tmp_path / "preset")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("keras_nlp.models.BertBackbone.from_preset", full)
    with pytest.raises(OSError, match="full disk"):
        RMAT.from_preset(tmp_path / "preset")


BAD_DATA = {
    "one-text": ("a text", TARGETS, "list of texts"),
    "no-text": ([], TARGETS, "at least one"),
    "number": ([1, 2], TARGETS, "row 0"),
    "short": (TEXTS[:3], TARGETS, "3 targets"),
    "range": (TEXTS, {**TARGETS, "label": LABELS + 1}, "row 0"),
    "missing": (TEXTS, {"label": LABELS}, "private"),
    "strings": (TEXTS, {**TARGETS, "label": ["x"] * 12}, "whole numbers"),
    "nan": (TEXTS, {**TARGETS, "label": [float("nan")] * 12}, "whole numbers"),
}


@pytest.mark.parametrize(("texts", "targets", "named"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_is_refused(texts, targets, named, tokenizer):
    model = build(RMAT, tokenizer)
    compiled(model)
    with pytest.raises(InputError, match=named):
        model.fit(texts, targets, verbose=0)


def test_preset_folder_without_a_file_is_named(tmp_path, tokenizer):
    with pytest.raises(InputError, match="none there"):
        RMAT.from_preset(tmp_path / "nowhere", num_classes=2, num_private_classes=2)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"model\.safetensors"):
        RMAT.from_preset(tmp_path, num_classes=2, num_private_classes=2)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"vocab\.txt"):
        RMAT.from_preset(tmp_path, num_classes=2, num_private_classes=2)


def test_certified_epsilon_is_the_one_asked_for(tokenizer):
    for settings in ({"scale": "l1"}, {"scale": "code"}, {"scale": "min_max"}):
        model = build(RMAT, tokenizer, epsilon=2.5, **settings)
        certified = model.certificate().record_epsilon
        assert 2.5 * 0.999 < certified <= 2.5


def test_nominal_epsilon_is_only_a_claim(tokenizer):
    model = build(RMAT, tokenizer, scale="min_max", nominal_epsilon=1.0)
    certificate = model.certificate()
    assert certificate.claimed_epsilon < 1
    assert certificate.record_epsilon >= 16  # the width of the backbone


def test_statement_says_what_is_not_covered(tokenizer):
    model = build(RMAT, tokenizer)
    assert "weights" not in str(model.privacy_statement())
    model.trained_steps.assign(1)
    text = str(model.privacy_statement())
    for word in ("weights", "label", "releases"):
        assert word in text
    assert "NO privacy guarantee" in str(build(ADS, tokenizer).privacy_statement())


def test_statement_says_that_the_number_of_labels_shows(tokenizer, tmp_path):
    """It is the dimension of a code, read off the training records or declared."""

    def statement(trained=1, **settings):
        model = build(RMAT, tokenizer, **settings)
        model.trained_steps.assign(trained)
        return model.privacy_statement()

    assert any("number of labels" in line for line in statement().not_covered)
    for hidden in (statement(0), statement(dimension=5)):
        assert "number of labels" not in str(hidden)
    declared = statement(public_labels=True)
    assert not any("number of labels" in line for line in declared.not_covered)
    assert any("number of labels" in line for line in declared.public)
    # Declared once, the model remembers.
    build(RMAT, tokenizer, public_labels=True).save_to_preset(tmp_path / "preset")
    assert RMAT.from_preset(tmp_path / "preset").public_labels


def test_heads_learn_the_expected_loss_of_a_released_code(tokenizer):
    """The mean loss of drawn codes is what `_loss` computes without a draw."""
    model = compiled(build(RMAT, tokenizer, epsilon=1.0, mask_rate=0.0))
    ids = model.encoder.word_pieces(tf.constant(TEXTS[:4]))
    targets = {"private": tf.constant(PRIVATE[:4])}
    # Saturated, so that a code drawn from the softmax is the arg-max.
    dense = model.encoder.projection[-1]
    dense.kernel.assign(1e4 * dense.kernel)
    codes = model.encoder.code_probabilities(ids)
    likely = model.encoder.responded(codes)
    np.testing.assert_allclose(tf.reduce_sum(likely, 1), 1, rtol=1e-5)
    head = model.adversary_head
    _, loss = model._loss("private", head, codes, targets, alike(codes), training=True)
    many = tf.repeat(ids, 500, axis=0)
    repeated = {"private": tf.repeat(targets["private"], 500)}
    released = model.release(many)
    _, drawn = model._loss(
        "private", head, released, repeated, alike(released), training=False
    )
    # Losses lie within [0, 3]: 2,000 draws are off by .2 with probability below 1e-9.
    assert float(loss) == pytest.approx(float(drawn), abs=0.2)


def test_an_encoder_of_one_code_finds_its_way_back(tokenizer):
    """Where every text has code 0, another class pulls as hard as in a classifier."""
    model = compiled(build(RMAT, tokenizer, epsilon=4.0))
    logits = tf.Variable([[8.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        codes = tf.nn.softmax(logits)
        _, loss = model._loss(
            "label",
            model.task_head,
            codes,
            {"label": tf.constant([1])},
            alike(logits),
            training=True,
        )
    assert float(tape.gradient(loss, logits)[0, 1]) < -0.9


def test_codes_begin_as_the_classes(tokenizer):
    model = build(RMAT, tokenizer, scale="code", epsilon=2.0, dimension=5)
    assert np.argmax(model.task_head(np.eye(5)), axis=1).tolist() == [0, 1, 2, 0, 1]


def assert_nobody_is_moved(model):
    """Bit for bit: what goes into the noise comes from one text."""

    widths = []
    packed = model.encoder._packed

    def watched(*args, **kwargs):
        inputs = packed(*args, **kwargs)
        widths.append(inputs["token_ids"].shape[1])
        return inputs

    model.encoder._packed = watched

    def vectors(other):
        ids = model.encoder.word_pieces(tf.constant([*TEXTS[:7], other]))
        return model.encoder._before_noise(ids, None).numpy()[:7]

    np.testing.assert_array_equal(vectors("she"), vectors("the unbelievable " * 30))
    # In a BERT as small as this one another width need not round otherwise.
    assert len(set(widths)) == 1


def under(policy, tokenizer):
    keras.config.set_dtype_policy(policy)
    try:
        return build(RMAT, tokenizer, nominal_epsilon=1.0, mask_rate=0.0)
    finally:
        keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_no_text_moves_the_vector_of_another(policy, tokenizer):
    assert_nobody_is_moved(under(policy, tokenizer))


def test_rows_as_wide_as_the_longest_are_found_out(tokenizer, monkeypatch):
    model = under("mixed_bfloat16", tokenizer)
    packed = model.encoder._packed
    monkeypatch.setattr(
        model.encoder,
        "_packed",
        lambda ids, present, short: packed(ids, present, short=True),
    )
    with pytest.raises(AssertionError):
        assert_nobody_is_moved(model)


def test_texts_are_encoded_with_their_neighbours_whatever_they_are(
    tokenizer, monkeypatch
):
    model = build(Unprotected, tokenizer)
    seen = []

    def release(ids):
        seen.append(np.count_nonzero(ids, axis=1).tolist())
        return model.encoder(ids)

    monkeypatch.setattr(model, "_release_function", lambda: release)
    model.encode(["she", "the door " * 9, "a"], batch_size=2)
    assert seen == [[1, 18], [1]]


def test_a_backbone_of_unknown_past_counts_as_trained(tokenizer, tmp_path):
    model = build(RMAT, tokenizer, public_backbone=False)
    assert "weights" in str(model.privacy_statement())
    model = build(RMAT, tokenizer)
    model.trained_steps.assign(3)
    model.save_to_preset(tmp_path / "preset")
    assert (tmp_path / "preset").stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="epsilon"):
        RMAT.from_preset(tmp_path / "preset", epsilon=2.0)
    loaded = RMAT.from_preset(tmp_path / "preset")
    assert "weights" in str(loaded.privacy_statement())
    loaded.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.public_backbone
    assert "weights" in str(again.privacy_statement())


def test_a_longer_window_than_the_backbone_has_is_refused(tokenizer):
    with pytest.raises(InputError, match="max_length <= 32"):
        build(RMAT, tokenizer, max_length=33)


def test_a_code_with_layers_behind_it_is_refused(tokenizer):
    with pytest.raises(InputError, match="post_units"):
        build(CAPE, tokenizer, scale="code", epsilon=1.0)


@pytest.mark.parametrize("weights", [[1.0], [float("nan")] * 12, ["a"] * 12, [-1] * 12])
def test_bad_sample_weights_are_refused(weights, tokenizer):
    model = compiled(build(RMAT, tokenizer))
    with pytest.raises(InputError, match="sample weights"):
        model.fit(TEXTS, TARGETS, sample_weight=weights, verbose=0)
