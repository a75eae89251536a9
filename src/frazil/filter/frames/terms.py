"""A condition as data frames say it: columns, values and tests, and which logic they follow.

The libraries differ where a value is missing or is not a number; `Logic` says how. What a term
means in SQL is for `frazil.filter.frames.term_text` to say.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

from frazil.errors import InvalidInput
from frazil.iceberg.expressions import Op
from frazil.value_classes import dataclass


class Logic(Enum):
    """What comparisons with null and with NaN give."""

    POLARS = "polars"
    """Null with null; NaN equals itself and is greater than every number, as in SQL."""
    ARROW = "pyarrow"
    """Null with null, but lists; NaN is neither equal, less nor greater."""
    PANDAS = "pandas"
    """False with null and with NaN, which are one; != is true."""


@dataclass(frozen=True, slots=True)
class Col:
    """A column, or a part of a struct."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Const:
    """A value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two operands."""

    op: Op
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class OneOf:
    """Whether a column has one of these values."""

    column: Col
    values: tuple[Any, ...]
    null_is_value: bool
    """Whether null is a value like any other; if not, nothing holds for it, nor its opposite."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a column is null; where NaN counts as missing, NaN too."""

    column: Col
    or_nan: bool = False


@dataclass(frozen=True, slots=True)
class NotNumber:
    """Whether a column is NaN."""

    column: Col


@dataclass(frozen=True, slots=True)
class HasText:
    """Whether a column starts with, ends with or contains a text."""

    column: Col
    place: Literal["starts_with", "ends_with", "contains"]
    text: str


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Opposite:
    """The part does not hold."""

    part: Term


Operand = Col | Const
Term = Operand | Compared | OneOf | Missing | NotNumber | HasText | All | AnyOf | Opposite

_REGEX: Final = frozenset("\\.^$*+?{}[]|()")


def either_not_both(left: Term, right: Term) -> Term:
    """Exclusive or."""
    return AnyOf((All((left, Opposite(right))), All((Opposite(left), right))))


def refusal(what: str, logic: Logic, hint: str = "") -> InvalidInput:
    """The error for a part that has no meaning as a filter."""
    advice = hint or "write this filter as SQL text, or filter the rows after reading them"
    return InvalidInput(
        f"the {logic.value} expression has {what}, which cannot be translated; {advice}",
        is_certain=True,
    )


def plain_pattern(pattern: Any, logic: Logic) -> str:
    """The text of a regular expression without special characters; they differ by library."""
    if not isinstance(pattern, str):
        raise refusal(f"a pattern that is a {type(pattern).__name__}", logic)
    if not _REGEX.isdisjoint(pattern):
        raise refusal(
            f"the regular expression {pattern!r}",
            logic,
            "search for literal text, or write SQL: regexp_matches(column, '…')",
        )
    return pattern
