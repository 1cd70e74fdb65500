from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.datasets import read_table
from tfpriv.datasets.readers import read_bytes, table_format

SECRET = "my password is hunter2"


def read_csv(content: bytes | str, **arguments):
    if isinstance(content, str):
        content = content.encode()
    arguments = {"text": "text", "label": "label", "format": "csv"} | arguments
    return read_bytes(content, "mine.csv", **arguments)


def refused(content: bytes | str, **arguments) -> str:
    """The message with which a file is refused: one line, no content, no cause."""
    with pytest.raises(InputError) as caught:
        read_csv(content, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "hunter2" not in message
    # A cause or context of another kind could carry the file in an attribute.
    for error in (caught.value.__cause__, caught.value.__context__):
        assert "hunter2" not in str(vars(error) if hasattr(error, "__dict__") else "")
        assert not isinstance(error, UnicodeDecodeError | json.JSONDecodeError)
    return message


# What a real CSV file looks like.


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_gives_the_same_rows(end):
    data = read_csv(end.join(["text,label", "hi,ham", "buy,spam", ""]))
    assert data.texts == ("hi", "buy")
    assert data.labels == ("ham", "spam")


def test_a_byte_order_mark_is_no_part_of_the_first_column_name():
    assert read_csv("\ufefftext,label\nhi\ufeff,ham\n").texts == ("hi\ufeff",)


def test_quoted_commas_quotes_and_line_breaks_stay_in_the_text():
    data = read_csv('text,label\n"a, ""b""\r\nc\rd\ne",ham\n')
    assert data.texts == ('a, "b"\r\nc\rd\ne',)


def test_nul_is_taken_out_and_counted():
    with pytest.warns(UserWarning, match=r"1 of 2 rows .* NUL .* row 2"):
        data = read_csv("text,label\nh\0i,ham\nyou,spam\n")
    assert data.texts == ("hi", "you")
    assert data.provenance["mended"] == 1


def test_semicolons_separate_where_only_they_give_the_columns():
    assert read_csv("text;label\na, b;ham\n").texts == ("a, b",)
    assert read_csv("text,label\na; b,ham\n").texts == ("a; b",)


def test_blank_lines_are_passed_over_and_count_in_row_numbers():
    assert read_csv("\ntext,label\n\nhi,ham\n\n").texts == ("hi",)
    assert "row 4" in refused(f"text,label\n\nhi,ham\n{SECRET}\n")


def test_other_columns_are_not_kept():
    data = read_csv(f"AUTHOR,text,label\n{SECRET},hi,ham\n")
    assert "hunter2" not in str(vars(data))


def test_long_texts_are_accepted_up_to_a_limit_that_names_the_row():
    long = "a " * 5000
    assert read_csv(f"text,label\n{long},ham\n").texts == (long,)
    # Far above the csv module's own limit of 131,072 characters.
    other = "b" * 300_000
    assert len(read_csv(f"text,label,c\nhi,ham,{other}\n")) == 1
    message = refused(f"text,label\nhi,ham\n{SECRET * 10000},ham\n")
    assert "column 'text' of row 3" in message
    assert "100000" in message
    assert len(read_csv(f"text,label\n{other},ham\n", max_chars=300_000)) == 1


def test_the_limit_of_the_csv_module_is_left_as_it_was():
    before = csv.field_size_limit()
    read_csv("text,label\nhi,ham\n")
    refused("text,label\nhi\n")
    assert csv.field_size_limit() == before


def test_labels_are_strings_without_the_blanks_around_them():
    data = read_csv("text,label\na, 1 \nb,01\nc,1.0\nd,not spam\ne,\ufeff1\n")
    assert data.labels == ("1", "01", "1.0", "not spam", "1")


def test_texts_that_read_as_missing_values_elsewhere_stay_texts():
    data = read_csv("text,label\nNA,null\nnan,None\nNULL,0\n")
    assert data.texts == ("NA", "nan", "NULL")
    assert data.labels == ("null", "None", "0")


def test_one_class_is_a_data_set():
    assert read_csv("text,label\na,ham\nb,ham\n").label_names == ("ham",)


def test_rows_without_text_or_label_are_left_out_and_counted():
    content = "text,label\n,ham\n  \ufeff ,ham\n&nbsp;,spam\nhi,ham\nyou, \n"
    with pytest.warns(UserWarning, match="left out") as caught:
        data = read_csv(content)
    assert data.texts == ("hi",)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        "3 of 5 rows of mine.csv have no text in column 'text' and were left out; "
        "the first is row 2.",
        "1 of 5 rows of mine.csv have no label in column 'label' and were left out; "
        "the first is row 6.",
    ]
    assert data.provenance["without_text"] == 3
    assert data.provenance["without_label"] == 1


