from __future__ import annotations

import base64
import functools
import json
import re

import jinja2
import pytest
from matplotlib.figure import Figure

from tests.evaluation.run_folders import (
    SECRET,
    attribute_attack,
    audit,
    inversion,
    private_records,
    representation_run,
    synthetic_run,
    texts,
    write,
)
from tfpriv.datasets import TextDataset
from tfpriv.evaluation import report, report_plots
from tfpriv.evaluation.quality import measure_quality
from tfpriv.evaluation.report_blocks import Page, Paragraph, Section, Table
from tfpriv.evaluation.report_plots import curves_picture, lengths_picture
from tfpriv.evaluation.report_run import InternalFiles, ReleasedFiles
from tfpriv.evaluation.utility import measure_utility


def everything(html: str) -> str:
    """A page and what is inside its pictures: where text may hide."""
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", html)
    return "\n".join([html, *(base64.b64decode(p).decode() for p in pictures)])


def whole(folder, *, real=None, held_out=None) -> str:
    """The internal page of a run, with records if there are any."""
    released = ReleasedFiles.read(folder)
    files = InternalFiles.read(folder, released.kind)
    quality = utility = None
    if released.synthetic is not None:
        quality = measure_quality(released.synthetic.texts, real)
        if real is not None:
            utility = measure_utility(real, released.synthetic, held_out)
    page = report.internal_page(released, files, quality=quality, utility=utility)
    return page.render()


def outside(folder) -> str:
    released = ReleasedFiles.read(folder)
    quality = None
    if released.synthetic is not None:
        quality = measure_quality(released.synthetic.texts)
    return report.release_page(released, quality).render()


def test_a_whole_page_has_every_chapter(tmp_path):
    run = synthetic_run(tmp_path / "run")
    write(run / "internal" / "audit.json", audit())
    html = whole(run, real=private_records(), held_out=texts(60, 5, SECRET))
    for words in (
        "Internal: must not leave",
        "ε = ",
        "Compare two worlds",
        "Gaussian noise of multiplier 2 on all records, once",
        "records of one person",
        "was charged at delta 1e-05",
        "Accuracy on",
        "Label consistency",
        "TPR at 1 % FPR",
        "TPR at 0.1 % FPR",
        "No evidence of leaking was found",
        "near copies",
        "self-BLEU",
        "Drawn at random from the synthetic rows",
        "tfpriv synthesize FILE",
        "SHA-256",
        "Versions that made this page",
        "0.125",
    ):
        assert words in html, words
    assert html.count("<img") == 4


def test_a_representation_has_its_task_its_attack_and_its_curves(tmp_path):
    run = representation_run(tmp_path / "run")
    assert "tfpriv audit DIR." in whole(run)
    write(run / "internal" / "attack.json", attribute_attack())
    html = whole(run)
    for words in ("0.750", "mlp", "no proof that there is none", "tfpriv rmat train"):
        assert words in html, words
    assert html.count("<img") == 3
    assert "LEAKS" not in html
    # Training a model is no release.
    assert "train another model of the same kind" in html
    assert "costs again" not in html
    write(run / "internal" / "attack.json", attribute_attack(leaks=True))
    assert "LEAKS" in whole(run)
    assert SECRET not in everything(whole(run)) + everything(outside(run))


@pytest.mark.parametrize("leaks", [False, True])
def test_an_audit_of_a_representation_hides_no_leak_of_its_attack(tmp_path, leaks):
    run = representation_run(tmp_path / "run")
    write(run / "internal" / "attack.json", attribute_attack(leaks=True))
    found = {
        "kind": "representation",
        "attribute_inference": attribute_attack(),
        "inversion": inversion(leaks),
    }
    write(run / "internal" / "audit.json", found)
    html = whole(run)
    assert html.count("LEAKS") == 1
    assert html.count("no leak was found") == 1
    assert html.count("Worst attribute attack") == 1
    assert "no leak found; chance" not in html
    assert "1,000 words" in html
    assert "nearest neighbour" in html
    assert ("Words ARE recovered" in html) is leaks
    for part in ("attribute_inference", "inversion"):
        write(run / "internal" / "audit.json", found | {part: {"worst": "x"}})
        assert "is damaged or another version" in whole(run)


def test_an_audit_of_another_synthetic_text_is_not_shown_as_of_this(tmp_path):
    run = synthetic_run(tmp_path / "run")
    digest = ReleasedFiles.read(run).digests["synthetic.csv"]
    for of, shown in ((digest, True), ("0" * 64, False)):
        found = audit(9.0) | {"synthetic_sha256": of}
        write(run / "internal" / "audit.json", found)
        html = whole(run)
        assert ("ARE told from non-members" in html) is shown
        assert ("Worst membership attack" in html) is shown
        assert ("of another synthetic text" in html) is not shown


