"""The types of columns, and fields, which give a type a name and an id.

The classes have the names and attributes of PyIceberg's, which are validated models and take a
tenth of a second to import. `frazil.iceberg.pyiceberg_values` translates; nothing else here knows
of PyIceberg. All values are immutable, hashable and equal when they say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from frazil.value_classes import dataclass

VARIANT: Final = "variant"
DEFAULT_CRS: Final = "OGC:CRS84"
DEFAULT_EDGES: Final = "spherical"
_MAX_PRECISION: Final = 38


class IcebergType:
    """Any type: a primitive, or one that has fields."""

    __slots__ = ()

    @property
    def is_primitive(self) -> bool:
        """Whether values are single: no struct, list or map."""
        return isinstance(self, PrimitiveType)

    @property
    def is_struct(self) -> bool:
        """Whether it is a struct."""
        return isinstance(self, StructType)

    @property
    def inner_fields(self) -> tuple[NestedField, ...]:
        """The fields inside: those of a struct, the element of a list, key and value of a map."""
        return ()

    def minimum_format_version(self) -> int:
        """The first format version that has the type."""
        return 1


class PrimitiveType(IcebergType):
    """A type without fields; `str` of it is its name in metadata."""

    __slots__ = ()
    name: ClassVar[str] = ""
    first_version: ClassVar[int] = 1

    def _arguments(self) -> tuple[Any, ...]:
        """What distinguishes two types of one class."""
        return ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, PrimitiveType)
        return self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((type(self), self._arguments()))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()

    def minimum_format_version(self) -> int:
        """The first format version that has the type."""
        return self.first_version


class BooleanType(PrimitiveType):
    """True or false."""

    __slots__ = ()
    name = "boolean"


class IntegerType(PrimitiveType):
    """Whole numbers of 32 bits."""

    __slots__ = ()
    name = "int"
    max: ClassVar[int] = 2**31 - 1
    min: ClassVar[int] = -(2**31)


class LongType(PrimitiveType):
    """Whole numbers of 64 bits."""

    __slots__ = ()
    name = "long"
    max: ClassVar[int] = 2**63 - 1
    min: ClassVar[int] = -(2**63)


class FloatType(PrimitiveType):
    """Floating-point numbers of 32 bits."""

    __slots__ = ()
    name = "float"


class DoubleType(PrimitiveType):
    """Floating-point numbers of 64 bits."""

    __slots__ = ()
    name = "double"


class DateType(PrimitiveType):
    """Days of the calendar."""

    __slots__ = ()
    name = "date"


class TimeType(PrimitiveType):
    """Times of day in microseconds."""

    __slots__ = ()
    name = "time"


class TimestampType(PrimitiveType):
    """Moments of a calendar and a clock in microseconds, without a zone."""

    __slots__ = ()
    name = "timestamp"


class TimestamptzType(PrimitiveType):
    """Moments in microseconds."""

    __slots__ = ()
    name = "timestamptz"


class TimestampNanoType(PrimitiveType):
    """`timestamp` in nanoseconds."""

    __slots__ = ()
    name = "timestamp_ns"
    first_version = 3


class TimestamptzNanoType(PrimitiveType):
    """`timestamptz` in nanoseconds."""

    __slots__ = ()
    name = "timestamptz_ns"
    first_version = 3


class StringType(PrimitiveType):
    """Text."""

    __slots__ = ()
    name = "string"


class UUIDType(PrimitiveType):
    """Universally unique identifiers."""

    __slots__ = ()
    name = "uuid"


class BinaryType(PrimitiveType):
    """Bytes of any number."""

    __slots__ = ()
    name = "binary"


class UnknownType(PrimitiveType):
    """Nothing but null."""

    __slots__ = ()
    name = "unknown"
    first_version = 3


class VariantType(PrimitiveType):
    """A value of any type in every row: what JSON has, and dates, decimals, bytes and others."""

    __slots__ = ()
    name = VARIANT
    first_version = 3


class FixedType(PrimitiveType):
    """Bytes of one number in every row."""

    __slots__ = ("_length",)

    def __init__(self, length: int) -> None:
        self._length = length

    def _arguments(self) -> tuple[int]:
        return (self._length,)

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return True  # also of no bytes

    def __str__(self) -> str:
        return f"fixed[{self._length}]"

    def __repr__(self) -> str:
        return f"FixedType(length={self._length})"


class DecimalType(PrimitiveType):
    """Decimal numbers of `precision` digits, `scale` of them after the point."""

    __slots__ = ("precision", "scale")

    def __init__(self, precision: int, scale: int) -> None:
        if not 1 <= precision <= _MAX_PRECISION:
            raise ValueError(f"a decimal has 1 to {_MAX_PRECISION} digits, not {precision}")
        self.precision = precision
        self.scale = scale

    def _arguments(self) -> tuple[int, int]:
        return self.precision, self.scale

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    def __repr__(self) -> str:
        return f"DecimalType(precision={self.precision}, scale={self.scale})"


class GeometryType(PrimitiveType):
    """Shapes on a plane, as WKB."""

    __slots__ = ("crs",)
    first_version = 3

    def __init__(self, crs: str = DEFAULT_CRS) -> None:
        self.crs = crs

    def _arguments(self) -> tuple[str]:
        return (self.crs,)

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry('{self.crs}')"

    def __repr__(self) -> str:
        return "GeometryType()" if self.crs == DEFAULT_CRS else f"GeometryType(crs={self.crs!r})"


class GeographyType(PrimitiveType):
    """Shapes on the globe, as WKB; `algorithm` says how edges run."""

    __slots__ = ("algorithm", "crs")
    first_version = 3

    def __init__(self, crs: str = DEFAULT_CRS, algorithm: str = DEFAULT_EDGES) -> None:
        self.crs = crs
        self.algorithm = algorithm

    def _arguments(self) -> tuple[str, str]:
        return self.crs, self.algorithm

    def __str__(self) -> str:
        if self.algorithm != DEFAULT_EDGES:
            return f"geography('{self.crs}', '{self.algorithm}')"
        return "geography" if self.crs == DEFAULT_CRS else f"geography('{self.crs}')"

    def __repr__(self) -> str:
        stated = [] if str(self) == "geography" else [f"crs={self.crs!r}"]
        if self.algorithm != DEFAULT_EDGES:
            stated.append(f"algorithm={self.algorithm!r}")
        return f"GeographyType({', '.join(stated)})"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A column, or a part of one: a field of a struct, an element, a key or a value."""

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    """What rows have that were written before the column came."""
    write_default: Any = None
    """What rows get that say nothing."""

    @property
    def optional(self) -> bool:
        """Whether values can be null."""
        return not self.required

    def __str__(self) -> str:
        kind = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc else ""
        return f"{self.field_id}: {self.name}: {kind} {self.field_type}{doc}"


