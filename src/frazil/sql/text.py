"""SQL text as tokens that know their place. Understands quoting and comments, nothing else.

Text is never changed on its way to the engine except where a name is replaced, so positions in a
problem are positions in what the user wrote.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from frazil.errors import FrazilError, InvalidInput, Unsupported

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|--[^\n\r]*|/\*.*?\*/)
    | (?P<string>'(?:[^']|'')*')
    | (?P<escaped>[eE]'(?:\\.|''|[^'\\])*')
    | (?P<dollar>\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?P=tag)\$|\$\$.*?\$\$)
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<param>\?\d*|\$\w+)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>=>|::|<=|>=|<>|!=|==|->>|->|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    PARAM = "param"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` is without quotes, `start` and `end` are offsets in the whole text."""

    kind: Kind
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case, unquoted."""
        return self.kind is Kind.WORD and self.value.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.value in symbols

    @property
    def is_name(self) -> bool:
        """Whether it can be part of a name."""
        return self.kind in (Kind.WORD, Kind.QUOTED)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the text: an expression or a query."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """What the user wrote."""

    text: str

    def of(self, part: Part) -> str:
        """The text of a part."""
        return self.text[part.start : part.end]

    def place(self, offset: int) -> str:
        """`line 2, column 7`, counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return f"line {line}, column {column}"

    def problem(self, offset: int, message: str) -> InvalidInput:
        """An error at a place."""
        return InvalidInput(f"{self.place(offset)}: {message}")

    def unsupported(self, offset: int, message: str, *, feature: str) -> Unsupported:
        """An error about a part that cannot be carried out."""
        return Unsupported(f"{self.place(offset)}: {message}", feature=feature)

    def located(self, offset: int, error: FrazilError) -> FrazilError:
        """An error of a lower layer, with the place that caused it."""
        error.args = (f"{self.place(offset)}: {error}", *error.args[1:])
        return error


def tokens(source: Source) -> list[Token]:
    """All tokens, without space and comments."""
    text = source.text
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        kind, value = match.lastgroup, match[0]
        if kind == "tag":
            kind = "dollar"
        start, position = position, match.end()
        if kind == "space":
            continue
        if kind == "symbol" and (value in "'\"`" or text.startswith("/*", start)):
            raise source.problem(start, "a quote or comment is opened here and never closed")
        match kind:
            case "string":
                made = Token(Kind.STRING, value[1:-1].replace("''", "'"), start, position)
            case "escaped" | "dollar":
                made = Token(Kind.STRING, value, start, position)
            case "quoted":
                quote = value[0]
                inner = value[1:-1].replace(quote * 2, quote)
                made = Token(Kind.QUOTED, inner, start, position)
            case "number":
                made = Token(Kind.NUMBER, value.replace("_", ""), start, position)
            case "param":
                made = Token(Kind.PARAM, value, start, position)
            case "word":
                made = Token(Kind.WORD, value, start, position)
            case _:
                made = Token(Kind.SYMBOL, value, start, position)
        found.append(made)
    return found