def test_a_picture_of_some_attacks_says_so(tmp_path):
    run = synthetic_run(tmp_path / "run")
    write(run / "internal" / "audit.json", audit(names=("a", "b", "c", "d")))
    assert "attacks with the largest AUC" not in whole(run)
    write(run / "internal" / "audit.json", audit(names=("a", "b", "c", "d", "e")))
    assert "the 4 of 5 attacks with the largest AUC" in whole(run)


def test_groups_that_differ_are_a_warning(tmp_path):
    run = synthetic_run(tmp_path / "run")
    found = audit()
    found["control"] = found["attacks"][0] | {
        "auc": {"value": 0.8, "low": 0.7, "high": 0.9}
    }
    write(run / "internal" / "audit.json", found)
    assert '<p class="warning">Members and non-members DIFFER' in whole(run)


def test_a_page_says_what_its_own_commands_make(tmp_path):
    run = synthetic_run(tmp_path / "run")
    for html, inside in ((whole(run), True), (outside(run), False)):
        assert ("another release of the same kind, which costs again" in html) is inside
        assert ("the same files give the same page" in html) is not inside
        assert "of each side" not in html
    assert "of each side" in whole(run, real=private_records())


@pytest.mark.filterwarnings("error")
def test_words_that_the_font_has_not_are_named_and_few_have_room(tmp_path):
    odd = TextDataset(["\u6f22\u5b57"], ["ham"])
    html = outside(synthetic_run(tmp_path / "run", synthetic=odd))
    assert html.count("<img") == 2


@pytest.mark.parametrize(("epochs", "ticks"), [(1, [1]), (2, [1, 2])])
def test_few_epochs_are_whole_numbers(epochs, ticks, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        report_plots, "_picture", lambda draw, *rest: drawn.append(draw)
    )
    curves_picture({"training": [0.5] * epochs}, "loss", "Loss.")
    axes = Figure().subplots()
    drawn[0](axes)
    assert axes.get_xticks().tolist() == ticks


def test_the_last_bar_of_lengths_is_said_to_hold_all_longer_texts():
    picture = lengths_picture({"synthetic": [0, 5, 1], "real": [0, 1, 5]})
    assert "the last bar is of 2 tokens and more" in picture.caption
    assert "synthetic 1 tokens (median), real 2 or more" in picture.description
    assert "last bar" not in lengths_picture({"synthetic": [0, 5, 0]}).caption


def test_attacks_that_were_not_made_or_cannot_be_read_are_said(tmp_path):
    run = synthetic_run(tmp_path / "run")
    assert "No attack was made yet" in whole(run)
    for damaged in ("{", "[]", '{"kind": "membership"}', '{"attacks": []}'):
        (run / "internal" / "audit.json").write_text(damaged)
        html = whole(run)
        assert "is damaged or another version" in html
        assert "No attack was made yet" not in html
    write(run / "internal" / "audit.json", audit(strength=3.0))
    html = whole(run)
    assert "Members ARE told from non-members" in html
    assert 'class="warning"' in html


def test_a_damaged_record_of_the_run_is_said(tmp_path):
    run = synthetic_run(tmp_path / "text")
    write(run / "internal" / "model" / "classes.json", [{"chosen": "seed"}, 3])
    assert "damaged or another version" in whole(run)
    run = representation_run(tmp_path / "representation")
    write(run / "internal" / "evaluation.json", {"task_accuracy": "high"})
    write(run / "internal" / "history.json", [1, 2])
    assert whole(run).count("damaged or another version") == 2


# What may be shown.


def shows_no_private_text(html: str) -> None:
    assert SECRET not in everything(html)


def test_private_text_is_on_neither_page(tmp_path):
    records = private_records()
    run = synthetic_run(tmp_path / "run", records=records)
    write(run / "internal" / "audit.json", audit())
    html = whole(run, real=records, held_out=texts(60, 5, SECRET))
    shows_no_private_text(html)
    shows_no_private_text(outside(run))
    # Words hide in no picture: a synthetic one is found there.
    assert "song" in everything(html).replace(html, "")


def real_words(part):
    """A twin: the most frequent words are those of the real text."""
    words = report.report_text.words_picture

    def twin(measured, **options):
        rows = [
            (word, share, share) for word, share in measured.real.word_shares.items()
        ]
        section = part(measured, **options)
        return Section(section.title, [*section.blocks, words(rows[:20])])

    return twin


def real_samples(part):
    """A twin: samples are drawn from the records."""

    def twin(rows, **options):
        return part(private_records(), **options)

    return twin


@pytest.mark.parametrize(
    ("name", "twin"), [("distributions", real_words), ("samples", real_samples)]
)
def test_a_twin_that_shows_private_text_is_refused(name, twin, tmp_path, monkeypatch):
    run = synthetic_run(tmp_path / "run")
    part = getattr(report.report_text, name)
    monkeypatch.setattr(report.report_text, name, twin(part))
    with pytest.raises(AssertionError):
        shows_no_private_text(whole(run, real=private_records()))


