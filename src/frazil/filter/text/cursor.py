"""A walk over the tokens of a filter's text.

Names of columns and literals are read here; what may stand around them is the business of the
parser (`filter_text`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final
from uuid import UUID

from frazil.errors import InvalidInput
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import place
from frazil.filter.text.tokens import Kind, Token, problem_at, tokens
from frazil.iceberg import literals
from frazil.iceberg.expressions import Column
from frazil.iceberg.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DecimalLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    UUIDLiteral,
)
from frazil.iceberg.types import TimestamptzType, TimeType
from frazil.value_classes import frozen

RESERVED: Final = frozenset(
    {"and", "or", "not", "is", "in", "like", "between", "null", "nan", "true", "false"}
)
TYPED: Final = frozenset({"date", "timestamp", "timestamptz", "time", "uuid"})


@frozen
class Value:
    """A literal and where it stands."""

    literal: Literal
    position: int
    is_number: bool = False


@frozen
class Named:
    """A column and where it stands."""

    column: Column
    position: int
    quoted: bool


class Cursor:
    """A position in the tokens of one text."""

    max_depth = 100

    def __init__(self, text: str, columns: ColumnIndex, *, case_sensitive: bool) -> None:
        self.text = text
        self._columns = columns
        self._case_sensitive = case_sensitive
        self._tokens = tokens(text)
        self.index = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The token to read next."""
        return self._tokens[self.index]

    @property
    def following(self) -> Token:
        """The token after that."""
        return self._tokens[min(self.index + 1, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        self.index += 1
        return token

    def take_word(self, *words: str) -> bool:
        """Take the next token if it is one of these words."""
        if self.token.is_word(*words):
            self.index += 1
            return True
        return False

    def take_symbol(self, *symbols: str) -> bool:
        """Take the next token if it is one of these symbols."""
        if self.token.is_symbol(*symbols):
            self.index += 1
            return True
        return False

    def expect(self, what: str, *, symbol: str = "", word: str = "") -> Token:
        """Take a token that must be there; `what` describes it in the complaint."""
        if self.token.is_symbol(symbol) or self.token.is_word(word):
            return self.advance()
        raise self.unexpected(what)

    def unexpected(self, expected: str) -> InvalidInput:
        """The complaint that something else was expected here."""
        actual = "end of the filter" if self.at_end() else str(self.token)
        return self.problem(self.token.position, f"expected {expected}, found {actual}")

    def problem(self, position: int, problem: str) -> InvalidInput:
        """A complaint that points at a position."""
        return problem_at(self.text, position, problem)

    def at_end(self) -> bool:
        """Whether all is read."""
        return self.token.kind is Kind.END

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; refuses text that would exhaust the stack."""
        self._depth += 1
        if self._depth > self.max_depth:
            raise self.problem(
                self.token.position, f"parentheses are nested deeper than {self.max_depth}"
            )
        yield
        self._depth -= 1

    def column(self) -> Named:
        """A column by its full name."""
        first = self.token
        parts = [self.name()]
        while self.token.is_symbol("."):
            self.advance()
            parts.append(self.name())
        try:
            column = self._columns.named(".".join(parts), case_sensitive=self._case_sensitive)
        except InvalidInput as problem:
            hint = ""
            if first.kind is Kind.NAME:
                hint = " Text is written in 'single quotes'."
            raise self.problem(first.position, f"{problem}.{hint}") from None
        return Named(column=column, position=first.position, quoted=first.kind is Kind.NAME)

    def name(self) -> str:
        """One part of a name."""
        if self.token.kind not in (Kind.WORD, Kind.NAME):
            raise self.unexpected("a column name")
        return self.advance().value

    def string(self) -> Value:
        """Text in single quotes."""
        if self.token.kind is not Kind.STRING:
            raise self.unexpected("text in single quotes")
        token = self.advance()
        return Value(literal=StringLiteral(token.value), position=token.position)

    def literal(self) -> Value:
        """Any literal."""
        token = self.token
        at = token.position
        if token.kind is Kind.STRING:
            return self.string()
        if token.kind is Kind.NUMBER or token.is_symbol("-", "+"):
            return self.number()
        if token.kind is Kind.BYTES:
            self.advance()
            try:
                return Value(literal=BinaryLiteral(bytes.fromhex(token.value)), position=at)
            except ValueError:
                raise self.problem(at, "X'…' takes pairs of hexadecimal digits") from None
        if token.is_word("true", "false"):
            self.advance()
            return Value(literal=BooleanLiteral(token.value.lower() == "true"), position=at)
        if token.is_word("null", "nan"):
            name = token.value.upper()
            raise self.problem(at, f"nothing equals {name}; write IS {name} or IS NOT {name}")
        if token.is_word(*TYPED) and self.following.kind is Kind.STRING:
            return self.typed()
        raise self.unexpected("a value")

    def number(self) -> Value:
        """A number with or without a sign."""
        at = self.token.position
        sign = self.advance().value if self.token.kind is Kind.SYMBOL else ""
        if self.token.kind is not Kind.NUMBER:
            raise self.unexpected("a number")
        digits = self.advance().value
        literal: Literal
        if digits.isdecimal() and len(digits) < 100:
            literal = LongLiteral(int(sign + digits))
        else:
            try:
                literal = DecimalLiteral(Decimal(sign + digits))
            except InvalidOperation:
                raise self.problem(at, "the exponent is too large") from None
        return Value(literal=literal, position=at, is_number=True)

    def typed(self) -> Value:
        """A literal with its type in front: `date '2024-01-15'`."""
        word = self.advance().value.lower()
        value = self.string()
        text: str = value.literal.value
        literal: Literal = value.literal
        try:
            if word == "date":
                literal = literals.literal(date.fromisoformat(text))
            elif word == "time":
                literal = TimeLiteral(place(value.literal, TimeType()).value)
            elif word == "uuid":
                literal = UUIDLiteral(UUID(text).bytes)
            else:
                place(value.literal, TimestamptzType())
        except (InvalidInput, ValueError) as problem:
            raise self.problem(value.position, str(problem)) from None
        return Value(literal=literal, position=value.position)
