"""An exported DP-SeqGAN draws what the model draws, from a graph alone."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

import tfpriv
from tests.seqgan.small_release import LABELS, TEXTS, small_world
from tests.seqgan.test_published import TINY
from tests.serving.models import load
from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset
from tfpriv.seqgan.generated_texts import GeneratedTexts
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.guaranteed import FittedClass
from tfpriv.seqgan.word_ids import WordIds
from tfpriv.serving import export
from tfpriv.serving.text_writer import TextWriter
from tfpriv.serving.tilted_graph import TiltedGraph, fresh_uniforms
from tfpriv.text import Vocabulary
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS, Tokenizer
from tfpriv.text.vocabulary import PAD, START, UNK

# Graphs of a whole generator: a minute in all.
pytestmark = pytest.mark.slow

DATA = TextDataset(tuple(TEXTS), labels=tuple(LABELS), label_column="CLASS")
COUNT, DRAWS = 1500, 100_000


def apart(count, others):
    """Hoeffding: shares of two samples (or of one and of the law) differ by more with
    a probability below 1e-12."""
    return np.sqrt(np.log(2e12) * (1 / count + 1 / others) / 2)


@pytest.fixture(scope="module")
def model():
    with small_world():
        model = tfpriv.DPSeqGAN(30.0, labels=["ham", "spam"], discriminator_steps=0)
        return model.fit(DATA)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    return export(model, tmp_path_factory.mktemp("generator") / "synthetic")


@pytest.fixture(scope="module")
def generate(folder):
    function = load(folder)["generate"]

    def call(count, label="ham", temperature=1.0):
        inputs = {"count": count, "label": label, "temperature": temperature}
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        return [text.decode() for text in function(**tensors)["text"].numpy()]

    return call


# --- The law of what is drawn ------------------------------------------------


def shares(rows, size):
    """Of the texts that have a pair of neighbours, or a length: one vector."""
    pairs = np.zeros((size, size))
    lengths = np.zeros(100)
    for row in rows:
        row = [START, *(int(i) for i in row)]
        for pair in set(itertools.pairwise(row)):
            pairs[pair] += 1
        lengths[len(row)] += 1
    return np.concatenate([pairs.ravel(), lengths]) / len(rows)


def in_graph(model, number, temperature):
    graph = TiltedGraph(model.method.seed_model, number)
    run = tf.function(graph.sample)
    ids = run(tf.constant(COUNT), tf.constant(temperature)).numpy()
    return [[i for i in row if i != PAD] for row in ids]


def check_same_law(model, number, temperature=1.0):
    seeds = model.method.seed_model
    expected = seeds.sample(number, COUNT, np.random.default_rng(1))
    size = len(seeds.prior.vocabulary)
    found = shares(in_graph(model, number, temperature), size)
    assert np.abs(found - shares(expected, size)).max() < apart(COUNT, COUNT)


@pytest.mark.parametrize("number", [0, 1])
def test_texts_have_the_law_of_the_seed_model(model, number):
    check_same_law(model, number)


def test_another_law_is_noticed(model):
    with pytest.raises(AssertionError):
        check_same_law(model, 0, temperature=0.05)
    other = TiltedGraph(model.method.seed_model, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.serving.test_generator.TiltedGraph", lambda *_: other)
        with pytest.raises(AssertionError):
            check_same_law(model, 0)


def next_tokens(model, before, previous):
    """The law of a token, exactly, and the shares of many draws in the graph."""
    tilted = model.method.seed_model.language_model(0)
    pair_mass, pair_ids, pair_cdf, prior_mass, prior_ids, prior_cdf = tilted._context(
        before, previous
    )
    law = (1 - pair_mass) * (1 - prior_mass) * tilted.frequencies
    for ids, sums, mass in (
        (pair_ids, pair_cdf, pair_mass),
        (prior_ids, prior_cdf, (1 - pair_mass) * prior_mass),
    ):
        if ids is not None and len(ids):
            np.add.at(law, ids, mass * np.diff(sums, prepend=0) / sums[-1])
    graph = TiltedGraph(model.method.seed_model, 0)

    @tf.function
    def draw():
        rows = (graph._pairs, graph._bigram, graph._trigram, graph._single)
        tables = [row.at(tf.constant(1.0, tf.float64)) for row in rows]
        context = (tf.fill([DRAWS], before), tf.fill([DRAWS], previous))
        return graph._next(*context, fresh_uniforms([DRAWS, 3]), tables)

    return law, np.bincount(draw(), minlength=len(law)) / DRAWS


def test_every_token_has_the_probability_that_the_model_gives_it(model):
    words = range(UNK + 1, UNK + 5)
    contexts = [(START, START), *((START, word) for word in words), (UNK + 1, UNK + 2)]
    laws = []
    for before, previous in contexts:
        law, found = next_tokens(model, before, previous)
        assert law.sum() == pytest.approx(1)
        assert np.abs(law - found).max() < apart(DRAWS, np.inf)
        laws.append(law)
    # Contexts have laws of their own: another's would be noticed.
    assert np.abs(laws[0] - laws[1]).max() > 2 * apart(DRAWS, np.inf)


def test_less_temperature_draws_fewer_words(model):
    distinct = [len(np.unique(np.concatenate(in_graph(model, 0, t)))) for t in (0.1, 3)]
    assert distinct[0] < distinct[1]


# --- Text --------------------------------------------------------------------


def written(vocabulary, rows):
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = vocabulary.ids(row)
    writer = TextWriter(vocabulary.tokens)
    lengths = tf.constant([len(row) for row in rows])
    found = tf.function(writer.write)(tf.constant(ids), lengths).numpy()
    return [text.decode() for text in found]


def test_text_is_written_as_the_tokenizer_does():
    words = ["the", "i", "i'm", "song", "7up"]
    tokens = [*KINDS, *MARKS, *SMILEYS, *words]
    random = np.random.default_rng(0)
    rows = [list(random.choice(tokens, random.integers(1, 9))) for _ in range(500)]
    rows += [["i", "like", "it", "."], ['"', "the", "song", '"', "!"], []]
    vocabulary = Vocabulary([*tokens, "like", "it"])
    texts = written(vocabulary, rows)
    tokenizer = Tokenizer()
    back = [
        tokenizer.tokenize(text) == row for text, row in zip(texts, rows, strict=True)
    ]
    assert np.mean(back) > 0.99  # more than two marks in a row are judged by twos
    assert texts[-3:] == ["I like it.", '"The song"!', ""]
    fixed = [row for row in rows if not {*KINDS, "!!"} & set(row)]
    same = [
        text == tokenizer.detokenize(row)
        for text, row in zip(written(vocabulary, fixed), fixed, strict=True)
    ]
    assert np.mean(same) > 0.98


# --- The exported model ------------------------------------------------------


def test_generate_gives_texts_of_a_label(model, generate):
    words = {"ham": set(), "spam": set()}
    for label, found in words.items():
        texts = generate(200, label)
        assert len(texts) == 200
        assert all(texts)
        for text in texts:
            found.update(Tokenizer().tokenize(text))
    known = set(model.method.prior.vocabulary.tokens)
    assert words["ham"] | words["spam"] <= known
    assert words["ham"] != words["spam"]


def test_every_call_draws_anew(generate, folder):
    tf.random.set_seed(1)
    first = generate(50)
    tf.random.set_seed(1)
    assert generate(50) != first


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((5, "nobody"), "Expected a label of ham, spam"),
        ((0, "ham"), "count"),
        ((-1, "ham"), "count"),
        ((5000, "ham"), "count"),
        ((5, "ham", 0.0), "temperature"),
        ((5, "ham", float("nan")), "temperature"),
        ((5, "ham", float("inf")), "temperature"),
    ],
)
def test_what_cannot_be_drawn_is_refused(generate, inputs, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        generate(*inputs)


def test_statement_and_labels_travel_along(model, folder):
    extra = folder / "assets.extra"
    statement = model.privacy_statement().to_json()
    assert json.loads((extra / "privacy.json").read_text()) == statement
    assert json.loads((extra / "labels.json").read_text()) == ["ham", "spam"]
    told = json.loads((extra / "serving.json").read_text())["signatures"]["generate"]
    assert told == {
        "inputs": {
            "count": ["int32", []],
            "label": ["string", []],
            "temperature": ["float32", []],
        },
        "outputs": {"text": ["string", [None]]},
    }


def test_a_class_that_chose_its_network_draws_from_it(model, tmp_path):
    vocabulary = model.method.prior.vocabulary
    words = WordIds(range(UNK + 1, UNK + 7))
    network = Generator(len(words), 5, 4, 4, forbidden_ids=(PAD, START, UNK), seed=0)
    kept = model.method.classes[0]
    model.method.classes[0] = FittedClass(
        GeneratedTexts(words, network), {}, "adversarial"
    )
    try:
        folder = export(model, tmp_path / "mixed")
    finally:
        model.method.classes[0] = kept
    texts = load(folder)["generate"](
        count=tf.constant(100), label=tf.constant("ham"), temperature=tf.constant(1.0)
    )["text"].numpy()
    found = {t for text in texts for t in Tokenizer().tokenize(text.decode())}
    assert found
    assert found <= {vocabulary.tokens[i] for i in words.tokens}


def test_networks_of_the_control_draw_as_the_model_does(tmp_path):
    with small_world():
        model = tfpriv.DPSeqGAN.seqgan(published=TINY).fit(DATA)
    folder = export(model, tmp_path / "control")
    assert (folder / "saved_model.pb").stat().st_mode & 0o077 == 0  # not private
    generate = load(folder)["generate"]
    texts = generate(
        count=tf.constant(1000), label=tf.constant("ham"), temperature=tf.constant(1.0)
    )["text"].numpy()
    number = model.method.labels.index("ham")
    expected = model.method.sample(number, 1000, seed=0)
    tokens = model.method.vocabulary.tokens
    difference = np.abs(counted(expected, tokens) - counted(texts, tokens))
    assert difference.max() < apart(1000, 1000)


def counted(texts, tokens):
    """Share of the texts that begin with each token."""
    first = [
        Tokenizer().tokenize(text if isinstance(text, str) else text.decode())[:1]
        for text in texts
    ]
    return np.array([np.mean([token in found for found in first]) for token in tokens])


def test_a_generator_has_no_parts_and_must_be_fitted(model, tmp_path):
    for given, settings in (
        (model, {"part": "client"}),
        (model, {"label_names": ["a", "b"]}),
        (tfpriv.DPSeqGAN(), {}),
    ):
        with pytest.raises(InputError):
            export(given, tmp_path / "m", **settings)
    assert list(tmp_path.iterdir()) == []
