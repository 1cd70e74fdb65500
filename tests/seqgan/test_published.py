import dataclasses

import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import Gaussian, NonPrivate, PrivacyStatement
from tfpriv.accounting.composition import is_private
from tfpriv.seqgan.published import PublishedMethod, PublishedSettings
from tfpriv.seqgan.run_store import RunStore

TEXTS = ["", "   ", "nice video"] + ["win a free phone", "click to win"] * 6
LABELS = ["few"] * 3 + ["spam"] * 12
TINY = PublishedSettings(
    max_length=4,
    embedding_dim=4,
    units=5,
    mle_epochs=2,
    batch_size=4,
    discriminator_embedding_dim=3,
    discriminator_widths=(1, 2),
    discriminator_filters=3,
    discriminator_steps=6,
    rounds=2,
    d_steps=2,
    rollouts=2,
)


class Killed(Exception):
    pass


def fitted(folder, *, private=True, settings=TINY, report=lambda stage, done: None):
    method = PublishedMethod(settings, private=private, delta=1e-5, seed=3)
    ledger = method.fit(TEXTS, LABELS, store=RunStore(folder), report=report)
    return method, ledger


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("paper")


@pytest.fixture(scope="module")
def stages():
    """The stages of a run that was killed once: before the kill, and after it."""
    return [], []


@pytest.fixture(scope="module")
def paper(folder, stages):
    before, after = stages

    def kill(stage, done):
        before.append(stage)
        if before.count("spam: adversarial") == 2:
            raise Killed

    with pytest.raises(Killed):
        fitted(folder, report=kill)
    return fitted(folder, report=lambda stage, done: after.append(stage))


def statement(method, ledger):
    return PrivacyStatement(method.reads(ledger), delta=1e-5)


def test_the_default_is_the_published_noise_and_the_inferred_step_count():
    settings = PublishedSettings()
    assert (settings.noise_multiplier, settings.l2_norm_clip) == (0.001, 1.0)
    assert settings.discriminator_steps == 727


def test_paper_mode_states_the_published_epsilon_for_the_discriminator_alone(paper):
    method, ledger = paper
    # 727 charges a class as the full schedule makes them, merged as the reads do it.
    full = [
        dataclasses.replace(read, event=Gaussian(0.001, 727))
        if read.name == "discriminator"
        else read
        for read in method.reads(ledger)
    ]
    text = str(PrivacyStatement(full, delta=1e-5))
    assert "NO privacy guarantee" in text
    assert "about 4e8 (363,630,220) at delta 1e-05 for this alone" in text
    assert "learn by heart" in text


def test_every_private_step_is_charged_and_replayed_ones_again(paper):
    method, ledger = paper
    events = {r.part: r.event for r in method.reads(ledger) if is_private(r.event)}
    # The last round was not saved before the kill: its two steps come twice.
    assert events == {"few": Gaussian(0.001, 6), "spam": Gaussian(0.001, 8)}


def test_a_killed_run_goes_on_from_where_it_was(paper, stages):
    assert set(stages[1]) == {"reading", "spam: adversarial", "done"}
    assert stages[1].count("spam: adversarial") == 1


@pytest.mark.parametrize("collapse", [True, False])
def test_a_generator_that_collapsed_is_named_and_after_a_restart_too(
    tmp_path, monkeypatch, collapse
):
    monkeypatch.setattr("tfpriv.seqgan.seqgan.has_collapsed", lambda *_, **__: collapse)
    expected = {"few": 1, "spam": 1} if collapse else {}
    for _ in range(2):
        method, _ = fitted(tmp_path, private=False)
        assert method.collapsed == expected


def test_whatever_reads_texts_without_noise_is_listed_as_not_covered(paper):
    method, ledger = paper
    result = statement(method, ledger).to_json()
    assert result["epsilon"] is None
    assert result["covers"] == []
    for name in ("vocabulary", "generator pre-training", "class sizes"):
        assert any(name in line for line in result["not_covered"])


def test_without_noise_the_discriminator_is_listed_too(tmp_path):
    method, ledger = fitted(
        tmp_path, private=False, settings=dataclasses.replace(TINY, rounds=0)
    )
    reads = [r for r in method.reads(ledger) if r.name == "discriminator"]
    assert [r.part for r in reads] == ["few", "spam"]
    assert all(r.event == NonPrivate() for r in reads)


def test_each_class_writes_with_words_of_the_texts_and_never_nothing(paper):
    method, _ = paper
    assert method.labels == ("few", "spam")
    assert method.class_sizes.tolist() == [3, 12]
    texts = method.sample(1, 40, seed=1)
    assert len(texts) == 40
    assert all(texts)
    known = {word for text in TEXTS for word in text.split()}
    assert {word for text in texts for word in text.lower().split()} <= known
    assert texts == method.sample(1, 40, seed=1)
    assert texts != method.sample(1, 40, seed=2)


def test_a_class_of_three_with_texts_without_tokens_is_written_too(paper):
    assert len(paper[0].sample(0, 5, seed=0)) == 5


def test_a_finished_run_is_not_trained_or_charged_again(paper, folder):
    method, ledger = paper
    charges = len(ledger.events())
    again, after = fitted(folder)
    assert len(after.events()) == charges
    assert again.sample(1, 5, seed=0) == method.sample(1, 5, seed=0)


def test_a_loaded_method_writes_what_the_saved_one_does(paper, tmp_path):
    method, _ = paper
    method.save(tmp_path)
    loaded = PublishedMethod(TINY, private=True, delta=1e-5, seed=3)
    loaded.load(tmp_path, method.labels)
    assert loaded.sample(1, 7, seed=4) == method.sample(1, 7, seed=4)
    assert loaded.class_sizes.tolist() == method.class_sizes.tolist()


def test_the_plan_shows_noise_on_the_discriminator_in_paper_mode_only():
    paper = {row["part"]: row for row in TINY.plan("paper")}
    plain = {row["part"]: row for row in TINY.plan("seqgan")}
    assert paper["discriminator"]["noise_multiplier"] == 0.001
    assert paper["discriminator"]["times"] == 6
    assert paper.keys() == plain.keys()
    assert all(row["noise_multiplier"] is None for row in plain.values())
    with pytest.raises(InputError, match="one of"):
        TINY.plan("guaranteed")


@pytest.mark.parametrize(
    "changed",
    [
        {"max_length": 0},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": float("nan")},
        {"discriminator_learning_rate": -1.0},
        {"discriminator_steps": 3},
    ],
)
def test_settings_that_cannot_be_used_are_refused(changed):
    with pytest.raises(InputError):
        dataclasses.replace(TINY, **changed)