class StructType(IcebergType):
    """Several fields."""

    __slots__ = ("fields",)

    def __init__(self, *fields: NestedField) -> None:
        self.fields = fields

    @property
    def inner_fields(self) -> tuple[NestedField, ...]:
        """Its fields."""
        return self.fields

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True  # also without fields

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    def __eq__(self, other: object) -> bool:
        return self.fields == other.fields if isinstance(other, StructType) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fields)

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"

    def __repr__(self) -> str:
        return f"StructType(fields=({', '.join(map(repr, self.fields))},))"

    def __reduce__(self) -> tuple[Any, ...]:
        return StructType, self.fields


@dataclass(frozen=True, slots=True)
class ListType(IcebergType):
    """Any number of elements."""

    element_id: int
    element_type: IcebergType
    element_required: bool = True

    @property
    def element_field(self) -> NestedField:
        """The element as a field."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    @property
    def inner_fields(self) -> tuple[NestedField, ...]:
        """The element."""
        return (self.element_field,)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(IcebergType):
    """Keys with values."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = True

    @property
    def key_field(self) -> NestedField:
        """The key as a field."""
        return NestedField(self.key_id, "key", self.key_type, True)

    @property
    def value_field(self) -> NestedField:
        """The value as a field."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    @property
    def inner_fields(self) -> tuple[NestedField, ...]:
        """Key and value."""
        return self.key_field, self.value_field

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


# --- names of types ------------------------------------------------------------------------------

_NAMED: Final[dict[str, PrimitiveType]] = {
    kind.name: kind()
    for kind in (
        BooleanType,
        IntegerType,
        LongType,
        FloatType,
        DoubleType,
        DateType,
        TimeType,
        TimestampType,
        TimestamptzType,
        TimestampNanoType,
        TimestamptzNanoType,
        StringType,
        UUIDType,
        BinaryType,
        UnknownType,
        VariantType,
    )
}
_NUMBERS: Final = re.compile(r"(fixed)\[\s*(\d+)\s*\]|(decimal)\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_SHAPES: Final = re.compile(
    r"(?P<kind>geometry|geography)(?:\s*\(\s*(?P<crs>'[^']*'|[^',]+?)?"
    r"\s*(?:,\s*(?P<edges>'\w+'|\w+)\s*)?\))?",
    re.IGNORECASE,
)


def primitive_type(text: str) -> PrimitiveType:
    """The type of a name in metadata. Raises ValueError."""
    primitive = _NAMED.get(text)
    if primitive is not None:
        return primitive
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None:
        if numbers[1]:
            return FixedType(int(numbers[2]))
        return DecimalType(int(numbers[4]), int(numbers[5]))
    shape = _SHAPES.fullmatch(text)
    if shape is not None:
        crs = (shape["crs"] or DEFAULT_CRS).strip("'") or DEFAULT_CRS
        edges = (shape["edges"] or "").strip("'")
        if shape["kind"].lower() == "geography":
            return GeographyType(crs, edges or DEFAULT_EDGES)
        if not edges:
            return GeometryType(crs)
    raise ValueError(f"{text!r} is not a type of Iceberg")
