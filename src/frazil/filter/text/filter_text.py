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
                | date '…' | timestamp '…' | timestamptz '…' | time '…' | uuid '…'

It accepts what PyIceberg's own parser accepts (but for escapes in LIKE), and adds typed literals,
NOT BETWEEN, exponents, mixed numbers in lists, bare boolean columns, and errors that point at the
spot. What it accepts means the same in SQL; other SQL is for an engine (`frazil.filter.condition`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from frazil.errors import InvalidInput
from frazil.filter.bind.bind import bind, conjunction, disjunction, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import place
from frazil.filter.text.cursor import RESERVED, TYPED, Cursor, Named, Value
from frazil.filter.text.tokens import Kind
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Op
from frazil.iceberg.literals import BooleanLiteral, StringLiteral
from frazil.iceberg.pyiceberg_values import AnyExpression, from_pyiceberg
from frazil.iceberg.schema import Schema

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
_TEMPORAL: Final = (
    ice.DateType,
    ice.TimeType,
    ice.TimestampType,
    ice.TimestamptzType,
    ice.TimestampNanoType,
    ice.TimestamptzNanoType,
)


_CACHED_CHARS: Final = 1_000
"""A filter is often asked again. A long one lists values of its own, and would hold memory."""


@lru_cache(maxsize=256)
def _parsed(text: str, schema: Schema, *, case_sensitive: bool) -> BooleanExpression:
    return parse_text(text, ColumnIndex.of(schema), case_sensitive=case_sensitive)


def parse_text(
    text: str, columns: ColumnIndex, *, case_sensitive: bool = True
) -> BooleanExpression:
    """The filter that the text says, bound to the columns."""
    return _Parser(text, columns, case_sensitive=case_sensitive).whole()


class _Parser(Cursor):
    """One pass over the tokens of one filter."""

    # --- boolean structure ---

    def whole(self) -> BooleanExpression:
        expression = self._disjunction(negated=False)
        if not self.at_end():
            raise self.unexpected("AND, OR or the end")
        return expression

    def _disjunction(self, *, negated: bool) -> BooleanExpression:
        parts = [self._conjunction(negated=negated)]
        while self.take_word("or"):
            parts.append(self._conjunction(negated=negated))
        return conjunction(parts) if negated else disjunction(parts)

    def _conjunction(self, *, negated: bool) -> BooleanExpression:
        parts = [self._negation(negated=negated)]
        while self.take_word("and"):
            parts.append(self._negation(negated=negated))
        return disjunction(parts) if negated else conjunction(parts)

    def _negation(self, *, negated: bool) -> BooleanExpression:
        while self.take_word("not"):
            negated = not negated
        if not self.token.is_symbol("("):
            return self._predicate(negated=negated)
        with self.nested():
            self.advance()
            expression = self._disjunction(negated=negated)
            self.expect("AND, OR or ')'", symbol=")")
        return expression

    # --- predicates ---

    def _predicate(self, *, negated: bool) -> BooleanExpression:
        left = self._operand()
        if self.token.kind is Kind.SYMBOL and self.token.value in _COMPARISONS:
            sign = self.advance()
            op = _COMPARISONS[sign.value]
            return self._comparison(left, op.negated if negated else op, self._operand())
        if isinstance(left, Value):
            if isinstance(left.literal, BooleanLiteral):
                return AlwaysTrue() if left.literal.value != negated else AlwaysFalse()
            raise self.unexpected("a comparison such as = or <")
        if self.take_word("is"):
            return self._is(left, negated=negated != self.take_word("not"))
        negated = negated != self.take_word("not")
        if self.take_word("in"):
            return self._in(left, negated=negated)
        if self.take_word("between"):
            return self._between(left, negated=negated)
        if self.take_word("like"):
            return self._like(left, negated=negated)
        if self.token.is_word("starts") and self.following.is_word("with"):
            self.index += 2
            return self._make(Op.STARTS_WITH, left, [self.string()], negated=negated)
        if isinstance(left.column.field.field_type, ice.BooleanType) and self._ends_predicate():
            return self._flag(left, value=True, negated=negated)
        raise self.unexpected("a comparison such as =, <, IN, LIKE, BETWEEN or IS NULL")

    def _ends_predicate(self) -> bool:
        token = self.token
        return self.at_end() or token.is_word("and", "or") or token.is_symbol(")")

    def _comparison(self, left: Named | Value, op: Op, right: Named | Value) -> BooleanExpression:
        if isinstance(left, Named) and isinstance(right, Named):
            hint = " (text is written in 'single quotes')" if right.quoted else ""
            raise self.problem(
                right.position, f"expected a value, found column '{right.column.name}'{hint}"
            )
        if isinstance(left, Named) and isinstance(right, Value):
            return self._make(op, left, [right])
        if isinstance(left, Value) and isinstance(right, Named):
            return self._make(op.mirrored, right, [left])
        assert isinstance(left, Value)
        assert isinstance(right, Value)
        return self._constant(left, op, right)

    def _constant(self, left: Value, op: Op, right: Value) -> BooleanExpression:
        """Two literals, as in the `1 = 1` that query builders write."""
        a, b = left.literal.value, right.literal.value
        if left.is_number != right.is_number or (not left.is_number and type(a) is not type(b)):
            raise self.problem(right.position, f"{a!r} cannot be compared with {b!r}")
        truth = {
            Op.EQ: a == b,
            Op.NE: a != b,
            Op.LT: a < b,
            Op.LE: a <= b,
            Op.GT: a > b,
            Op.GE: a >= b,
        }[op]
        return AlwaysTrue() if truth else AlwaysFalse()

    def _is(self, named: Named, *, negated: bool) -> BooleanExpression:
        if self.take_word("null"):
            return self._make(Op.IS_NULL, named, [], negated=negated)
        if self.take_word("nan"):
            return self._make(Op.IS_NAN, named, [], negated=negated)
        for word, value in (("true", True), ("false", False)):
            if self.take_word(word):
                # IS [NOT] TRUE is never null: IS NOT TRUE holds for a null.
                flag = self._flag(named, value=value, negated=negated)
                if not negated:
                    return flag
                return disjunction([flag, self._make(Op.IS_NULL, named, [])])
        raise self.unexpected("NULL, NAN, TRUE or FALSE")

    def _in(self, named: Named, *, negated: bool) -> BooleanExpression:
        self.expect("'('", symbol="(")
        values = [self.literal()]
        while self.token.is_symbol(","):
            self.advance()
            values.append(self.literal())
        self.expect("',' or ')'", symbol=")")
        return self._make(Op.IN, named, values, negated=negated)

    def _between(self, named: Named, *, negated: bool) -> BooleanExpression:
        low = self.literal()
        self.expect("AND", word="and")
        high = self.literal()
        parts = [
            self._make(Op.GE, named, [low], negated=negated),
            self._make(Op.LE, named, [high], negated=negated),
        ]
        return disjunction(parts) if negated else conjunction(parts)

    def _like(self, named: Named, *, negated: bool) -> BooleanExpression:
        pattern = self.string()
        prefix, wild = self._pattern(pattern)
        value = Value(literal=StringLiteral(prefix), position=pattern.position)
        return self._make(Op.STARTS_WITH if wild else Op.EQ, named, [value], negated=negated)

    def _pattern(self, value: Value) -> tuple[str, bool]:
        """The literal part of a LIKE pattern, and whether anything may follow it."""
        pattern: str = value.literal.value
        letters: list[str] = []
        index = 0
        while index < len(pattern):
            character = pattern[index]
            if character == "\\":
                raise self.problem(value.position, "LIKE has no escape character here")
            if character == "%" and pattern[index:].strip("%") == "":
                return "".join(letters), True
            if character in "%_":
                raise self.problem(
                    value.position, "LIKE can only match a beginning here, such as 'abc%'"
                )
            letters.append(character)
            index += 1
        return "".join(letters), False

    def _flag(self, named: Named, *, value: bool, negated: bool) -> BooleanExpression:
        literal = Value(literal=BooleanLiteral(value), position=named.position)
        return self._make(Op.EQ, named, [literal], negated=negated)

    def _make(
        self, op: Op, named: Named, values: Sequence[Value], *, negated: bool = False
    ) -> BooleanExpression:
        type_ = named.column.field.field_type
        for value in values:
            if value.is_number and isinstance(type_, _TEMPORAL):
                raise self.problem(
                    value.position,
                    f"column '{named.column.name}' is a {type_}; write its values in quotes, "
                    "such as '2024-01-15'",
                )
            if type_.is_primitive:
                try:
                    place(value.literal, type_)
                except InvalidInput as problem:
                    error = self.problem(value.position, f"column '{named.column.name}': {problem}")
                    error.is_certain = problem.is_certain
                    raise error from None
        try:
            return predicate(
                op.negated if negated else op, named.column, [value.literal for value in values]
            )
        except InvalidInput as problem:
            raise self.problem(named.position, str(problem)) from None

    # --- operands ---

    def _operand(self) -> Named | Value:
        token = self.token
        if token.kind is Kind.NAME:
            return self.column()
        if token.kind is Kind.WORD:
            word = token.value.lower()
            typed = word in TYPED and self.following.kind is Kind.STRING
            if word not in RESERVED and not typed:
                return self.column()
        return self.literal()


def parse(
    where: str | AnyExpression | None, schema: Schema, *, case_sensitive: bool = True
) -> BooleanExpression:
    """A filter bound to the schema, with literals of the columns' types and no NOT.

    None selects every row. Expressions that were bound before, also to an older
    schema, are bound again by field id.
    """
    if where is None:
        return AlwaysTrue()
    where = from_pyiceberg(where)
    if isinstance(where, BooleanExpression):
        return bind(where, ColumnIndex.of(schema), case_sensitive=case_sensitive)
    if not isinstance(where, str):
        raise InvalidInput(
            f"a filter is text or a PyIceberg expression, not {type(where).__name__}"
        )
    if not where.strip():
        raise InvalidInput("the filter is empty; write 'true' to match every row")
    if len(where) <= _CACHED_CHARS:
        return _parsed(where, schema, case_sensitive=case_sensitive)
    return parse_text(where, ColumnIndex.of(schema), case_sensitive=case_sensitive)
