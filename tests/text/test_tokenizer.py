from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfpriv.text import Tokenizer, Vocabulary
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS, URL

TOKENIZER = Tokenizer()
WORDS = ["song", "don't", "i", "i'm", "check", "com", "www", "amp", "v", "été", "xd"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, World", ["hello", ",", "world"]),
        ("don't 'quote'", ["don't", "'", "quote", "'"]),
        ("http://youtu.be/x?v=1&amp;b=2!!", ["<url>", "!!"]),
        ("(see www.a.de/b).", ["(", "see", "<url>", ")", "."]),
        ("go to Example.com, now", ["go", "to", "<url>", ",", "now"]),
        ("mail me@mail.example.org.", ["mail", "<email>", "."]),
        ("@some_one hi", ["<user>", "hi"]),
        ("1,000.5 10:30 1st 50% 5k 7pm", ["<number>"] * 6),
        ("2nite 22nite 4u", ["2nite", "22nite", "4u"]),
        ("1.5x", ["<number>", ".", "5x"]),
        ("a<br />b<br>c", ["a", "<br>", "b", "<br>", "c"]),
        ('<a href="http://x.y">link</a>', ["<tag>", "link", "<tag>"]),
        ("wow!!!!!! what???", ["wow", "!!", "what", "??"]),
        ("no?!?! so...... .", ["no", "?!", "so", "...", "."]),
        ("😂😂 👍🏽 ❤️ 👨‍👩‍👧 🇩🇪", ["<emoji>"] * 6),
        (":) :-) ;) :D :P xD", [":)", ":-)", ";)", ":d", ":p", "xd"]),
        ("<3 ^__^ :)))", ["<3", "^_^", ":)"]),
        ("<30 years", ["<", "<number>", "years"]),
        ("3:4 and a:done", ["<number>", "and", "a", ":", "done"]),
        ("#tag $5", ["#", "tag", "$", "<number>"]),
        ("<url> <unk> <pad>", ["<tag>"] * 3),
        ("", []),
    ],
)  # fmt: skip
def test_a_text_is_split(text, tokens):
    assert TOKENIZER.tokenize(text) == tokens


def round_trip(tokens, seed=0):
    return TOKENIZER.tokenize(TOKENIZER.detokenize(tokens, seed=seed))


@pytest.mark.parametrize("token", [*KINDS, *SMILEYS, *MARKS])
@pytest.mark.parametrize("seed", range(5))
def test_each_kind_smiley_and_mark_comes_back(token, seed):
    for tokens in ([token], ["word", token], [token, "word"], [token, token]):
        assert round_trip(tokens, seed) == tokens


@given(
    st.lists(st.sampled_from([*KINDS, *SMILEYS, *MARKS, *WORDS]), max_size=12),
    st.integers(0, 1000),
)
@example([":", ")"], 0)
@example(['"', '"', "."], 0)
@example(["<number>", "%"], 0)
@example(["@", "song"], 0)
@example(["<url>", "%"], 0)
@example(["!!", "!"], 0)
def test_tokens_come_back_whatever_their_order(tokens, seed):
    assert round_trip(tokens, seed) == tokens


PIECES = [
    *"aBßİς19.:,;!?'\"()[]<>/@#&-_^~*%$ ",
    *["\u200d", "\ufe0f", "\u0301", "😂", "🇦", "½", "http://", "www.", ".com"],
    *["&amp;", "&#39;", "<br>", ":)", "<3", ":d", "watch?v=", "i'm", "1st"],
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_what_any_text_is_split_into_comes_back(text):
    tokens = TOKENIZER.tokenize(text)
    assert round_trip(tokens) == tokens


def test_the_public_vocabulary_comes_back():
    tokens = list(Vocabulary.public(8000).tokens[4:])
    assert round_trip(tokens) == tokens


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["i", "think", "i'm", "ok", ".", "you", "?"], "I think I'm ok. You?"),
        (["(", "really", ")", ",", "yes", "!"], "(Really), yes!"),
        (["he", "said", '"', "no", "way", '"', "."], 'He said "no way".'),
        (["#", "tag", "$", "ok"], "#Tag $ok"),
        (["ha", ":d", ":)", "xd"], "Ha :D :) xD"),
        (["é", "."], "É."),
        ([], ""),
    ],
)
def test_text_reads_like_text(tokens, text):
    assert TOKENIZER.detokenize(tokens) == text


def test_the_seed_chooses_links_and_digits():
    tokens = [URL, "<number>", "<emoji>", "<email>", "<user>"]
    texts = {TOKENIZER.detokenize(tokens, seed=seed) for seed in range(20)}
    assert len(texts) == 20
    assert TOKENIZER.detokenize(tokens, seed=3) == TOKENIZER.detokenize(tokens, seed=3)


def test_a_link_never_leads_to_a_real_site():
    for seed in range(20):
        text = TOKENIZER.detokenize([URL], seed=seed)
        assert text.startswith("http://example.com/")


HOSTILE = {
    "letters": "a" * 10_000,
    "dotted": "a." * 5_000,
    "www": "www." * 2_500,
    "at": "a@" * 5_000,
    "address without an end": "a@" + "b" * 9_998,
    "exclamations": "!" * 10_000,
    "mixed": "?!" * 5_000,
    "open tags": "<a" * 5_000,
    "one open tag": "<a " + "b " * 4_998,
    "decimals": "1." * 4_999 + "1a",
    "digits": "1" * 9_999 + "a",
    "apostrophes": "a'" * 5_000,
    "links": "http://" * 1_428,
    "link of dots": "http://" + "." * 9_993,
    "hyphens": "a-" * 5_000,
    "family": "👨\u200d" * 5_000,
    "flags": "🇦" * 10_000,
    "face": "^" + "_" * 9_999,
    "smileys": ":)" * 5_000,
    "big smile": ":" + ")" * 9_999,
    "domains": "a.com/" * 1_666,
    "entities": "&lt;" * 2_500,
    "dots": "a" + "." * 9_999,
    "marks": "e" + "\u0301" * 9_999,
    "colons": ":-" * 5_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_of_ten_thousand_characters_takes_no_time(name):
    begin = time.process_time()
    tokens = TOKENIZER.tokenize(HOSTILE[name])
    text = TOKENIZER.detokenize(tokens)
    # Quadratic time would be a minute; linear time is a tenth of a second.
    assert time.process_time() - begin < 2
    assert TOKENIZER.tokenize(text) == tokens
