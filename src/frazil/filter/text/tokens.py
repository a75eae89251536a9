"""Text of filters cut into tokens, each with its position.

Also the one place that words a complaint about such text: the text, a caret under the spot, and
what was expected there.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from frazil.errors import InvalidInput
from frazil.value_classes import frozen

_WINDOW: Final = 60


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    BYTES = "bytes"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end of the text"


@frozen
class Token:
    """A token: its kind, its value without quotes, and where it starts."""

    kind: Kind
    value: str
    position: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in any case."""
        return self.kind is Kind.WORD and self.value.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.value in symbols

    def __str__(self) -> str:
        if self.kind is Kind.END:
            return str(self.kind.value)
        return f"{self.kind.value} {self.value!r}"


_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<bytes>[xX]'[^']*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol><=|>=|<>|!=|==|\|\||[<>=(),.+*/%-])
    """,
    re.VERBOSE,
)


class TextProblem(InvalidInput):
    """Text that cannot be read, with what is wrong and the offset where it is."""

    def __init__(self, message: str, *, problem: str, offset: int) -> None:
        super().__init__(message)
        self.problem = problem
        self.offset = offset


def problem_at(text: str, position: int, problem: str, *, what: str = "filter") -> TextProblem:
    """An error that quotes the filter (or `what` it is) and points at the position."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = position - line_start
    start = max(0, column - _WINDOW)
    excerpt = line[start : column + _WINDOW]
    before = "…" if start else ""
    after = "…" if column + _WINDOW < len(line) else ""
    caret = " " * (len(before) + column - start) + "^"
    where = f"position {position + 1}"
    message = f"bad {what}, at {where}: {problem}\n  {before}{excerpt}{after}\n  {caret}"
    return TextProblem(message, problem=problem, offset=position)


def tokens(text: str) -> list[Token]:
    """All tokens of the text, closed by one of kind END."""
    result: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise problem_at(text, position, _unreadable(text[position]))
        name = match.lastgroup
        raw = match.group()
        if name == "string":
            result.append(_token(Kind.STRING, raw[1:-1].replace("''", "'"), position))
        elif name == "bytes":
            result.append(_token(Kind.BYTES, raw[2:-1], position))
        elif name == "name":
            quote = raw[0]
            result.append(_token(Kind.NAME, raw[1:-1].replace(quote * 2, quote), position))
        elif name is not None and name != "space":
            result.append(_token(Kind[name.upper()], raw, position))
        position = match.end()
    result.append(_token(Kind.END, "", len(text)))
    return result


def _token(kind: Kind, value: str, position: int) -> Token:
    return Token(kind=kind, value=value, position=position)


def _unreadable(character: str) -> str:
    if character == "'":
        return "the string that starts here has no closing quote"
    if character in '"`':
        return "the name that starts here has no closing quote"
    return f"unexpected character {character!r}"
