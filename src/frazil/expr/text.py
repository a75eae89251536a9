"""Filter text to bound expressions: a small recursive-descent parser.

    filter     := conjunct ("or" conjunct)*
    conjunct   := negation ("and" negation)*
    negation   := "not" negation | "(" filter ")" | predicate
    predicate  := operand ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") operand
                | column "is" ["not"] ("null" | "nan" | "true" | "false")
                | column ["not"] "in" "(" literal ("," literal)* ")"
                | column ["not"] "between" literal "and" literal
                | column ["not"] "like" string | column ["not"] "starts" "with" string
                | column | "true" | "false"
    column     := name ("." name)*      a name may be "quoted" or `quoted`
    literal    := 'text' | number | "true" | "false" | X'00ff'
                | date '…' | timestamp '…' | time '…' | uuid '…'

It accepts what PyIceberg's own parser accepts, and adds typed literals, NOT BETWEEN, exponents,
mixed numbers in lists, bare boolean columns, and errors that point at the spot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    UUIDLiteral,
)
from pyiceberg.types import (
    BooleanType,
    DateType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)
from pyiceberg.utils.datetime import date_to_days

from frazil.errors import InvalidInput
from frazil.expr.bind import conjunction, disjunction, predicate
from frazil.expr.columns import Column, ColumnIndex
from frazil.expr.literals import place
from frazil.expr.operators import Op
from frazil.expr.tokens import Kind, Token, problem_at, tokens

_COMPARISONS: Final = {
    "=": Op.EQ,
    "==": Op.EQ,
    "!=": Op.NE,
    "<>": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
}
_RESERVED: Final = frozenset(
    {"and", "or", "not", "is", "in", "like", "between", "null", "nan", "true", "false"}
)
_TYPED: Final = frozenset({"date", "timestamp", "time", "uuid"})
_TEMPORAL: Final = (
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)
MAX_DEPTH: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """A literal and where it stands."""

    literal: Literal[Any]
    position: int
    is_number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A column and where it stands."""

    column: Column
    position: int
    quoted: bool


def parse_text(
    text: str, columns: ColumnIndex, *, case_sensitive: bool = True
) -> BooleanExpression:
    """The filter that the text says, bound to the columns."""
    return _Parser(text, columns, case_sensitive).whole()


