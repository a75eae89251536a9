"""One JSON object being read: fields are taken out by name and type, what is left is unknown.

Every refusal is a `FormatError` that names the file and the field. A reader that gives a list for
`rejected` gets the refusals of values that can be done without in it instead: they are left out, so
that one bad value does not hide everything else. Knows nothing of what the fields mean.
"""

from __future__ import annotations

import json
import re
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


_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number there")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


class Fields:
    """A JSON object, the place it was found at, and the fields that have not been read yet."""

    __slots__ = ("at", "path", "rejected", "values")

    def __init__(
        self, values: Any, *, path: str, at: str = "", rejected: list[FormatError] | None = None
    ) -> None:
        self.path = path
        self.at = at
        self.rejected = rejected
        if not isinstance(values, dict):
            raise FormatError(
                f"is {kind_of(values)}; expected an object", path=path, field=at or None
            )
        self.values: dict[str, Any] = dict(values)

    @classmethod
    def parsed(cls, data: bytes, *, path: str, rejected: list[FormatError] | None = None) -> Fields:
        """The object a JSON text holds."""
        try:
            text = data.decode("utf-8")
            if rejected is None:
                return cls(_decoder.decode(text), path=path)
            return cls(_mended(text, path, rejected), path=path, rejected=rejected)
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

    def spoil(self, error: FormatError) -> None:
        """Note a value that is left out; without a list for it, refuse."""
        if self.rejected is None:
            raise error
        self.rejected.append(error)

    def take(self, key: str, kind: type[Value]) -> Value | None:
        """Take a field out; a missing one and null are the same."""
        value = self.values.pop(key, None)
        try:
            return self._checked(key, value, kind)
        except FormatError as error:
            self.spoil(error)
            return None

    def need(self, key: str, kind: type[Value]) -> Value:
        """Take a field out that must be there."""
        value = self._checked(key, self.values.pop(key, None), kind)
        if value is None:
            raise self.bad(key, f"is missing; expected {_KINDS[kind]}")
        return value

    def _checked(self, key: str, value: Any, kind: type[Value]) -> Value | None:
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(key, f"is {kind_of(value)}; expected {_KINDS[kind]}")
        if isinstance(value, int) and value not in _LONG:
            raise self.bad(key, "does not fit in 64 bits")
        return value

    def inner(self, key: str) -> Fields:
        """Take an object out; a missing one is empty."""
        values = self.take(key, dict) or {}
        return Fields(values, path=self.path, at=self.name(key), rejected=self.rejected)

    def objects(self, key: str) -> list[Fields]:
        """Take a list of objects out; a missing one is empty."""
        items = self.take(key, list) or []
        return [
            Fields(item, path=self.path, at=f"{self.name(key)}[{i}]", rejected=self.rejected)
            for i, item in enumerate(items)
        ]

    def texts(self, key: str) -> dict[str, str]:
        """Take an object out whose values are all text."""
        values = self.take(key, dict) or {}
        texts: dict[str, str] = {}
        for name, value in values.items():
            if isinstance(value, str):
                texts[name] = value
            else:
                problem = f"is {kind_of(value)}; expected text"
                self.spoil(self.bad(f"{key}.{name}", problem))
        return texts


def _mended(text: str, path: str, rejected: list[FormatError]) -> Any:
    """The JSON in a text, with null for numbers JSON does not have and U+FFFD for halves of
    characters, which nothing could store or show."""

    def constant(name: str) -> None:
        rejected.append(FormatError(f"{name} is not a number in JSON", path=path))

    document = json.loads(text, parse_constant=constant)
    return _whole(document, path, rejected) if "\\ud" in text.lower() else document


def _whole(value: Any, path: str, rejected: list[FormatError]) -> Any:
    if isinstance(value, str):
        clean = _SURROGATE.sub("\ufffd", value)
        if clean != value:
            rejected.append(FormatError(f"{value!r} is not valid Unicode", path=path))
        return clean
    if isinstance(value, list):
        return [_whole(item, path, rejected) for item in value]
    if isinstance(value, dict):
        return {
            _whole(key, path, rejected): _whole(item, path, rejected) for key, item in value.items()
        }
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)
