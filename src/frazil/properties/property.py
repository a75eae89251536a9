"""What a property is: a key, how its value is parsed, a default, a text; and the kinds of values.

Knows no property: they are in `frazil.properties.registry`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from frazil.errors import InvalidInput
from frazil.value_classes import dataclass, field, frozen, replace

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import NameMapping

T = TypeVar("T")

_MAX_INTEGER: Final = (1 << 63) - 1
PER_COLUMN: Final = ".column."


@frozen
class Kind(Generic[T]):
    """What a value may be: in words, as a parser, and as a list if there are only a few."""

    expected: str
    parse: Callable[[str], T]
    """Raises ValueError for what is not such a value."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property: a key that ends with a dot stands for one property per column.

    The fields are positional so that a declaration reads like a row of a table.
    """

    key: str
    kind: Kind[T]
    default: T
    text: str
    """What it means, in Markdown."""
    default_text: str | None = field(default=None, kw_only=True)
    """The default in words, in Markdown, where the value does not say it."""

    def of(self, properties: Mapping[str, str]) -> T:
        """The value that properties have, or the default; InvalidInput for one that is not such."""
        value = properties.get(self.key)
        if value is None:
            return self.default
        try:
            return self.kind.parse(value)
        except ValueError:
            raise InvalidInput(self.problem(value)) from None

    def lenient(self, properties: Mapping[str, str], *, otherwise: T) -> T:
        """The same, but `otherwise` for a value that only another engine could have stored."""
        try:
            return self.of(properties)
        except InvalidInput:
            return otherwise

    def problem(self, value: str) -> str:
        """What is wrong with a value."""
        return f"property {self.key} is {value!r}; expected {self.kind.expected}"

    def accepts(self, value: str) -> bool:
        """Whether the value may be set."""
        try:
            self.kind.parse(value)
        except ValueError:
            return False
        return True

    @property
    def is_per_column(self) -> bool:
        """Whether there is one such property per column."""
        return self.key.endswith(PER_COLUMN)

    @property
    def shown_key(self) -> str:
        """The key as documentation spells it."""
        return f"{self.key}<name>" if self.is_per_column else self.key

    @property
    def shown_default(self) -> str:
        """The default as documentation spells it, in Markdown."""
        if self.default_text is not None:
            return self.default_text
        if self.default is None:
            return ""
        if isinstance(self.default, bool):
            return f"`{str(self.default).lower()}`"
        return f"`{self.default}`" if isinstance(self.default, str) else str(self.default)

    def for_column(self, name: str) -> Property[T]:
        """The property of one column."""
        return replace(self, key=self.key + name)

    def columns(self, properties: Mapping[str, str]) -> Iterator[str]:
        """The columns that have such a property."""
        return (key.removeprefix(self.key) for key in properties if key.startswith(self.key))


def whole(low: int, high: int = _MAX_INTEGER) -> Kind[int]:
    """Whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            raise ValueError(text)
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    if high != _MAX_INTEGER:
        return Kind(expected=f"a whole number from {low} to {high}", parse=parse)
    return Kind(expected=f"a whole number, {low} or more", parse=parse)


def between(low: float, high: float, *, closed: bool) -> Kind[float]:
    """Numbers above `low` and below `high`, or equal to it if `closed`."""

    def parse(text: str) -> float:
        value = float(text)
        if not (low < value < high or (closed and value == high)):
            raise ValueError(text)
        return value

    limit = "at most" if closed else "below"
    return Kind(expected=f"a number above {low:g} and {limit} {high:g}", parse=parse)


def choice(*choices: str) -> Kind[str]:
    """One of a few words, in any case."""

    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(text)
        return text.lower()

    if len(choices) == 1:
        return Kind(expected=choices[0], parse=parse, choices=choices)
    words = ", ".join(choices[:-1]) + f" or {choices[-1]}"
    return Kind(expected=words, parse=parse, choices=choices)


def version(*versions: int) -> Kind[int]:
    """One of a few versions of a format."""
    words = choice(*map(str, versions))
    return Kind(
        expected=words.expected, parse=lambda text: int(words.parse(text)), choices=words.choices
    )


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def optional(kind: Kind[T]) -> Kind[T | None]:
    """The same values; the default may be None."""
    return Kind(expected=kind.expected, parse=kind.parse, choices=kind.choices)


def _level(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,3}", text):
        raise ValueError(text)
    return int(text)


def metrics_mode(text: str) -> tuple[str, int | None]:
    """How much of a column's statistics is kept, and the length of truncated bounds."""
    match = re.fullmatch(r"(none|counts|full)|truncate\(([1-9][0-9]{0,9})\)", text.strip().lower())
    if match is None:
        raise ValueError(text)
    return (match[1], None) if match[1] else ("truncate", int(match[2]))


def _name_mapping(text: str) -> NameMapping:
    from frazil.iceberg.name_mapping import parse_mapping

    return parse_mapping(text)


COUNT: Final = whole(0)
SIZE: Final = whole(1)
BOOLEAN: Final = Kind(expected="true or false", parse=_bool, choices=("true", "false"))
TEXT: Final = Kind(expected="text", parse=str)
FOLDER: Final = Kind(expected="a folder", parse=str)
METRICS: Final = Kind(expected="none, counts, full or truncate(n)", parse=metrics_mode)
LEVEL: Final = Kind(expected="a whole number", parse=_level)
MAPPING: Final = Kind(expected="a name mapping as JSON", parse=_name_mapping)
