"""Makes the language prior: n-gram counts of public English text, no text in it.

The texts are the four rated sets of Hutto and Gilbert (2014) that lie in the source
archive of vaderSentiment 3.3.2 (MIT):

    pip download --no-binary :all: --no-deps vaderSentiment==3.3.2
    python tools/make_prior.py vaderSentiment-3.3.2.tar.gz           # writes it
    python tools/make_prior.py vaderSentiment-3.3.2.tar.gz --check   # is it this?

A folder that holds the four *_GroundTruth.txt files will do as well.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import io
import json
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tfpriv._files import PUBLIC, write_json
from tfpriv.text import LanguagePrior, Vocabulary, canonical
from tfpriv.text.ngrams import id_stream
from tfpriv.text.vocabulary import END, START, UNK

TARGET = Path(__file__).parents[1] / "tfpriv" / "text" / "prior"
VOCABULARY_SIZE = 8000
# What was seen once could be read back as text; see "recoverable" in README.json.
MIN_TRIGRAM_COUNT = 2

SDIST = "vaderSentiment-3.3.2.tar.gz"
SDIST_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
INNER = "hutto_ICWSM_2014.tar.gz"
SOURCES = {
    "amazonReviewSnippets_GroundTruth.txt": (
        "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2"
    ),
    "movieReviewSnippets_GroundTruth.txt": (
        "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350"
    ),
    "nytEditorialSnippets_GroundTruth.txt": (
        "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e"
    ),
    "tweets_GroundTruth.txt": (
        "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f"
    ),
}
NOTICE = (
    "n-gram counts derived from the four *_GroundTruth.txt files of vaderSentiment "
    "3.3.2, Copyright (c) 2016 C.J. Hutto, MIT License: Permission is hereby granted, "
    "free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without '
    "restriction, including without limitation the rights to use, copy, modify, "
    "merge, publish, distribute, sublicense, and/or sell copies of the Software, and "
    "to permit persons to whom the Software is furnished to do so, subject to the "
    "following conditions: The above copyright notice and this permission notice "
    "shall be included in all copies or substantial portions of the Software. THE "
    'SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, '
    "INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A "
    "PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR "
    "COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER "
    "IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN "
    "CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
)


def source_files(path: Path) -> dict[str, bytes]:
    """Reads the four files from the source archive or from a folder, verified."""
    if path.is_dir():
        found = {name: (path / name).read_bytes() for name in SOURCES}
    else:
        found = {}
        with tarfile.open(path) as outer:
            inner = next(m for m in outer if m.name.endswith(INNER))
            packed = io.BytesIO(outer.extractfile(inner).read())
        with tarfile.open(fileobj=packed) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in SOURCES:
                    found[name] = archive.extractfile(member).read()
    for name, digest in SOURCES.items():
        received = hashlib.sha256(found[name]).hexdigest()
        if received != digest:
            sys.exit(f"Expected sha256 {digest} of {name}, received {received}.")
    return found


def read_texts(content: bytes) -> list[str]:
    """Returns the texts of one file: lines of id, mean rating and text."""
    lines = content.decode("utf-8").splitlines()
    texts = [line.split("\t", 2)[2] for line in lines if line.count("\t") >= 2]
    # Two of the sets write a double quote as two single ones.
    return [text.replace("''", '"') for text in texts]


def distinct(texts: Iterable[str]) -> list[str]:
    """Drops repeated texts: two copies would make a whole text a frequent one."""
    return list({canonical(text): text for text in texts}.values())


def recoverable(prior: LanguagePrior, texts: list[str]) -> dict:
    """Measures how much of the texts could be read back from the prior.

    A token is foretold where it is the likeliest continuation of the two tokens
    before it, or, without such a trigram, of the one before it. A run of foretold
    tokens is text that somebody who has its first two tokens can read off.
    """
    best: dict[tuple[int, ...], int] = {}

    def likeliest(before: int, previous: int) -> int:
        for context in ((before, previous), (previous,)):
            if context not in best:
                table = prior.trigram if len(context) == 2 else prior.bigram
                ids, probabilities = table.continuations(*context)
                best[context] = int(ids[probabilities.argmax()]) if len(ids) else -1
            if best[context] >= 0:
                return best[context]
        return -1

    longest, whole, foretold, total = 0, 0, 0, 0
    runs: list[int] = []
    for text in texts:
        stream = id_stream([text], prior.vocabulary).tolist()
        run, hits = 0, 0
        for before, previous, token in zip(
            stream, stream[1:], stream[2:], strict=False
        ):
            if token not in (START, END):
                hit = token != UNK and likeliest(before, previous) == token
                run = run + 1 if hit else 0
                hits += hit
                total += 1
                longest = max(longest, run)
                runs.append(run)
        foretold += hits
        whole += len(stream) >= 10 and hits == len(stream) - 3
    return {
        "tokens_foretold": round(foretold / total, 3),
        "longest_run_of_tokens": longest,
        "runs_of_10_or_more": sum(run == 10 for run in runs),
        "texts_of_8_tokens_or_more_read_back_whole": whole,
    }


def make(path: Path) -> tuple[LanguagePrior, dict]:
    """Counts the n-grams; returns the prior and what README.json says of it."""
    files = source_files(path)
    texts = distinct(text for c in files.values() for text in read_texts(c))
    vocabulary = Vocabulary.public(VOCABULARY_SIZE)
    prior = LanguagePrior.from_texts(
        texts, vocabulary, min_trigram_count=MIN_TRIGRAM_COUNT
    )
    everything = LanguagePrior.from_texts(texts, vocabulary)
    stream = id_stream(texts, vocabulary)
    tokens = stream[(stream != START) & (stream != END)]
    about = {
        "what": "Counts of tokens, bigrams and trigrams of public English text.",
        "made_by": "tools/make_prior.py",
        "source": {
            "name": "vaderSentiment 3.3.2, source archive, " + INNER,
            "sdist": SDIST,
            "sdist_sha256": SDIST_SHA256,
            "files_sha256": SOURCES,
            "reference": (
                "C.J. Hutto and E. Gilbert, VADER: A Parsimonious Rule-based Model "
                "for Sentiment Analysis of Social Media Text, ICWSM 2014."
            ),
            "licence": "MIT",
            "notice": NOTICE,
        },
        "word_frequencies": {
            "name": f"wordfreq {importlib.metadata.version('wordfreq')}",
            "use": "the vocabulary, and half of the unigram",
            "reference": "R. Speer, rspeer/wordfreq, 2022, doi 10.5281/zenodo.7199437",
            "licence": "Apache-2.0 (code), CC BY-SA 4.0 (word list and frequencies)",
        },
        "counts": {
            "texts": {name: len(read_texts(files[name])) for name in SOURCES},
            "distinct_texts": len(texts),
            "tokens": len(tokens),
            "tokens_outside_the_vocabulary": round(float((tokens == UNK).mean()), 4),
            "vocabulary": len(vocabulary),
            "bigrams": len(prior.bigram.tokens),
            "trigrams": len(prior.trigram.tokens),
            "min_trigram_count": MIN_TRIGRAM_COUNT,
        },
        "recoverable": recoverable(prior, texts),
        "recoverable_with_all_trigrams": recoverable(everything, texts),
        "arrays_sha256": digest(prior),
    }
    return prior, about


def digest(prior: LanguagePrior) -> str:
    """A hash of what the prior holds, whatever compressed the file."""
    total = hashlib.sha256("\n".join(prior.vocabulary.tokens).encode())
    total.update(prior.unigram.astype(np.float32).tobytes())
    for table in (prior.bigram, prior.trigram):
        for values in (table.contexts, table.starts, table.tokens, table.counts):
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, help=f"{SDIST}, or a folder")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    prior, about = make(options.source)
    npz, readme = TARGET / "english.npz", TARGET / "README.json"
    if options.check:
        same = json.loads(readme.read_text(encoding="utf-8")) == about
        if not same or digest(LanguagePrior.load()) != digest(prior):
            sys.exit("The prior differs from what tools/make_prior.py makes now.")
        print("The prior is what tools/make_prior.py makes.")
        return
    TARGET.mkdir(exist_ok=True)
    prior.save(npz)
    write_json(readme, about, mode=PUBLIC)
    print(f"{npz}: {npz.stat().st_size / 1e6:.2f} MB")
    print(json.dumps({k: about[k] for k in about if "recover" in k or k == "counts"}))


if __name__ == "__main__":
    main()