def statements(found: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement; semicolons separate them."""
    current: list[Token] = []
    for token in found:
        if token.is_symbol(";"):
            if current:
                yield current
            current = []
        else:
            current.append(token)
    if current:
        yield current


class Cursor:
    """Walks over the tokens of one statement."""

    def __init__(self, source: Source, found: Sequence[Token]) -> None:
        self.source = source
        self.tokens = list(found)
        self.index = 0

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    @property
    def end(self) -> int:
        """Where the statement ends."""
        return self.tokens[-1].end

    @property
    def token(self) -> Token | None:
        """The next token; None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Where the next token starts."""
        return self.end if self.token is None else self.token.start

    def seek(self, offset: int) -> None:
        """Go to the token that starts at an offset."""
        self.index = bisect_right(self._starts, offset) - 1

    def ahead(self, *words: str) -> bool:
        """Whether these words follow."""
        following = self.tokens[self.index : self.index + len(words)]
        return len(following) == len(words) and all(
            token.is_word(word) for token, word in zip(following, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Step over these words if they follow."""
        if self.ahead(*words):
            self.index += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        """Step over a symbol if it follows."""
        if self.token is not None and self.token.is_symbol(symbol):
            self.index += 1
            return True
        return False

    def expect(self, *words: str) -> None:
        """Step over these words, which must follow."""
        if not self.take(*words):
            raise self.unexpected(" ".join(words).upper())

    def expect_symbol(self, symbol: str) -> None:
        """Step over a symbol, which must follow."""
        if not self.take_symbol(symbol):
            raise self.unexpected(f"'{symbol}'")

    def finish(self) -> None:
        """Refuse anything that is left."""
        if self.token is not None:
            raise self.unexpected("the end of the statement")

    def unexpected(self, wanted: str) -> InvalidInput:
        """The error for a token that does not fit."""
        token = self.token
        shown = (
            "the end of the statement"
            if token is None
            else repr(self.source.text[token.start : token.end])
        )
        return self.source.problem(self.offset, f"expected {wanted}, found {shown}")

    def advance(self) -> Token:
        """The next token, stepping over it."""
        token = self.token
        if token is None:
            raise self.unexpected("more")
        self.index += 1
        return token

    def name(self, what: str = "a name") -> str:
        """One identifier."""
        token = self.token
        if token is None or not token.is_name:
            raise self.unexpected(what)
        self.index += 1
        return token.value

    def string(self, what: str = "a text in 'quotes'") -> str:
        """One string literal."""
        token = self.token
        if token is None or token.kind is not Kind.STRING:
            raise self.unexpected(what)
        self.index += 1
        return token.value

    def number(self, what: str = "a whole number") -> int:
        """One whole number."""
        token = self.token
        if token is None or token.kind is not Kind.NUMBER or not token.value.isdigit():
            raise self.unexpected(what)
        self.index += 1
        return int(token.value)

    def until(self, *ends: str | tuple[str, ...], what: str = "an expression") -> Part:
        """The part up to one of these words, a comma or a closing bracket, outside of brackets
        and CASE; it must not be empty. A word may be a tuple of words that follow each other."""
        start = self.offset
        depth = cases = 0
        while (token := self.token) is not None:
            if depth == 0 and cases == 0:
                if token.is_symbol(",", *_CLOSING):
                    break
                if any(self.ahead(*(end if isinstance(end, tuple) else (end,))) for end in ends):
                    break
            if token.is_symbol(*_OPENING):
                depth += 1
            elif token.is_symbol(*_CLOSING):
                depth -= 1
            elif token.is_word("case"):
                cases += 1
            elif token.is_word("end") and cases:
                cases -= 1
            self.index += 1
        return self._part(start, what)

    def rest(self, what: str) -> Part:
        """Everything that is left."""
        start = self.offset
        self.index = len(self.tokens)
        return self._part(start, what)

    def list_until(self, *ends: str | tuple[str, ...], what: str = "an expression") -> list[Part]:
        """Parts separated by commas."""
        found = [self.until(*ends, what=what)]
        while self.take_symbol(","):
            found.append(self.until(*ends, what=what))
        return found

    def bracketed(self, what: str = "an expression") -> list[Part]:
        """Parts separated by commas, in round brackets."""
        self.expect_symbol("(")
        found = self.list_until(what=what)
        self.expect_symbol(")")
        return found

    def bracketed_or_empty(self) -> None:
        """Step over round brackets, with parts in them or without."""
        following = self.tokens[self.index + 1 : self.index + 2]
        if following and following[0].is_symbol(")"):
            self.index += 2
        else:
            self.bracketed()

    def _part(self, start: int, what: str) -> Part:
        if self.index == 0 or self.tokens[self.index - 1].end <= start:
            raise self.unexpected(what)
        return Part(start, self.tokens[self.index - 1].end)


@dataclass(frozen=True, slots=True)
class Name:
    """A name of several parts, and where it stands."""

    parts: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return ".".join(self.parts)


def chain(cursor: Cursor, what: str = "a table") -> Name:
    """A dotted name."""
    start = cursor.offset
    parts = [cursor.name(what)]
    while cursor.take_symbol("."):
        parts.append(cursor.name("a name after the dot"))
    return Name(tuple(parts), start, cursor.tokens[cursor.index - 1].end)
