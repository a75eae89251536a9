"""Tokens as DuckDB reads them, with offsets in characters."""

from __future__ import annotations

import duckdb
import pytest

from frazil.errors import InvalidInput
from frazil.parser.cursor import MAX_NAME_PARTS, Cursor, chain
from frazil.parser.tokens import Kind, Source, Token, other_spaces, statements, tokens


def read(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.value) for token in tokens(Source(text))]


def slices(text: str) -> list[str]:
    return [text[token.start : token.end] for token in tokens(Source(text))]


def test_strings_are_read_without_their_quotes() -> None:
    text = r"""'it''s' $$a$b$$ $t$ it's $t$ E'a\'b\n\x41\101' x'FF' b'01'"""
    assert read(text) == [
        ("string", "it's"),
        ("string", "a$b"),
        ("string", " it's "),
        ("string", "a'b\nAA"),
        ("binary", "FF"),
        ("binary", "01"),
    ]


def test_names_are_read_without_their_quotes() -> None:
    assert read('a."b""c" `d``e` = `f\'g`') == [
        ("word", "a"),
        ("symbol", "."),
        ("quoted", 'b"c'),
        ("quoted", "d`e"),
        ("symbol", "="),
        ("quoted", "f'g"),
    ]


def test_backquotes_in_comments_and_strings_are_left_alone() -> None:
    assert read("1; -- `x\n'`' /* `a */ `b`") == [
        ("number", "1"),
        ("symbol", ";"),
        ("string", "`"),
        ("quoted", "b"),
    ]


def test_a_name_right_after_an_operator_is_a_name() -> None:
    assert slices("a=`b`") == ["a", "=", "`b`"]


def test_parameters_are_one_token() -> None:
    assert read("? ?2 $1 $name") == [("param", value) for value in ("?", "?2", "$1", "$name")]


def test_offsets_count_characters() -> None:
    text = "SELECT 'ß', \"ü\" /* é */ FROM ö"
    assert slices(text) == ["SELECT", "'ß'", ",", '"ü"', "FROM", "ö"]


def test_comments_may_be_nested() -> None:
    assert slices("a /* x /* y */ z */ b -- c") == ["a", "b"]


def test_a_dollar_inside_a_name_opens_no_string() -> None:
    found = list(statements(tokens(Source("SELECT 1 AS a$b$; COPY x TO 'y'; --$b$"))))
    assert [each[0].value for each in found] == ["SELECT", "COPY"]


@pytest.mark.parametrize(
    "text", ["a 'b", 'a "b', "a /* b", "a $$b", "a `b", "a E'b\\'", "$t$ a $$"]
)
def test_what_is_not_closed_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(InvalidInput, match="never closed") as caught:
        tokens(Source(text))
    assert caught.value.position is not None


@pytest.mark.parametrize(("text", "column"), [("SELECT '\0'", 9), ("SELECT '\ud800'", 9)])
def test_what_cannot_be_given_to_the_engine_is_refused(text: str, column: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        tokens(Source(text))
    assert caught.value.position == (1, column)


SPACES = [chr(code) for code in (0xA0, 0x2000, 0x2003, 0x200B, 0x202F, 0x205F, 0x3000, 0xFEFF)]


@pytest.mark.parametrize("space", SPACES, ids=lambda char: f"U+{ord(char):04X}")
def test_other_spaces_separate_words_as_they_do_in_the_engine(space: str) -> None:
    text = f"SELECT{space}1"
    try:
        engine = [statement.type.name for statement in duckdb.extract_statements(text)]
    except duckdb.Error:
        engine = []
    source = Source(text)
    ours = [token.value for token in tokens(source)]
    assert (ours == ["SELECT", "1"]) == (engine == ["SELECT"])
    assert list(other_spaces(source, tokens(source))) == [(6, 7, " ")]


def test_a_name_of_many_parts_is_refused() -> None:
    source = Source(".".join(["a"] * 2000))
    with pytest.raises(InvalidInput, match=rf"2000 parts \(limit {MAX_NAME_PARTS}\)"):
        chain(Cursor(source, tokens(source)))


def test_a_cursor_takes_parts_up_to_a_word() -> None:
    source = Source("a CASE WHEN b THEN set END, (c, set) SET d")
    cursor = Cursor(source, tokens(source))
    parts = cursor.list_until("set")
    assert [source.of(part) for part in parts] == ["a CASE WHEN b THEN set END", "(c, set)"]
    assert cursor.token == Token(Kind.WORD, "SET", 37, 40)