class _Parser:
    """One pass over the tokens of one filter."""

    def __init__(self, text: str, columns: ColumnIndex, case_sensitive: bool) -> None:
        self._text = text
        self._columns = columns
        self._case_sensitive = case_sensitive
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    # --- tokens ---

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _following(self) -> Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _take_word(self, *words: str) -> bool:
        if self._token.is_word(*words):
            self._next += 1
            return True
        return False

    def _expect(self, what: str, *, symbol: str = "", word: str = "") -> Token:
        if self._token.is_symbol(symbol) or self._token.is_word(word):
            return self._advance()
        raise self._unexpected(what)

    def _unexpected(self, expected: str) -> InvalidInput:
        return self._problem(self._token.position, f"expected {expected}, found {self._token}")

    def _problem(self, position: int, problem: str) -> InvalidInput:
        return problem_at(self._text, position, problem)

    # --- boolean structure ---

    def whole(self) -> BooleanExpression:
        found = self._disjunction(negated=False)
        if not self._at_end():
            raise self._unexpected("AND, OR or the end")
        return found

    def _disjunction(self, *, negated: bool) -> BooleanExpression:
        parts = [self._conjunction(negated=negated)]
        while self._take_word("or"):
            parts.append(self._conjunction(negated=negated))
        return conjunction(parts) if negated else disjunction(parts)

    def _conjunction(self, *, negated: bool) -> BooleanExpression:
        parts = [self._negation(negated=negated)]
        while self._take_word("and"):
            parts.append(self._negation(negated=negated))
        return disjunction(parts) if negated else conjunction(parts)

    def _negation(self, *, negated: bool) -> BooleanExpression:
        while self._take_word("not"):
            negated = not negated
        if not self._token.is_symbol("("):
            return self._predicate(negated=negated)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._problem(
                self._token.position, f"parentheses are nested deeper than {MAX_DEPTH}"
            )
        self._advance()
        found = self._disjunction(negated=negated)
        self._expect("AND, OR or ')'", symbol=")")
        self._depth -= 1
        return found

    # --- predicates ---

    def _predicate(self, *, negated: bool) -> BooleanExpression:
        left = self._operand()
        if self._token.kind is Kind.SYMBOL and self._token.value in _COMPARISONS:
            sign = self._advance()
            op = _COMPARISONS[sign.value]
            return self._comparison(left, op.negated if negated else op, self._operand())
        if isinstance(left, _Value):
            if isinstance(left.literal, BooleanLiteral):
                return AlwaysTrue() if left.literal.value != negated else AlwaysFalse()
            raise self._unexpected("a comparison such as = or <")
        if self._take_word("is"):
            return self._is(left, negated=negated != self._take_word("not"))
        negated = negated != self._take_word("not")
        if self._take_word("in"):
            return self._in(left, negated=negated)
        if self._take_word("between"):
            return self._between(left, negated=negated)
        if self._take_word("like"):
            return self._like(left, negated=negated)
        if self._token.is_word("starts") and self._following.is_word("with"):
            self._next += 2
            return self._make(Op.STARTS_WITH, left, [self._string()], negated=negated)
        if isinstance(left.column.field.field_type, BooleanType) and self._ends_predicate():
            return self._flag(left, value=True, negated=negated)
        raise self._unexpected("a comparison such as =, <, IN, LIKE, BETWEEN or IS NULL")

    def _at_end(self) -> bool:
        return self._token.kind is Kind.END

    def _ends_predicate(self) -> bool:
        token = self._token
        return self._at_end() or token.is_word("and", "or") or token.is_symbol(")")

    def _comparison(
        self, left: _Named | _Value, op: Op, right: _Named | _Value
    ) -> BooleanExpression:
        if isinstance(left, _Named) and isinstance(right, _Named):
            hint = " (text is written in 'single quotes')" if right.quoted else ""
            raise self._problem(
                right.position, f"expected a value, found column '{right.column.name}'{hint}"
            )
        if isinstance(left, _Named) and isinstance(right, _Value):
            return self._make(op, left, [right])
        if isinstance(left, _Value) and isinstance(right, _Named):
            return self._make(op.mirrored, right, [left])
        assert isinstance(left, _Value)
        assert isinstance(right, _Value)
        return self._constant(left, op, right)

    def _constant(self, left: _Value, op: Op, right: _Value) -> BooleanExpression:
        """Two literals, as in the `1 = 1` that query builders write."""
        a, b = left.literal.value, right.literal.value
        if left.is_number != right.is_number or (not left.is_number and type(a) is not type(b)):
            raise self._problem(right.position, f"{a!r} cannot be compared with {b!r}")
        truth = {
            Op.EQ: a == b,
            Op.NE: a != b,
            Op.LT: a < b,
            Op.LE: a <= b,
            Op.GT: a > b,
            Op.GE: a >= b,
        }[op]
        return AlwaysTrue() if truth else AlwaysFalse()

    def _is(self, named: _Named, *, negated: bool) -> BooleanExpression:
        if self._take_word("null"):
            return self._make(Op.IS_NULL, named, [], negated=negated)
        if self._take_word("nan"):
            return self._make(Op.IS_NAN, named, [], negated=negated)
        for word, value in (("true", True), ("false", False)):
            if self._take_word(word):
                # IS [NOT] TRUE is never null: IS NOT TRUE holds for a null.
                flag = self._flag(named, value=value, negated=negated)
                if not negated:
                    return flag
                return disjunction([flag, self._make(Op.IS_NULL, named, [])])
        raise self._unexpected("NULL, NAN, TRUE or FALSE")

    def _in(self, named: _Named, *, negated: bool) -> BooleanExpression:
        self._expect("'('", symbol="(")
        values = [self._literal()]
        while self._token.is_symbol(","):
            self._advance()
            values.append(self._literal())
        self._expect("',' or ')'", symbol=")")
        return self._make(Op.IN, named, values, negated=negated)

    def _between(self, named: _Named, *, negated: bool) -> BooleanExpression:
        low = self._literal()
        self._expect("AND", word="and")
        high = self._literal()
        parts = [
            self._make(Op.GE, named, [low], negated=negated),
            self._make(Op.LE, named, [high], negated=negated),
        ]
        return disjunction(parts) if negated else conjunction(parts)

    def _like(self, named: _Named, *, negated: bool) -> BooleanExpression:
        pattern = self._string()
        prefix, wild = self._pattern(pattern)
        value = _Value(literal=StringLiteral(prefix), position=pattern.position)
        return self._make(Op.STARTS_WITH if wild else Op.EQ, named, [value], negated=negated)

    def _pattern(self, value: _Value) -> tuple[str, bool]:
        """The literal part of a LIKE pattern, and whether anything may follow it."""
        pattern: str = value.literal.value
        plain: list[str] = []
        index = 0
        while index < len(pattern):
            character = pattern[index]
            if character == "\\" and pattern[index + 1 : index + 2] in ("%", "_", "\\"):
                plain.append(pattern[index + 1])
                index += 2
                continue
            if character == "%" and pattern[index:].strip("%") == "":
                return "".join(plain), True
            if character in "%_":
                raise self._problem(
                    value.position,
                    f"LIKE can only match a beginning, such as 'abc%'; write \\{character} "
                    f"for the character {character} itself",
                )
            plain.append(character)
            index += 1
        return "".join(plain), False

    def _flag(self, named: _Named, *, value: bool, negated: bool) -> BooleanExpression:
        literal = _Value(literal=BooleanLiteral(value), position=named.position)
        return self._make(Op.EQ, named, [literal], negated=negated)

    def _make(
        self, op: Op, named: _Named, values: Sequence[_Value], *, negated: bool = False
    ) -> BooleanExpression:
        type_ = named.column.field.field_type
        for value in values:
            if value.is_number and isinstance(type_, _TEMPORAL):
                raise self._problem(
                    value.position,
                    f"column '{named.column.name}' is a {type_}; write its values in quotes, "
                    "such as '2024-01-15'",
                )
            if type_.is_primitive:
                try:
                    place(value.literal, type_)
                except InvalidInput as problem:
                    raise self._problem(
                        value.position, f"column '{named.column.name}': {problem}"
                    ) from None
        try:
            return predicate(
                op.negated if negated else op, named.column, [value.literal for value in values]
            )
        except InvalidInput as problem:
            raise self._problem(named.position, str(problem)) from None

    # --- operands ---

    def _operand(self) -> _Named | _Value:
        token = self._token
        if token.kind is Kind.NAME:
            return self._column()
        if token.kind is Kind.WORD:
            word = token.value.lower()
            typed = word in _TYPED and self._following.kind is Kind.STRING
            if word not in _RESERVED and not typed:
                return self._column()
        return self._literal()

    def _column(self) -> _Named:
        first = self._token
        parts = [self._name()]
        while self._token.is_symbol("."):
            self._advance()
            parts.append(self._name())
        try:
            column = self._columns.named(".".join(parts), case_sensitive=self._case_sensitive)
        except InvalidInput as problem:
            hint = ""
            if first.kind is Kind.NAME:
                hint = " Text is written in 'single quotes'."
            raise self._problem(first.position, f"{problem}.{hint}") from None
        return _Named(column=column, position=first.position, quoted=first.kind is Kind.NAME)

    def _name(self) -> str:
        if self._token.kind not in (Kind.WORD, Kind.NAME):
            raise self._unexpected("a column name")
        return self._advance().value

    def _string(self) -> _Value:
        if self._token.kind is not Kind.STRING:
            raise self._unexpected("text in single quotes")
        token = self._advance()
        return _Value(literal=StringLiteral(token.value), position=token.position)

    def _literal(self) -> _Value:
        token = self._token
        at = token.position
        if token.kind is Kind.STRING:
            return self._string()
        if token.kind is Kind.NUMBER or token.is_symbol("-", "+"):
            return self._number()
        if token.kind is Kind.BYTES:
            self._advance()
            try:
                return _Value(literal=BinaryLiteral(bytes.fromhex(token.value)), position=at)
            except ValueError:
                raise self._problem(at, "X'…' takes pairs of hexadecimal digits") from None
        if token.is_word("true", "false"):
            self._advance()
            return _Value(literal=BooleanLiteral(token.value.lower() == "true"), position=at)
        if token.is_word("null", "nan"):
            name = token.value.upper()
            raise self._problem(at, f"nothing equals {name}; write IS {name} or IS NOT {name}")
        if token.is_word(*_TYPED) and self._following.kind is Kind.STRING:
            return self._typed()
        raise self._unexpected("a value")

    def _number(self) -> _Value:
        at = self._token.position
        sign = self._advance().value if self._token.kind is Kind.SYMBOL else ""
        if self._token.kind is not Kind.NUMBER:
            raise self._unexpected("a number")
        digits = self._advance().value
        literal: Literal[Any]
        if digits.isdecimal() and len(digits) < 100:
            literal = LongLiteral(int(sign + digits))
        else:
            try:
                literal = DecimalLiteral(Decimal(sign + digits))
            except InvalidOperation:
                raise self._problem(at, "the exponent is too large") from None
        return _Value(literal=literal, position=at, is_number=True)

    def _typed(self) -> _Value:
        word = self._advance().value.lower()
        value = self._string()
        text: str = value.literal.value
        literal: Literal[Any] = value.literal
        try:
            if word == "date":
                literal = DateLiteral(date_to_days(date.fromisoformat(text)))
            elif word == "time":
                literal = TimeLiteral(place(value.literal, TimeType()).value)
            elif word == "uuid":
                literal = UUIDLiteral(UUID(text).bytes)
            else:
                place(value.literal, TimestamptzType())
        except (InvalidInput, ValueError) as problem:
            raise self._problem(value.position, str(problem)) from None
        return _Value(literal=literal, position=value.position)