def test_the_warning_names_the_callers_line(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\n,ham\nhi,ham\n")
    with pytest.warns(UserWarning, match="left out") as caught:
        read_table(path, text="text", label="label")
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore")
def test_a_file_of_empty_texts_is_refused():
    assert "none among 2" in refused("text,label\n,ham\n ,spam\n")


def test_groups_are_read_and_a_missing_one_is_refused():
    data = read_csv("text,label,who\na,x, ann \nb,x,bob\n", group="who")
    assert data.groups == ("ann", "bob")
    message = refused(f"text,label,who\n{SECRET},x,\n", group="who")
    assert "column 'who' of row 2" in message


def test_private_labels_are_read_and_a_missing_one_is_refused():
    data = read_csv(
        "text,label,sex,who\na,x, f ,ann\nb,x,m,bob\n", private="sex", group="who"
    )
    assert data.private == ("f", "m")
    assert data.groups == ("ann", "bob")
    assert data.private_column == "sex"
    alone = read_csv("text,label\na,f\n", label=None, private="label")
    assert (alone.labels, alone.private) == (None, ("f",))
    for cell in ("", "  "):
        content = f"text,label,sex\na,x,f\n{SECRET},x,{cell}\n"
        message = refused(content, private="sex")
        assert "column 'sex' of row 3" in message
        assert "private label" in message


@pytest.mark.parametrize("other", ["text", "label", "who"])
def test_the_private_column_is_none_of_the_others(other):
    content = f"text,label,who\n{SECRET},x,ann\n"
    assert "different columns" in refused(content, group="who", private=other)


def test_private_labels_come_from_every_format(tmp_path):
    line = '{"text": "a", "label": 1, "sex": "f"}'
    assert read_jsonl(line, private="sex").private == ("f",)
    message = refused(
        '{"text": "a", "label": 1, "sex": null}', format="jsonl", private="sex"
    )
    assert "column 'sex' of line 1" in message


def test_a_table_without_label_column_is_read_and_can_be_named():
    data = read_csv("label\nhi\n", text="label", label=None)
    assert data.texts == ("hi",)
    assert data.labels is None


# What is no table, or not this one.


def test_a_missing_column_is_named_with_those_there_are():
    message = refused(f"CONTENT,CLASS\n{SECRET},1\n", text="content", label="CLASS")
    assert "'content'" in message
    assert "CONTENT, CLASS" in message
    assert "Did you mean 'CONTENT'?" in message


def test_a_headless_file_does_not_show_its_first_text():
    long = f"{SECRET}, and this goes on for a while"
    assert "a name of 52 characters" in refused(f'"{long}",1\nhi,0\n')


def test_only_the_first_of_very_many_columns_are_named():
    message = refused(",".join(f"c{i}" for i in range(1000)) + "\n")
    assert "and 970 more" in message


def test_a_doubled_column_is_refused_only_where_it_is_asked_for():
    assert "2 of that name" in refused(f"text,text,label\n{SECRET},b,ham\n")
    assert read_csv("text,x,x,label\na,b,c,ham\n").texts == ("a",)


@pytest.mark.parametrize("row", [SECRET, f"{SECRET},ham,more", f"{SECRET},"])
def test_a_ragged_row_is_named_by_its_number(row):
    content = f"text,label,c\na,ham,1\n{row}\n"
    if row.count(",") == 2:
        assert read_csv(content).texts == ("a", SECRET)
    else:
        message = refused(content)
        assert "3 cells in row 3" in message


@pytest.mark.parametrize("cell", [f'"{SECRET}', f'"{SECRET}" and more'])
def test_a_broken_quote_is_named_by_its_row_and_swallows_nothing(cell):
    message = refused(f"text,label\na,ham\n{cell},ham\nb,ham\n")
    assert "row 3" in message


@pytest.mark.parametrize("content", ["", "\ufeff", "\n\n", "  \r\n"])
def test_an_empty_file_is_called_empty(content):
    assert "empty" in refused(content)


def test_a_header_without_rows_is_refused():
    assert "received none" in refused("text,label\n")


def test_bytes_that_are_not_utf8_are_named_by_their_offset():
    content = b"text,label\n" + SECRET.encode() + b"\xe9,ham\n"
    assert "byte offset 33" in refused(content)
    assert "byte offset 36" in refused(b"\xef\xbb\xbf" + content)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("text,label\nhi,ham\n".encode("utf-16"), "UTF-16"),
        ("text,label\nhi,ham\n".encode("utf-16-le"), "NUL"),
        (b"PK\x03\x04rest", "workbook"),
        (b"\x1f\x8brest", "gzip"),
    ],
)
def test_other_kinds_of_file_are_called_by_their_name(content, word):
    assert word in refused(content)


