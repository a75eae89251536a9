"""One JSON object being read: fields are taken out by name and type, what is left is unknown.

Every refusal is a `FormatError` that names the file and the field. Knows nothing of what the
fields mean.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from frazil.errors import FormatError

Value = TypeVar("Value")

_LONG = range(-(2**63), 2**63)
_KINDS: dict[Any, str] = {
    int: "a whole number",
    str: "text",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    float: "a fraction",
    type(None): "null",
}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number there")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


class Fields:
    """A JSON object, the place it was found at, and the fields nobody has taken yet."""

    __slots__ = ("at", "path", "values")

    def __init__(self, values: Any, *, path: str, at: str = "") -> None:
        self.path = path
        self.at = at
        if not isinstance(values, dict):
            raise FormatError(
                f"is {kind_of(values)}; expected an object", path=path, field=at or None
            )
        self.values: dict[str, Any] = dict(values)

    @classmethod
    def parsed(cls, data: bytes, *, path: str) -> Fields:
        """The object a JSON text holds."""
        try:
            return cls(_decoder.decode(data.decode("utf-8")), path=path)
        except RecursionError as error:
            raise FormatError("is nested too deeply to be table metadata", path=path) from error
        except ValueError as error:
            raise FormatError(f"is not JSON: {error}", path=path) from error

    def bad(self, key: str, problem: str) -> FormatError:
        """The error for one field of this object."""
        return FormatError(problem, path=self.path, field=self.name(key))

    def name(self, key: str) -> str:
        """The full name of a field, for messages."""
        return f"{self.at}.{key}" if self.at else key

    def take(self, key: str, kind: type[Value]) -> Value | None:
        """Take a field out; a missing one and null are the same."""
        value = self.values.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(key, f"is {kind_of(value)}; expected {_KINDS[kind]}")
        if isinstance(value, int) and value not in _LONG:
            raise self.bad(key, "does not fit in 64 bits")
        return value

    def need(self, key: str, kind: type[Value]) -> Value:
        """Take a field out that must be there."""
        value = self.take(key, kind)
        if value is None:
            raise self.bad(key, f"is missing; expected {_KINDS[kind]}")
        return value

    def inner(self, key: str) -> Fields:
        """Take an object out; a missing one is empty."""
        return Fields(self.take(key, dict) or {}, path=self.path, at=self.name(key))

    def each(self, key: str) -> list[Fields]:
        """Take a list of objects out; a missing one is empty."""
        items = self.take(key, list) or []
        return [
            Fields(item, path=self.path, at=f"{self.name(key)}[{i}]")
            for i, item in enumerate(items)
        ]

    def texts(self, key: str) -> dict[str, str]:
        """Take an object out whose values are all text."""
        found = self.take(key, dict) or {}
        for name, value in found.items():
            if not isinstance(value, str):
                raise self.bad(f"{key}.{name}", f"is {kind_of(value)}; expected text")
        return found


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)
