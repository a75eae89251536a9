"""A cursor over the tokens of one statement, for what DuckDB cannot parse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

from frazil.errors import InvalidInput
from frazil.parser.tokens import Kind, Part, Source, Token
from frazil.value_classes import dataclass

MAX_NAME_PARTS: Final = 64
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_T = TypeVar("_T")
_AFTER_A_LIST: Final = ("as", "from", "limit", "order", "using", "when", "where")


class Cursor:
    """Walks over the tokens of one statement."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = list(tokens)
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
    def following(self) -> Token | None:
        """The token after the next one; None if there is none."""
        return self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None

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

    def take_any(self, *words: str) -> bool:
        """Step over one of these words if it follows."""
        return any(self.take(word) for word in words)

    def is_at(self, *symbols: str) -> bool:
        """Whether one of these symbols follows."""
        return self.token is not None and self.token.is_symbol(*symbols)

    def take_symbol(self, symbol: str) -> bool:
        """Step over a symbol if it follows."""
        token = self.token
        if token is None or token.kind is not Kind.SYMBOL:
            return False
        if symbol == ">" and set(token.value) == {">"}:  # one of the two of list<list<int>>
            self._split(token)
        elif token.value != symbol:
            return False
        self.index += 1
        return True

    def take_comma(self) -> bool:
        """Step over a comma if it follows; whether another part comes. As in DuckDB, a comma may
        stand behind the last one."""
        if not self.take_symbol(","):
            return False
        token = self.token
        return not (token is None or self.is_at(*_CLOSING) or token.is_word(*_AFTER_A_LIST))

    def _split(self, token: Token) -> None:
        self.tokens[self.index : self.index + 1] = [
            Token(Kind.SYMBOL, ">", at, at + 1) for at in range(token.start, token.end)
        ]

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

    def unexpected(self, expected: str) -> InvalidInput:
        """The error for a token that does not fit."""
        token = self.token
        token_text = (
            "the end of the statement"
            if token is None
            else repr(self.source.text[token.start : token.end])
        )
        return self.source.problem(self.offset, f"expected {expected}, found {token_text}")

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
                if not self._is_operator(start) and any(map(self._is_ahead, ends)):
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

    def _is_ahead(self, words: str | tuple[str, ...]) -> bool:
        return self.ahead(*(words if isinstance(words, tuple) else (words,)))

    def _is_operator(self, start: int) -> bool:
        """Whether the next word is the FROM of IS DISTINCT FROM, which ends no expression."""
        before = self.tokens[self.index - 1] if self.index else None
        return (
            before is not None
            and before.start >= start
            and before.is_word("distinct")
            and self.ahead("from")
        )

    def rest(self, what: str) -> Part:
        """Everything that is left."""
        start = self.offset
        self.index = len(self.tokens)
        return self._part(start, what)

    def list_until(self, *ends: str | tuple[str, ...], what: str = "an expression") -> list[Part]:
        """Parts separated by commas."""
        return self.listed(lambda: self.until(*ends, what=what))

    def bracketed(self, what: str = "an expression") -> list[Part]:
        """Parts separated by commas, in round brackets."""
        return self.in_brackets(lambda: self.until(what=what))

    def listed(self, read: Callable[[], _T]) -> list[_T]:
        """What a function reads, as often as commas separate it."""
        items = [read()]
        while self.take_comma():
            items.append(read())
        return items

    def in_brackets(self, read: Callable[[], _T]) -> list[_T]:
        """The same in round brackets."""
        self.expect_symbol("(")
        items = self.listed(read)
        self.expect_symbol(")")
        return items

    def step_over_brackets(self) -> None:
        """Step over round brackets, with parts in them or without."""
        if self.following is not None and self.following.is_symbol(")"):
            self.index += 2
        else:
            self.bracketed()

    def since(self, start: int) -> Part:
        """What was read from an offset on."""
        return Part(start, self.tokens[self.index - 1].end)

    def _part(self, start: int, what: str) -> Part:
        if self.index == 0 or self.tokens[self.index - 1].end <= start:
            raise self.unexpected(what)
        return self.since(start)


@dataclass(frozen=True, slots=True)
class Name:
    """A name of several parts, and where it stands."""

    parts: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return ".".join(self.parts)


def chains(cursor: Cursor, what: str = "a column") -> tuple[Name, ...]:
    """Dotted names, separated by commas."""
    return tuple(cursor.listed(lambda: chain(cursor, what)))


def columns_in_brackets(cursor: Cursor) -> tuple[Name, ...]:
    """The names of columns, in round brackets."""
    return tuple(cursor.in_brackets(lambda: chain(cursor, "a column")))


def chain(cursor: Cursor, what: str = "a table") -> Name:
    """A dotted name."""
    start = cursor.offset
    parts = [cursor.name(what)]
    while cursor.take_symbol("."):
        parts.append(cursor.name("a name after the dot"))
    if len(parts) > MAX_NAME_PARTS:
        raise cursor.source.problem(start, f"a name of {len(parts)} parts (limit {MAX_NAME_PARTS})")
    return Name(tuple(parts), start, cursor.tokens[cursor.index - 1].end)