def test_without_a_guarantee_synthetic_text_is_not_shown(tmp_path):
    """It may be private text, copied."""
    leaking = private_records(20)
    run = synthetic_run(tmp_path / "run", synthetic=leaking, guaranteed=False)
    for html in (whole(run, real=private_records()), outside(run)):
        shows_no_private_text(html)
        assert "are not shown" in html
        assert "NO mathematical guarantee" in html


def test_text_is_escaped_wherever_it_stands(tmp_path, monkeypatch):
    markup = '<script>alert("x")</script><img src=http://a.b/c>'
    rows = TextDataset(
        [f"{markup} {i}" for i in range(30)],
        [f"<b>{'ab'[i % 2]}</b>" for i in range(30)],
        text_column="<u>text</u>",
        label_column="<i>label</i>",
    )
    run = synthetic_run(tmp_path / "run", synthetic=rows)
    write(run / "internal" / "audit.json", audit(names=("<b>attack</b>",)))
    write(run / "internal" / "labels.json", ["<em>x</em>", "<em>y</em>"])
    for make in (whole, outside):
        is_escaped(make(run))
    with monkeypatch.context() as patch:
        plain = functools.partial(_unescaped, jinja2.Environment)
        patch.setattr(jinja2, "Environment", plain)
        for make in (whole, outside):
            with pytest.raises(AssertionError):
                is_escaped(make(run))


def is_escaped(html):
    assert "&lt;script&gt;" in html
    for tag in ("<script", "<b>a", "<u>", "<i>l", "<em>", "<img src=http"):
        assert tag not in html, tag


def _unescaped(make, **options):
    """The twin."""
    return make(**{**options, "autoescape": False})


# What may leave.


def leaves_alone(make, folder, tmp_path) -> None:
    """The page of a release is the same whatever lies beside the release."""
    page = make(folder)
    other = tmp_path / "elsewhere" / "bob" / "other"
    synthetic_run(other, records=texts(99, 7, "quux"))
    for path in (folder / "release").iterdir():
        (other / "release" / path.name).write_bytes(path.read_bytes())
    write(other / "internal" / "audit.json", audit(strength=1.0))
    (other / "internal" / "labels.json").unlink()
    assert make(other) == page
    for word in (SECRET, "AUC", "charged", "held-out", str(folder)):
        assert word not in everything(page), word


def test_the_page_of_a_release_follows_from_the_release_alone(tmp_path):
    run = synthetic_run(tmp_path / "run")
    write(run / "internal" / "audit.json", audit())
    leaves_alone(outside, run, tmp_path)


def with_labels(folder):
    labels = folder / "internal" / "labels.json"
    return outside(folder) + (labels.read_text() if labels.exists() else "")


def with_ledger(folder):
    return outside(folder) + (folder / "internal" / "ledger.jsonl").read_text()


def with_an_attack(folder):
    return outside(folder) + str(
        json.loads((folder / "internal" / "audit.json").read_text())["worst"]
    ) + "AUC"  # fmt: skip


def with_its_path(folder):
    return outside(folder) + str(folder)


def whole_page(folder):
    return whole(folder)


@pytest.mark.parametrize(
    "twin", [with_labels, with_ledger, with_an_attack, with_its_path, whole_page]
)
def test_a_twin_that_tells_more_than_the_release_is_refused(twin, tmp_path):
    run = synthetic_run(tmp_path / "run")
    write(run / "internal" / "audit.json", audit())
    with pytest.raises(AssertionError):
        leaves_alone(twin, run, tmp_path)


@pytest.mark.slow
def test_pages_are_the_same_when_made_again_and_hold_no_date(tmp_path):
    run = synthetic_run(tmp_path / "run")
    assert outside(run) == outside(run)
    assert whole(run) == whole(run)
    assert not re.search(r"20\d\d-\d\d-\d\d", everything(outside(run)))


def test_a_page_asks_for_nothing_from_outside(tmp_path):
    for html in (whole(synthetic_run(tmp_path / "a")), outside(tmp_path / "a")):
        assert "default-src 'none'" in html
        for word in re.findall(r'(?:src|href)="([^"]*)"', html):
            assert word.startswith(("data:", "#")), word
        assert "@import" not in html
        assert "url(" not in html


def test_a_broken_twin_of_a_block_is_no_silence():
    """A field that the template does not know is an error, not an empty place."""
    page = Page("t", "a", True, [], [Section("s", [Paragraph("x"), Table(["a"], [])])])
    assert '<p class="plain">x</p>' in page.render()
    with pytest.raises(Exception, match="title"):
        Page("t", "a", True, [object()], []).render()
