"""Text to scalar expressions: a small recursive-descent parser.

    expression := conjunct ("or" conjunct)*
    conjunct   := negation ("and" negation)*
    negation   := "not" negation | comparison
    comparison := sum [("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum
                | "is" ["not"] ("null" | "nan" | "true" | "false")
                | ["not"] "in" "(" literal ("," literal)* ")"
                | ["not"] "between" sum "and" sum | ["not"] "like" string]
    sum        := product (("+" | "-" | "||") product)*
    product    := factor (("*" | "/" | "%") factor)*
    factor     := ("-" | "+") factor | "(" expression ")" | "case" … "end"
                | "cast" "(" expression "as" type ")"
                | function "(" [expression ("," expression)*] ")" | column | literal | "null"

Columns and literals are those of filters.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.types import (
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from frazil.errors import InvalidInput
from frazil.expr.cursor import TYPED, Cursor
from frazil.expr.filter_columns import ColumnIndex
from frazil.expr.literals import Where, place
from frazil.expr.scalar import Choice, Constant, Logic, Node, Reference, boolean, cast_to, unified
from frazil.expr.scalar_functions import call
from frazil.expr.scalar_operators import (
    COMPARISONS,
    among,
    arithmetic,
    compared,
    inverted,
    is_nan,
    is_null,
    is_truth,
    joined,
    like,
    negated,
)
from frazil.expr.tokens import Kind
from frazil.expr.type_text import parse_type

_TIMESTAMPS: tuple[IcebergType, ...] = (
    TimestampType(),
    TimestampNanoType(),
    TimestamptzType(),
    TimestamptzNanoType(),
)


def parse_scalar(text: str, columns: ColumnIndex, *, case_sensitive: bool = True) -> Node:
    """The expression that the text says."""
    if not text.strip():
        raise InvalidInput("the expression is empty; write null to clear a column")
    parser = _Parser(text, columns, case_sensitive=case_sensitive, what="expression")
    return parser.whole()


class _Parser(Cursor):
    """One pass over the tokens of one expression."""

    max_depth = 50
    max_tokens = 1000
    """A sum is as deep as it has terms."""

    def whole(self) -> Node:
        if len(self._tokens) > self.max_tokens:
            raise InvalidInput(
                f"the expression has {len(self._tokens)} words and signs; the limit is "
                f"{self.max_tokens}"
            )
        found = self._expression()
        if not self.at_end():
            raise self.unexpected("an operator or the end")
        return found

    def _made(self, position: int, make: Callable[[], Node]) -> Node:
        """What `make` gives; its complaints point at the position."""
        try:
            return make()
        except InvalidInput as problem:
            raise self.problem(position, str(problem)) from None

    def _expression(self) -> Node:
        left = self._conjunct()
        while self.token.is_word("or"):
            left = self._logic(left, self._conjunct, is_and=False)
        return left

    def _conjunct(self) -> Node:
        left = self._negation()
        while self.token.is_word("and"):
            left = self._logic(left, self._negation, is_and=True)
        return left

    def _logic(self, left: Node, right: Callable[[], Node], *, is_and: bool) -> Node:
        at = self.advance().position
        other = right()
        name = "AND" if is_and else "OR"
        return self._made(
            at,
            lambda: Logic(left=boolean(left, name), right=boolean(other, name), is_and=is_and),
        )

    def _negation(self) -> Node:
        at = self.token.position
        if not self.take_word("not"):
            return self._comparison()
        with self.nested():
            found = self._negation()
        return self._made(at, lambda: inverted(boolean(found, "NOT")))

    # --- comparisons ---

    def _comparison(self) -> Node:
        left = self._sum()
        at = self.token.position
        if self.token.kind is Kind.SYMBOL and self.token.value in COMPARISONS:
            sign = self.advance().value
            right = self._sum()
            return self._made(at, lambda: compared(sign, left, right))
        if self.take_word("is"):
            return self._is(left, at)
        negative = self.token.is_word("not") and self.following.is_word("in", "between", "like")
        if negative:
            self.advance()
        found: Node | None = None
        if self.take_word("in"):
            found = self._in(left, at)
        elif self.take_word("between"):
            low = self._sum()
            self.expect("AND", word="and")
            high = self._sum()
            found = self._made(
                at,
                lambda: Logic(
                    left=compared(">=", left, low), right=compared("<=", left, high), is_and=True
                ),
            )
        elif self.take_word("like"):
            pattern = self.string().literal.value
            found = self._made(at, lambda: like(left, pattern))
        if found is None:
            return left
        return inverted(found) if negative else found

    def _is(self, left: Node, at: int) -> Node:
        negative = self.take_word("not")
        if self.take_word("null"):
            found = is_null(left)
        elif self.take_word("nan"):
            found = self._made(at, lambda: is_nan(left))
        elif self.token.is_word("true", "false"):
            value = self.advance().value.lower() == "true"
            found = self._made(at, lambda: is_truth(left, value))
        else:
            raise self.unexpected("NULL, NAN, TRUE or FALSE")
        return inverted(found) if negative else found

    def _in(self, left: Node, at: int) -> Node:
        self.expect("'('", symbol="(")
        items: list[Node] = [Constant.of(self.literal().literal)]
        while self.take_symbol(","):
            items.append(Constant.of(self.literal().literal))
        self.expect("',' or ')'", symbol=")")
        return self._made(at, lambda: among(left, items))

    # --- arithmetic ---

    def _sum(self) -> Node:
        left = self._product()
        while self.token.is_symbol("+", "-", "||"):
            sign = self.advance()
            left = self._combined(sign.value, left, self._product(), sign.position)
        return left

    def _product(self) -> Node:
        left = self._factor()
        while self.token.is_symbol("*", "/", "%"):
            sign = self.advance()
            left = self._combined(sign.value, left, self._factor(), sign.position)
        return left

    def _combined(self, sign: str, left: Node, right: Node, at: int) -> Node:
        if sign == "||":
            return self._made(at, lambda: joined([left, right], "||"))
        return self._made(at, lambda: arithmetic(sign, left, right))

    def _factor(self) -> Node:
        token = self.token
        with self.nested():
            if token.is_symbol("-", "+") and self.following.kind is not Kind.NUMBER:
                self.advance()
                found = self._factor()
                if token.value == "+":
                    return found
                return self._made(token.position, lambda: negated(found))
            if self.take_symbol("("):
                found = self._expression()
                self.expect("an operator or ')'", symbol=")")
                return found
            return self._operand()

    # --- operands ---

    def _operand(self) -> Node:
        token = self.token
        if token.is_word("null"):
            self.advance()
            return Constant.of(None)
        if token.is_word("case"):
            return self._case()
        if token.is_word("cast") and self.following.is_symbol("("):
            return self._cast()
        if token.kind is Kind.WORD and self.following.is_symbol("("):
            return self._call()
        if token.is_word("timestamp") and self.following.kind is Kind.STRING:
            return self._timestamp()
        is_typed = token.is_word(*TYPED) and self.following.kind is Kind.STRING
        named = token.kind in (Kind.WORD, Kind.NAME) and not token.is_word("true", "false")
        if named and not is_typed:
            return self._reference()
        return Constant.of(self.literal().literal)

    def _reference(self) -> Node:
        at = self.token.position
        try:
            return Reference(column=self.column().column)
        except InvalidInput as problem:
            alone = self.at_end() and at == len(self.text) - len(self.text.lstrip())
            hint = f"\n  For the text itself write '{self.text.strip()}'" if alone else ""
            raise InvalidInput(f"{problem}{hint}") from None

    def _call(self) -> Node:
        name = self.advance()
        self.advance()
        arguments: list[Node] = []
        if not self.take_symbol(")"):
            arguments.append(self._expression())
            while self.take_symbol(","):
                arguments.append(self._expression())
            self.expect("',' or ')'", symbol=")")
        return self._made(name.position, lambda: call(name.value, arguments))

    def _cast(self) -> Node:
        at = self.advance().position
        self.advance()
        value = self._expression()
        self.expect("AS and a type", word="as")
        start = self.token.position
        depth = 0
        while not self.at_end() and (depth or not self.token.is_symbol(")")):
            depth += self.token.is_symbol("(") - self.token.is_symbol(")")
            self.advance()
        end = self.expect("')'", symbol=")").position
        return self._made(at, lambda: cast_to(value, parse_type(self.text[start:end])))

    def _case(self) -> Node:
        at = self.advance().position
        if self.token.is_word("then", "else", "end"):
            raise self.unexpected("WHEN")
        subject = None if self.token.is_word("when") else self._expression()
        tests: list[Node] = []
        results: list[Node] = []
        while self.take_word("when"):
            spot = self.token.position
            test = self._expression()
            if subject is not None:
                test = self._made(spot, lambda value=test: compared("=", subject, value))  # type: ignore[misc]
            else:
                test = self._made(spot, lambda value=test: boolean(value, "WHEN"))  # type: ignore[misc]
            tests.append(test)
            self.expect("THEN", word="then")
            results.append(self._expression())
        if not tests:
            raise self.unexpected("WHEN")
        otherwise: Node = Constant.of(None)
        if self.take_word("else"):
            otherwise = self._expression()
        self.expect("WHEN, ELSE or END", word="end")

        def make() -> Node:
            *same, last = unified([*results, otherwise])
            branches = tuple(zip(tests, same, strict=True))
            return Choice(type=last.type, branches=branches, otherwise=last)

        return self._made(at, make)

    def _timestamp(self) -> Node:
        """`timestamp '…'`: with a zone if the text has one, as fine as it is written."""
        self.advance()
        value = self.string()
        problem: InvalidInput | None = None
        for kind in _TIMESTAMPS:
            try:
                if place(value.literal, kind).where is Where.EXACT:
                    return Constant(literal=value.literal, type=kind)
            except InvalidInput as found:
                problem = problem or found
        raise self.problem(value.position, str(problem))
