from __future__ import annotations

import pytest

from tests.evaluation.chromium import Chromium, find
from tests.evaluation.run_folders import (
    SECRET,
    attribute_attack,
    audit,
    private_records,
    representation_run,
    synthetic_run,
    texts,
    write,
)
from tests.evaluation.test_report import outside, whole

WIDTHS = (390, 1200)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    find()
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name to a page on disk."""
    folder = tmp_path_factory.mktemp("pages")
    text = synthetic_run(folder / "text")
    write(text / "internal" / "audit.json", audit(strength=1.0))
    representation = representation_run(folder / "representation")
    write(representation / "internal" / "attack.json", attribute_attack())
    records = private_records()
    made = {
        "internal": whole(text, real=records, held_out=texts(60, 5, SECRET)),
        "release": outside(text),
        "representation": whole(representation),
    }
    for name, html in made.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def check_it_is_shown(browser, page, pictures):
    for width in WIDTHS:
        browser.messages.clear()
        browser.requests.clear()
        found = browser.look(page, width)
        assert browser.messages == []
        assert browser.requests == [page.resolve().as_uri()]
        assert found["scripts"] == 0
        assert found["title"]
        assert len(found["images"]) == pictures
        for natural_width, natural_height, shown in found["images"]:
            assert natural_width > 200
            assert natural_height > 100
            assert 200 < shown <= width
        # Nothing has to be moved sideways but tables in their own frame.
        assert found["width"] <= width


@pytest.mark.parametrize(
    ("name", "pictures"), [("internal", 4), ("release", 2), ("representation", 3)]
)
def test_a_page_loads_without_complaint_and_fits(browser, pages, name, pictures):
    check_it_is_shown(browser, pages[name], pictures)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</main>", "<script>1</script></main>"),
        ("</main>", '<img src="https://example.invalid/x.png"></main>'),
        ("data:image/svg+xml;base64,", "data:image/svg+xml;base64,AAAA"),
        ("</main>", '<p style="width: 3000px">wide</p></main>'),
    ],
    ids=["script", "request", "broken picture", "too wide"],
)
def test_a_broken_twin_is_refused(browser, pages, tmp_path, old, new):
    page = tmp_path / "twin.html"
    html = pages["release"].read_text(encoding="utf-8")
    assert old in html
    page.write_text(html.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(AssertionError):
        check_it_is_shown(browser, page, 2)
