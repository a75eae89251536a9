"""Paimon's data types: parsed from schema JSON, shown as Arrow and as Iceberg types.

Knows every type string that Paimon writes (`INT NOT NULL`, `DECIMAL(10, 2)`, `TIMESTAMP(6) WITH
LOCAL TIME ZONE`, …) and the JSON objects of nested types. Does not know rows or files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn

import pyarrow as pa

from frazil.errors import FormatError, Unsupported
from frazil.iceberg import types as iceberg
from frazil.value_classes import frozen, replace


class TypeName(StrEnum):
    """The root of a type, in Paimon's spelling."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"
    ARRAY = "ARRAY"
    VECTOR = "VECTOR"
    MULTISET = "MULTISET"
    MAP = "MAP"
    ROW = "ROW"


MAX_LENGTH: Final = 2**31 - 1
STRINGS: Final = frozenset({TypeName.CHAR, TypeName.VARCHAR})
BINARIES: Final = frozenset({TypeName.BINARY, TypeName.VARBINARY})
TIMESTAMPS: Final = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ})
NESTED: Final = frozenset(
    {TypeName.ARRAY, TypeName.VECTOR, TypeName.MULTISET, TypeName.MAP, TypeName.ROW}
)


@frozen
class DataType:
    """One type. `length`, `precision` and `scale` are set where the root has them."""

    name: TypeName
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    text: str = ""
    element: DataType | None = None
    key: DataType | None = None
    fields: tuple[DataField, ...] = ()

    def __str__(self) -> str:
        return _show(self) + ("" if self.nullable else " NOT NULL")


