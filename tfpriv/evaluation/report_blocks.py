"""What a report is made of: sections of paragraphs, tables and pictures.

Whoever writes a section says what it holds; how that looks is the template's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    Attributes:
        text: plain text; the template escapes it.
        tone: "plain", "note" for what is beside the point, "warning", or "big".
    """

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: str = "plain"


@dataclasses.dataclass(frozen=True)
class Bullets:
    """A list, with a line before it."""

    kind: ClassVar[str] = "bullets"
    title: str
    items: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; the first column names its rows, numbers stand on the right.

    Attributes:
        columns: headings.
        rows: cells as text.
        caption: what it shows.
        words: columns from the left that hold words.
    """

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: int = 1


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture inside the page.

    Attributes:
        source: a data: address.
        description: for whoever cannot see it: what it shows.
        caption: the line below.
    """

    kind: ClassVar[str] = "picture"
    source: str = dataclasses.field(repr=False)
    description: str = ""
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Lines:
    """Text whose lines stay as they are: commands, a statement."""

    kind: ClassVar[str] = "lines"
    text: str
    title: str = ""


Block = Paragraph | Bullets | Table | Picture | Lines


@dataclasses.dataclass(frozen=True)
class Section:
    """A chapter of the report."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """What a link to it names."""
        return "-".join(self.title.lower().split())


@dataclasses.dataclass(frozen=True)
class Figure:
    """One number of the summary: what it is, its value, and how to read it."""

    title: str
    value: str
    reading: str = ""


@dataclasses.dataclass(frozen=True)
class Page:
    """A whole report.

    Attributes:
        title: its heading.
        audience: who may read it, in a line.
        leaves: whether it may leave with the release.
        summary: the numbers that come first.
        sections: the chapters.
    """

    title: str
    audience: str
    leaves: bool
    summary: Sequence[Figure]
    sections: Sequence[Section]

    def render(self) -> str:
        """Returns the page as one HTML document that needs no other file.

        Every text is escaped, and a content security policy forbids scripts and
        requests: nothing that a text holds can run or tell that it was read.
        """
        import jinja2

        from tfpriv._version import __version__

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("tfpriv.evaluation", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        template = environment.get_template("report.html")
        return template.render(page=self, version=__version__) + "\n"


def rows_of(values: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Returns (name, value) rows without those whose value is None."""
    return [(name, str(value)) for name, value in values if value is not None]
