from __future__ import annotations

import importlib.resources
import json
import time

import numpy as np
import pytest

from tfpriv.text import LanguagePrior, Tokenizer, Vocabulary
from tfpriv.text.ngrams import id_stream
from tfpriv.text.prior import FLOOR
from tfpriv.text.vocabulary import END, START

TEXTS = ["the song is good", "the song is bad", "the song!", "i love the song"]
VOCABULARY = Vocabulary(["the", "song", "is", "good", "bad", "love", "<url>", "xyzzyq"])


@pytest.fixture(scope="module")
def small() -> LanguagePrior:
    return LanguagePrior.from_texts(TEXTS, VOCABULARY)


@pytest.fixture(scope="module")
def english() -> LanguagePrior:
    return LanguagePrior.load()


def words(prior, answer):
    ids, probabilities = answer
    tokens = [prior.vocabulary.tokens[i] for i in ids]
    return dict(zip(tokens, probabilities, strict=True))


def test_what_follows_is_counted_with_starts_and_ends(small):
    index = VOCABULARY.index
    assert words(small, small.following(START)) == {"the": 1.0}
    assert words(small, small.following(index["song"])) == {
        "<end>": pytest.approx(1 / 3),
        "is": pytest.approx(2 / 3),
    }
    both = small.following2(index["song"], index["is"])
    assert words(small, both) == {"good": 0.5, "bad": 0.5}
    assert words(small, small.following2(START, index["the"])) == {"song": 1.0}


def test_what_was_never_seen_has_no_continuation(small):
    index = VOCABULARY.index
    for ids, probabilities in (
        small.following(END),
        small.following(index["xyzzyq"]),
        small.following2(index["good"], index["bad"]),
    ):
        assert ids.size == probabilities.size == 0


def test_the_unigram_is_a_floored_distribution_without_special_tokens(small):
    unigram = small.unigram
    assert unigram.shape == (len(VOCABULARY),)
    assert unigram.sum() == pytest.approx(1)
    assert (unigram[:4] == 0).all()
    assert unigram[4:].min() >= FLOOR * 0.99
    # Neither source knows the last token; no word list knows what a link is.
    assert unigram[VOCABULARY.index["xyzzyq"]] < 2 * FLOOR
    assert unigram[VOCABULARY.index["<url>"]] < 2 * FLOOR


def test_the_unigram_is_half_the_texts_and_half_the_language(small):
    index = VOCABULARY.index
    of_texts = 4 / 12  # "the" among the tokens that the vocabulary knows
    assert of_texts / 2 < small.unigram[index["the"]] < of_texts / 2 + 0.5
    # "good" and "bad" are equally frequent in the texts and not in the language.
    assert small.unigram[index["good"]] > 1.1 * small.unigram[index["bad"]]


def test_rare_trigrams_can_be_left_out():
    prior = LanguagePrior.from_texts(TEXTS, VOCABULARY, min_trigram_count=2)
    index = VOCABULARY.index
    assert prior.following2(index["song"], index["is"])[0].size == 0
    assert prior.following2(START, index["the"])[0].size == 1


def test_a_saved_prior_comes_back_whole(small, tmp_path):
    path = tmp_path / "prior.npz"
    small.save(path)
    again = LanguagePrior.load(path)
    assert again.vocabulary.tokens == VOCABULARY.tokens
    np.testing.assert_allclose(again.unigram, small.unigram, rtol=1e-6)
    for name in ("bigram", "trigram"):
        for field in ("contexts", "starts", "tokens", "counts"):
            expected = getattr(getattr(small, name), field)
            np.testing.assert_array_equal(
                getattr(getattr(again, name), field), expected
            )
    assert again.unigram.sum() == pytest.approx(1, abs=1e-12)


def test_a_file_that_is_no_prior_is_refused_in_one_line(tmp_path):
    path = tmp_path / "prior.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"^Expected a prior .*make_prior") as caught:
        LanguagePrior.load(path)
    assert "\n" not in str(caught.value)


def test_an_archive_with_pickled_objects_is_refused(tmp_path):
    path = tmp_path / "prior.npz"
    np.savez(path, format=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="Expected a prior"):
        LanguagePrior.load(path)


def test_a_file_of_another_format_is_refused(small, tmp_path):
    path = tmp_path / "prior.npz"
    small.save(path)
    with np.load(path) as arrays:
        stored = {**arrays, "format": np.int64(99)}
    np.savez(path, **stored)
    with pytest.raises(ValueError, match="format 99"):
        LanguagePrior.load(path)


def test_the_shipped_prior_is_small_quick_and_public(english):
    folder = importlib.resources.files("tfpriv.text") / "prior"
    assert len((folder / "english.npz").read_bytes()) < 8e6
    begin = time.process_time()
    LanguagePrior.load()
    assert time.process_time() - begin < 1
    assert english.vocabulary.source == "public"
    about = json.loads((folder / "README.json").read_text(encoding="utf-8"))
    assert about["source"]["licence"] == "MIT"
    assert about["counts"]["vocabulary"] == len(english.vocabulary)
    assert about["counts"]["trigrams"] == len(english.trigram.tokens)


def test_the_shipped_prior_knows_the_public_vocabulary(english):
    assert english.vocabulary.tokens == Vocabulary.public(8000).tokens


def test_the_shipped_prior_knows_english(english):
    index = english.vocabulary.index
    following = words(english, english.following2(index["one"], index["of"]))
    assert max(following, key=following.get) == "the"
    assert sum(following.values()) == pytest.approx(1)
    assert "<end>" in words(english, english.following(index["."]))
    ids, probabilities = english.following(START)
    assert len(ids) > 100
    assert probabilities.sum() == pytest.approx(1)


def test_the_shipped_prior_has_no_text_to_read_back(english):
    # A trigram that was seen once is a piece of one text: there is none.
    assert english.trigram.counts.min() >= 2


@pytest.mark.slow
def test_the_shipped_prior_is_what_the_texts_give(english, data_dir):
    texts = {}
    for path in sorted((data_dir / "public_text").glob("*_GroundTruth.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.count("\t") >= 2:
                text = line.split("\t", 2)[2].replace("''", '"')
                texts[" ".join(Tokenizer().tokenize(text))] = text
    stream = id_stream(texts.values(), english.vocabulary)
    again = LanguagePrior.from_texts(texts.values(), english.vocabulary)
    assert len(stream) > 400_000
    # Up to which of two nearly equal texts was kept.
    assert abs(len(again.bigram.tokens) / len(english.bigram.tokens) - 1) < 0.01
    assert np.abs(again.unigram - english.unigram).sum() < 0.01
