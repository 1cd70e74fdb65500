"""The networks that a run left behind are the ones that it trained."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seqgan.small_release import EPSILON, LABELS, SETTINGS, TEXTS, small_world
from tests.seqgan.test_published import TINY
from tfpriv._errors import InputError
from tfpriv.attacks.class_discriminators import class_discriminators, real_logits
from tfpriv.datasets import TextDataset
from tfpriv.seqgan.dp_seqgan import DPSeqGAN
from tfpriv.seqgan.run_store import RunStore

ASKED = ["subscribe to my channel", "quite another text", ""]


@pytest.fixture(scope="module")
def world():
    with small_world():
        yield


def fit(model, folder):
    data = TextDataset(tuple(TEXTS), tuple(LABELS))
    return model.fit(data, run_dir=folder, report=lambda stage, done: None)


@pytest.fixture(scope="module")
def guaranteed(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model = DPSeqGAN(
        EPSILON, discriminator_steps=2, settings=SETTINGS, labels=["ham", "spam"]
    )
    return fit(model, folder), folder


@pytest.fixture(scope="module")
def plain(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return fit(DPSeqGAN.seqgan(published=TINY), folder), folder


def test_a_guaranteed_run_s_networks_are_found_again(guaranteed, tmp_path):
    model, folder = guaranteed
    model.save(tmp_path / "model")
    for one in (model, DPSeqGAN.load(tmp_path / "model")):
        found = class_discriminators(one, folder)
        assert [target.label for target in found] == ["ham", "spam"]
    state = RunStore(folder).arrays("class-1")
    before = RunStore(folder).arrays("class-1-pretrained")
    weights = found[1].discriminator.get_weights()
    for i, weight in enumerate(weights):
        assert (weight == state[f"discriminator/variable_{i:03d}"]).all()
        assert (found[1].start[i] == before[f"discriminator/{i}"]).all()
    assert not found[1].discriminator.embedding.trainable
    fitted = model.method.classes[1].gan.generator
    ids = found[1].encode(ASKED)
    assert ids.shape == (3, SETTINGS.max_length)
    again = found[1].generator.log_probs(ids)
    assert again == pytest.approx(fitted.log_probs(ids), abs=1e-6)


def test_a_published_run_s_networks_are_found_again(plain):
    model, folder = plain
    found = class_discriminators(model, folder)
    assert [target.label for target in found] == ["ham", "spam"]
    assert found[0].generator is model.method.generators[0]
    assert found[0].start is None
    logits = found[0].logits(ASKED)
    assert logits.shape == found[0].log_likelihoods(ASKED).shape == (3,)
    assert np.isfinite(logits).all()
    shown = np.asarray(found[0].discriminator.real_probability(found[0].encode(ASKED)))
    assert 1 / (1 + np.exp(-logits)) == pytest.approx(shown, abs=1e-6)


def test_classes_without_networks_are_left_out(world, tmp_path):
    model = DPSeqGAN(
        EPSILON, discriminator_steps=0, settings=SETTINGS, labels=["ham", "spam"]
    )
    fit(model, tmp_path)
    assert class_discriminators(model, tmp_path) == []


def test_another_run_s_folder_is_refused(guaranteed, plain, tmp_path):
    with pytest.raises(InputError, match="other settings"):
        class_discriminators(guaranteed[0], plain[1])
    with pytest.raises(InputError, match="fitted model"):
        class_discriminators(DPSeqGAN.seqgan(), tmp_path)
    with pytest.raises(InputError, match="folder of a run"):
        class_discriminators(plain[0], tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_chunks_change_no_logit(plain):
    target = class_discriminators(*plain)[0]
    ids = target.encode(TEXTS * 8)
    assert len(ids) > 256
    once = real_logits(target.discriminator, ids[:42])
    assert real_logits(target.discriminator, ids)[:42] == pytest.approx(once, abs=1e-6)