def test_one_column_cannot_be_two_things():
    assert "different columns" in refused("text,label\na,b\n", label="text")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_no_text_of_a_well_formed_file_is_lost_or_changed(rows):
    # A letter in front, so that no text counts as empty.
    texts = tuple("x" + row for row in ["", *rows])
    quoted = "\n".join('"' + text.replace('"', '""') + '"' for text in texts)
    assert read_csv(f"text\n{quoted}", label=None).texts == texts


# TSV.


def read_tsv(content: str):
    return read_csv(content, format="tsv")


def test_tsv_in_the_spreadsheet_dialect():
    data = read_tsv('text\tlabel\n"a\nb ""c"""\tham\n"d"\tspam\n')
    assert data.texts == ('a\nb "c"', "d")
    data = read_tsv('"text"\t"label"\n"a\tb\nc"\t"ham"\n')
    assert data.texts == ("a\tb\nc",)


def test_tsv_whose_quotes_are_plain_characters():
    data = read_tsv('text\tlabel\n"hi" he said\tham\n"unclosed\tspam\n')
    assert data.texts == ('"hi" he said', '"unclosed')


def test_tsv_quotes_never_swallow_a_row():
    content = f'text\tlabel\na\tham\n"{SECRET}\tham\ntwo"\tspam\n'
    message = refused(content, format="tsv")
    assert "row 3" in message
    assert "one way" in message


# JSONL.


def read_jsonl(content: str, **arguments):
    return read_csv(content, format="jsonl", **arguments)


def test_jsonl_keeps_numbers_as_they_are_written():
    data = read_jsonl(
        '{"text": "a", "label": 1}\r\n\r\n{"label": 1.0, "text": "b", "x": [1]}\n'
        '{"text": 5, "label": true}'
    )
    assert data.texts == ("a", "b", "5")
    assert data.labels == ("1", "1.0", "true")


def test_jsonl_separators_inside_strings_are_no_line_ends():
    assert read_jsonl('{"text": "a\u2028b\u0085c", "label": "x"}').texts == (
        "a\u2028b\u0085c",
    )


@pytest.mark.filterwarnings("ignore")
def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written():
    data = read_jsonl('{"text": "a\\ud83d", "label": "\\ud83d\\ude00"}')
    data.texts[0].encode()
    assert data.labels == ("😀",)


@pytest.mark.parametrize(
    "line",
    [
        f'{{"text": "{SECRET}", "label": ',
        f'["{SECRET}"]',
        f'"{SECRET}"',
        f'{{"text": "{SECRET}", "label": NaN}}',
        "[" * 100_000,
    ],
)
def test_a_bad_json_line_is_named_by_its_number(line):
    message = refused(f'{{"text": "a", "label": "b"}}\n\n{line}\n', format="jsonl")
    assert "line 3" in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f'{{"text": "{SECRET}", "lable": 1}}', "columns text, lable. Did you mean"),
        (f'{{"text": ["{SECRET}"], "label": 1}}', "received a list"),
        (f'{{"text": {{"a": "{SECRET}"}}, "label": 1}}', "received an object"),
        (f'{{"text": "{SECRET}", "text": "b", "label": 1}}', "2 of that name"),
    ],
)
def test_a_bad_field_is_named_with_its_line(line, words):
    message = refused(f'{{"text": "a", "label": "b"}}\n{line}', format="jsonl")
    assert "line 2" in message
    assert words in message


@pytest.mark.filterwarnings("ignore")
def test_null_is_an_empty_cell():
    data = read_jsonl('{"text": null, "label": 1}\n{"text": "a", "label": 1}')
    assert data.texts == ("a",)


# Files and formats.


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.CSV", "csv"),
        ("a.tsv", "tsv"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.tfrecord", "tfrecord"),
        ("a.tfrecord-00001-of-00004", "tfrecord"),
    ],
)
def test_the_name_tells_the_format(name, format):
    assert table_format(name) == format


def test_a_name_that_does_not_tell_needs_a_format(tmp_path):
    path = tmp_path / "comments.txt"
    path.write_text("text\thi\n")
    with pytest.raises(InputError, match="Give the format: one of csv, tsv"):
        read_table(path, text="text")
    with pytest.raises(InputError, match="format to be one of"):
        read_table(path, text="text", format="excel")


def test_no_such_file_and_a_folder_are_called_so(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "no.csv", text="text")
    with pytest.raises(InputError, match="not one"):
        read_table(tmp_path, text="text", format="csv")


def test_provenance_says_which_bytes_were_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text\nhi\n")
    provenance = read_table(path, text="text").provenance
    assert provenance["source"] == str(path)
    assert provenance["rows"] == 1
    assert len(provenance["sha256"]) == 64
