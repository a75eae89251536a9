"""Types from text: `long`, `decimal(10,2)`, `list<string>`, `struct<a: int, b: map<string, date>>`.

Accepts Iceberg's own spelling (also with `required`, `optional` and field ids, as schemas print)
and the common SQL names (`bigint`, `varchar(20)`, `numeric`). Field ids inside nested types are
placeholders, counted from 1: real ones are assigned when the type is put into a schema.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Final

from frazil.errors import InvalidInput
from frazil.format.checks import repeated
from frazil.iceberg import types as ice
from frazil.iceberg.types import VariantType

_PLAIN: Final[dict[str, ice.PrimitiveType]] = {
    "boolean": ice.BooleanType(),
    "bool": ice.BooleanType(),
    "tinyint": ice.IntegerType(),
    "smallint": ice.IntegerType(),
    "int": ice.IntegerType(),
    "integer": ice.IntegerType(),
    "bigint": ice.LongType(),
    "long": ice.LongType(),
    "float": ice.FloatType(),
    "real": ice.FloatType(),
    "double": ice.DoubleType(),
    "date": ice.DateType(),
    "time": ice.TimeType(),
    "timestamp": ice.TimestampType(),
    "timestamp_ntz": ice.TimestampType(),
    "timestamptz": ice.TimestamptzType(),
    "timestamp_ns": ice.TimestampNanoType(),
    "timestamptz_ns": ice.TimestamptzNanoType(),
    "string": ice.StringType(),
    "text": ice.StringType(),
    "varchar": ice.StringType(),
    "char": ice.StringType(),
    "uuid": ice.UUIDType(),
    "binary": ice.BinaryType(),
    "bytes": ice.BinaryType(),
    "varbinary": ice.BinaryType(),
    "unknown": ice.UnknownType(),
    "variant": VariantType(),
}
_SIZED_TEXT: Final = frozenset({"varchar", "char"})
_DECIMALS: Final = frozenset({"decimal", "numeric"})
_UNSIZED: Final = [18, 3]
"""Digits of a decimal that names none, as in DuckDB, which evaluates expressions."""
_TOKEN: Final = re.compile(r"\s*(?:(\w+)|\"([^\"]+)\"|`([^`]+)`|([<>,:()\[\]]))")
_MAX_DIGITS: Final = 38
_MAX_DEPTH: Final = 50


def parse_type(text: str) -> ice.IcebergType:
    """The type that the text names."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{text!r} is not a type; write one like 'long' or 'decimal(10,2)'")
    return _Parser(text).whole()


class _Parser:
    """One pass over the text of one type."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._quoted: set[int] = set()
        self._index = 0
        self._depth = 0
        self._ids = count(1)
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._problem(f"unexpected {text[position:].strip()[0]!r}")
            if match[2] or match[3]:
                self._quoted.add(len(self._tokens))
            self._tokens.append(next(group for group in match.groups() if group is not None))
            position = match.end()

    def whole(self) -> ice.IcebergType:
        type_ = self._type()
        if self._index < len(self._tokens):
            raise self._problem(f"unexpected {self._token!r} after the type")
        return type_

    @property
    def _token(self) -> str:
        return self._tokens[self._index] if self._index < len(self._tokens) else ""

    def _problem(self, problem: str) -> InvalidInput:
        return InvalidInput(f"type '{self._text}': {problem}")

    def _take(self, *words: str) -> bool:
        if self._token.lower() in words and self._token:
            self._index += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._problem(f"expected '{word}', found {self._token or 'the end'!r}")

    def _word(self, what: str) -> str:
        token = self._token
        if not token or (self._index not in self._quoted and not re.fullmatch(r"\w+", token)):
            raise self._problem(f"expected {what}, found {token or 'the end'!r}")
        self._index += 1
        return token

    def _type(self) -> ice.IcebergType:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._problem(f"nested deeper than {_MAX_DEPTH}")
        name = self._word("a type").lower()
        type_ = self._nested(name) or self._primitive(name)
        self._depth -= 1
        return type_

    def _nested(self, name: str) -> ice.IcebergType | None:
        if name in ("list", "array"):
            self._expect("<")
            element = self._type()
            self._expect(">")
            return ice.ListType(
                element_id=next(self._ids), element_type=element, element_required=False
            )
        if name == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return ice.MapType(
                key_id=next(self._ids),
                key_type=key,
                value_id=next(self._ids),
                value_type=value,
                value_required=False,
            )
        if name == "struct":
            self._expect("<")
            fields = [self._field()]
            while self._take(","):
                fields.append(self._field())
            self._expect(">")
            names = [field.name for field in fields]
            if twice := repeated(names):
                raise self._problem(f"the field {', '.join(twice)} occurs twice")
            return ice.StructType(*fields)
        return None

    def _field(self) -> ice.NestedField:
        name = self._word("a field name")
        self._take(":")
        if name.isdecimal():  # a field id, as in '1: name: required long'
            name = self._word("a field name")
            self._expect(":")
        required = self._take("required")
        if not required:
            self._take("optional")
        kind = self._type()
        if self._take("not"):
            self._expect("null")
            required = True
        return ice.NestedField(
            field_id=next(self._ids), name=name, field_type=kind, required=required
        )

    def _primitive(self, name: str) -> ice.IcebergType:
        if name in _DECIMALS:
            sizes = self._sizes() or _UNSIZED
            precision, scale = (*sizes, 0)[:2]
            if len(sizes) > 2 or not (1 <= precision <= _MAX_DIGITS and scale <= precision):
                raise self._problem(
                    f"decimal(p,s) takes 1 to {_MAX_DIGITS} digits, s of them after the point"
                )
            return ice.DecimalType(precision, scale)
        if name == "fixed":
            sizes = self._sizes()
            if len(sizes) != 1 or sizes[0] < 1:
                raise self._problem("fixed takes a length: fixed(16)")
            return ice.FixedType(sizes[0])
        type_ = _PLAIN.get(name)
        if type_ is None:
            types = ", ".join(
                (*_PLAIN, "decimal(p,s)", "fixed(n)", "list<…>", "map<…>", "struct<…>")
            )
            raise self._problem(f"'{name}' is not a type. Known types: {types}")
        if name in _SIZED_TEXT:
            self._sizes()
        return type_

    def _sizes(self) -> list[int]:
        """Numbers in round or square brackets; none when there are no brackets."""
        if not (closing := ")" if self._take("(") else "]" if self._take("[") else ""):
            return []
        sizes: list[int] = []
        while True:
            number = self._word("a number")
            if not number.isdecimal() or len(number) > 9:
                raise self._problem(f"expected a number, found {number!r}")
            sizes.append(int(number))
            if not self._take(","):
                break
        self._expect(closing)
        return sizes