@frozen
class DataField:
    """A named, numbered column or row field."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default: str | None = None


_ALIASES: Final[Mapping[str, tuple[TypeName, int]]] = {
    "STRING": (TypeName.VARCHAR, MAX_LENGTH),
    "BYTES": (TypeName.VARBINARY, MAX_LENGTH),
    "NUMERIC": (TypeName.DECIMAL, 0),
    "DEC": (TypeName.DECIMAL, 0),
    "INTEGER": (TypeName.INT, 0),
}
_LENGTHS = STRINGS | BINARIES
_PLAIN: Final = frozenset(
    {
        *(TypeName.BOOLEAN, TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT),
        *(TypeName.FLOAT, TypeName.DOUBLE, TypeName.DATE, TypeName.VARIANT, TypeName.BLOB),
    }
)
_DEFAULT_PRECISION: Final = {TypeName.TIME: 0, TypeName.TIMESTAMP: 6, TypeName.TIMESTAMP_LTZ: 6}
_ATOMIC: Final = re.compile(
    r"\s*(?P<word>[A-Za-z_]+)\s*(?:\((?P<args>[^()]*)\))?\s*"
    r"(?P<tail>PRECISION|WITHOUT\s+TIME\s+ZONE|WITH\s+LOCAL\s+TIME\s+ZONE)?\s*"
    r"(?P<null>NOT\s+NULL|NULL)?\s*",
    re.IGNORECASE,
)
_VECTOR: Final = re.compile(
    r"\s*VECTOR\s*<(?P<element>.+),\s*(?P<length>\d+)\s*>\s*(?P<null>NOT\s+NULL|NULL)?\s*",
    re.IGNORECASE,
)
_SUFFIX: Final = re.compile(
    r"(?P<element>.+?)\s+(?P<word>ARRAY|MULTISET)\s*(?P<null>NOT\s+NULL|NULL)?\s*", re.IGNORECASE
)


def parse_type(json: Any) -> DataType:
    """A type from schema JSON: a string for a primitive, an object for a nested type."""
    if isinstance(json, str):
        return _parse_text(" ".join(json.split()))  # the patterns below meet single spaces only
    if isinstance(json, Mapping) and isinstance(json.get("type"), str):
        return _parse_object(json)
    raise FormatError(f"{json!r} is not a type; expected a type string or an object", field="type")


def parse_field(json: Any) -> DataField:
    """A column or row field from schema JSON."""
    if not isinstance(json, Mapping) or "name" not in json or "type" not in json:
        raise FormatError(f"{json!r} is not a field; expected id, name and type", field="fields")
    id, name = json.get("id"), json["name"]
    if not isinstance(id, int) or isinstance(id, bool) or id < 0 or not isinstance(name, str):
        raise FormatError(f"field {name!r} has id {id!r}; expected a number from 0", field="fields")
    description, default = json.get("description"), json.get("defaultValue")
    return DataField(
        id=id,
        name=name,
        type=parse_type(json["type"]),
        description=description if isinstance(description, str) else None,
        default=default if isinstance(default, str) else None,
    )


def _unknown(text: object) -> NoReturn:
    raise FormatError(
        f"unknown type {text!r}. The table may come from a newer Paimon", field="type"
    )


def _is_nullable(null: str | None) -> bool:
    return null is None or null.upper() == "NULL"


def _parse_text(text: str) -> DataType:
    if match := _VECTOR.fullmatch(text):
        return DataType(
            name=TypeName.VECTOR,
            nullable=_is_nullable(match["null"]),
            element=_parse_text(match["element"]),
            length=int(match["length"]),
        )
    if match := _SUFFIX.fullmatch(text):
        return DataType(
            name=TypeName(match["word"].upper()),
            nullable=_is_nullable(match["null"]),
            element=_parse_text(match["element"]),
        )
    match = _ATOMIC.fullmatch(text)
    if match is None:
        _unknown(text)
    word, tail = match["word"].upper(), re.sub(r"\s+", " ", (match["tail"] or "").upper())
    if word in _ALIASES:
        name, length = _ALIASES[word]
    elif word in TypeName.__members__ and TypeName(word) not in NESTED:
        name, length = TypeName(word), 0
    else:
        _unknown(text)
    if tail and not _tail_fits(name, tail):
        _unknown(text)
    if tail == "WITH LOCAL TIME ZONE":
        name = TypeName.TIMESTAMP_LTZ
    parsed = _with_arguments(text, name, match["args"], length)
    return replace(parsed, nullable=_is_nullable(match["null"]))


def _tail_fits(name: TypeName, tail: str) -> bool:
    if tail == "PRECISION":
        return name is TypeName.DOUBLE
    if tail == "WITHOUT TIME ZONE":
        return name in (TypeName.TIME, TypeName.TIMESTAMP)
    return name is TypeName.TIMESTAMP


def _with_arguments(text: str, name: TypeName, args: str | None, length: int) -> DataType:
    if name in (TypeName.GEOMETRY, TypeName.GEOGRAPHY):
        return DataType(name=name, text=(args or "OGC:CRS84").strip())
    words = [] if args is None else [word.strip() for word in args.split(",")]
    if not all(word.isdecimal() and len(word) <= 10 for word in words):
        _unknown(text)
    numbers = [int(word) for word in words]
    if name in _PLAIN or (length and numbers):
        if numbers:
            _unknown(text)
        return DataType(name=name, length=length)
    if name in _LENGTHS and len(numbers) <= 1:
        return DataType(name=name, length=length or (numbers[0] if numbers else 1))
    if name in _DEFAULT_PRECISION and len(numbers) <= 1:
        precision = numbers[0] if numbers else _DEFAULT_PRECISION[name]
        if precision <= 9:
            return DataType(name=name, precision=precision)
    if name is TypeName.DECIMAL and len(numbers) <= 2:
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])
        if 1 <= precision <= 38 and scale <= precision:
            return DataType(name=name, precision=precision, scale=scale)
    _unknown(text)


def _parse_object(json: Mapping[str, Any]) -> DataType:
    text = str(json["type"])
    word = re.split(r"[\s<(]", text.strip(), maxsplit=1)[0].upper()
    nullable = "NOT NULL" not in text.upper()
    match word:
        case "ARRAY" | "MULTISET":
            name = TypeName(word)
            return DataType(name=name, nullable=nullable, element=_child(json, "element"))
        case "VECTOR":
            length = json.get("length")
            if not isinstance(length, int) or length < 1:
                _unknown(json)
            element = _child(json, "element")
            return DataType(name=TypeName.VECTOR, nullable=nullable, element=element, length=length)
        case "MAP":
            key, value = _child(json, "key"), _child(json, "value")
            return DataType(name=TypeName.MAP, nullable=nullable, key=key, element=value)
        case "ROW":
            fields = json.get("fields")
            if not isinstance(fields, list):
                _unknown(json)
            parsed = tuple(parse_field(field) for field in fields)
            return DataType(name=TypeName.ROW, nullable=nullable, fields=parsed)
        case _:
            _unknown(text)


def _child(json: Mapping[str, Any], name: str) -> DataType:
    if name not in json:
        _unknown(json)
    return parse_type(json[name])


def _show(type: DataType) -> str:
    name = type.name
    if name in _LENGTHS:
        if type.length == MAX_LENGTH:
            return "STRING" if name is TypeName.VARCHAR else "BYTES"
        return f"{name}({type.length})"
    match name:
        case TypeName.DECIMAL:
            return f"DECIMAL({type.precision}, {type.scale})"
        case TypeName.TIME | TypeName.TIMESTAMP:
            return f"{name}({type.precision})"
        case TypeName.TIMESTAMP_LTZ:
            return f"TIMESTAMP({type.precision}) WITH LOCAL TIME ZONE"
        case TypeName.GEOMETRY | TypeName.GEOGRAPHY:
            return f"{name}({type.text})"
        case TypeName.ARRAY | TypeName.MULTISET:
            return f"{name}<{type.element}>"
        case TypeName.VECTOR:
            return f"VECTOR<{type.element}, {type.length}>"
        case TypeName.MAP:
            return f"MAP<{type.key}, {type.element}>"
        case TypeName.ROW:
            return "ROW<" + ", ".join(f"`{f.name}` {f.type}" for f in type.fields) + ">"
        case _:
            return str(name)


_ARROW: Final[Mapping[TypeName, pa.DataType]] = {
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.TINYINT: pa.int32(),
    TypeName.SMALLINT: pa.int32(),
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.FLOAT: pa.float32(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.DATE: pa.date32(),
    TypeName.TIME: pa.time64("us"),
    TypeName.CHAR: pa.string(),
    TypeName.VARCHAR: pa.string(),
    TypeName.BINARY: pa.binary(),
    TypeName.VARBINARY: pa.binary(),
    TypeName.VARIANT: pa.binary(),
    TypeName.BLOB: pa.binary(),
    TypeName.GEOMETRY: pa.binary(),
    TypeName.GEOGRAPHY: pa.binary(),
}


def arrow_type(type: DataType) -> pa.DataType:
    """The Arrow type in which decoded values are given; small integers are widened to int32."""
    if type.name in _ARROW:
        return _ARROW[type.name]
    match type.name:
        case TypeName.DECIMAL:
            return pa.decimal128(type.precision, type.scale)
        case TypeName.TIMESTAMP:
            return pa.timestamp("us" if type.precision <= 6 else "ns")
        case TypeName.TIMESTAMP_LTZ:
            return pa.timestamp("us" if type.precision <= 6 else "ns", "UTC")
        case TypeName.ROW:
            return pa.struct([(field.name, arrow_type(field.type)) for field in type.fields])
    assert type.element is not None
    match type.name:
        case TypeName.MAP:
            assert type.key is not None
            return pa.map_(arrow_type(type.key), arrow_type(type.element))
        case TypeName.MULTISET:
            return pa.map_(arrow_type(type.element), pa.int32())
        case _:
            return pa.list_(arrow_type(type.element))


_ICEBERG: Final[Mapping[TypeName, iceberg.IcebergType]] = {
    TypeName.BOOLEAN: iceberg.BooleanType(),
    TypeName.TINYINT: iceberg.IntegerType(),
    TypeName.SMALLINT: iceberg.IntegerType(),
    TypeName.INT: iceberg.IntegerType(),
    TypeName.BIGINT: iceberg.LongType(),
    TypeName.FLOAT: iceberg.FloatType(),
    TypeName.DOUBLE: iceberg.DoubleType(),
    TypeName.DATE: iceberg.DateType(),
    TypeName.CHAR: iceberg.StringType(),
    TypeName.VARCHAR: iceberg.StringType(),
    TypeName.BINARY: iceberg.BinaryType(),
    TypeName.VARBINARY: iceberg.BinaryType(),
}
_WHY_NOT: Final[Mapping[TypeName, str]] = {
    TypeName.TIME: "its files store milliseconds, Iceberg's time is microseconds",
    TypeName.VARIANT: "its binary layout in files differs from Iceberg's",
    TypeName.BLOB: "its values lie in files of their own",
    TypeName.VECTOR: "Iceberg has no vector type",
    TypeName.MULTISET: "Iceberg has no multiset type",
    TypeName.GEOMETRY: "its encoding in files is not Iceberg's",
    TypeName.GEOGRAPHY: "its encoding in files is not Iceberg's",
}

STRUCTURED_ID_BASE: Final = (2**31 - 1) // 4
STRUCTURED_ID_DEPTHS: Final = 1024


def iceberg_type(type: DataType, field_id: int, depth: int = 0) -> iceberg.IcebergType:
    """The Iceberg type whose data files hold the same bytes, or `Unsupported` saying why not.

    Elements, keys and values get the ids that Paimon writes into Parquet files for them: they
    are computed from the id of the enclosing column and the depth, and stay clear of column ids.
    """
    if type.name in _ICEBERG:
        return _ICEBERG[type.name]
    if type.name in _WHY_NOT:
        raise Unsupported(f"type {type} cannot be adopted: {_WHY_NOT[type.name]}")
    match type.name:
        case TypeName.DECIMAL:
            return iceberg.DecimalType(type.precision, type.scale)
        case TypeName.TIMESTAMP | TypeName.TIMESTAMP_LTZ:
            if type.precision > 6:
                raise Unsupported(
                    f"type {type} cannot be adopted: Parquet files store it as INT96 without "
                    "annotation, ORC files without the unit that Iceberg asks for "
                    "(iceberg.timestamp-unit)"
                )
            zoned = type.name is TypeName.TIMESTAMP_LTZ
            return iceberg.TimestamptzType() if zoned else iceberg.TimestampType()
        case TypeName.ROW:
            return iceberg.StructType(*(iceberg_field(field) for field in type.fields))
    assert type.element is not None
    above = STRUCTURED_ID_BASE + field_id * STRUCTURED_ID_DEPTHS + depth + 1
    element = iceberg_type(type.element, field_id, depth + 1)
    if type.name is TypeName.ARRAY:
        return iceberg.ListType(above, element, element_required=not type.element.nullable)
    assert type.key is not None
    below = STRUCTURED_ID_BASE - field_id * STRUCTURED_ID_DEPTHS - depth - 1
    key = iceberg_type(type.key, field_id, depth + 1)
    required = not type.element.nullable
    return iceberg.MapType(below, key, above, element, value_required=required)


def iceberg_field(field: DataField) -> iceberg.NestedField:
    """A column or row field as an Iceberg field with the same id."""
    try:
        converted = iceberg_type(field.type, field.id)
    except Unsupported as error:
        raise Unsupported(f"column {field.name!r}: {error}", feature=str(field.type)) from None
    return iceberg.NestedField(
        field.id, field.name, converted, required=not field.type.nullable, doc=field.description
    )
