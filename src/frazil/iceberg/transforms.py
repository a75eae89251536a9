"""Transforms: what a partition field, a sort field or a derived column makes of a column's values.

What each is called, which types it takes and what type it gives. The values of whole columns are
computed in `frazil.filter.transforms`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Final, Generic, TypeVar

from frazil.errors import InvalidInput
from frazil.iceberg import types as ice

_DAY: Final = date(1970, 1, 1)
_MOMENT: Final = datetime(1970, 1, 1)
_MOMENTS: Final = (
    ice.TimestampType,
    ice.TimestamptzType,
    ice.TimestampNanoType,
    ice.TimestamptzNanoType,
)


class Transform:
    """What is made of a column's values; `str` of it is its name in metadata."""

    __slots__ = ()
    name: ClassVar[str] = ""
    takes: ClassVar[tuple[type[ice.IcebergType], ...]] = ()
    """The types of columns that it can be applied to."""
    preserves_order: ClassVar[bool] = False
    """Whether a greater value never gives a smaller result."""

    def can_transform(self, source: ice.IcebergType) -> bool:
        """Whether it takes values of a type."""
        return isinstance(source, self.takes)

    def result_type(self, source: ice.IcebergType) -> ice.IcebergType:
        """The type of what it gives for values of a type."""
        return source

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """One of its results for people; `source` is the type of the result."""
        return "null" if value is None else str(value)

    @property
    def dedup_name(self) -> str:
        """What two transforms have in common of which one column can have only one."""
        return str(self)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class IdentityTransform(Transform):
    """The value itself."""

    __slots__ = ()
    name = "identity"
    preserves_order = True

    def can_transform(self, source: ice.IcebergType) -> bool:
        """Any single value but shapes and variants."""
        unordered = ice.GeometryType | ice.GeographyType | ice.VariantType
        return source.is_primitive and not isinstance(source, unordered)

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Dates and times as calendars have them, bytes in base64."""
        if value is None:
            return "null"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, bytes):
            return _base64(value)
        if not isinstance(value, int):
            return str(value)
        if isinstance(source, ice.DateType):
            return (_DAY + timedelta(days=value)).isoformat()
        if isinstance(source, ice.TimeType):
            return (_MOMENT + timedelta(microseconds=value)).time().isoformat()
        if isinstance(source, ice.TimestampType):
            return (_MOMENT + timedelta(microseconds=value)).isoformat()
        if isinstance(source, ice.TimestamptzType):
            return (_MOMENT.replace(tzinfo=UTC) + timedelta(microseconds=value)).isoformat()
        return str(value)


class VoidTransform(Transform):
    """Null, whatever the value is."""

    __slots__ = ()
    name = "void"

    def can_transform(self, source: ice.IcebergType) -> bool:
        """Anything."""
        return True

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Always null."""
        return "null"


class _Buckets(Transform):
    """The number of a bucket, by a hash."""

    __slots__ = ("num_buckets",)
    takes = (
        ice.IntegerType,
        ice.LongType,
        ice.DecimalType,
        ice.StringType,
        ice.FixedType,
        ice.BinaryType,
        ice.UUIDType,
        ice.TimeType,
        ice.DateType,
        *_MOMENTS,
    )

    def __init__(self, num_buckets: int) -> None:
        if num_buckets < 1:
            raise ValueError(f"the number of buckets is {num_buckets}; expected 1 or more")
        self.num_buckets = num_buckets

    def result_type(self, source: ice.IcebergType) -> ice.IcebergType:
        """An int."""
        return ice.IntegerType()

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_buckets={self.num_buckets})"


class BucketTransform(_Buckets):
    """The number of a bucket, by a hash of the value."""

    __slots__ = ()


class JointBucketTransform(_Buckets):
    """`bucket[N]` of several columns: the hash of their bytes, one after the other, modulo N.

    A class of its own, so that what asks a bucket of one column gets no answer from it rather than
    a wrong one.
    """

    __slots__ = ()


class TruncateTransform(Transform):
    """The beginning of a text, or a number rounded down to a multiple of the width."""

    __slots__ = ("width",)
    takes = (ice.IntegerType, ice.LongType, ice.DecimalType, ice.StringType, ice.BinaryType)
    preserves_order = True

    def __init__(self, width: int) -> None:
        if width < 1:
            raise ValueError(f"the width of truncate is {width}; expected 1 or more")
        self.width = width

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Bytes in base64."""
        if isinstance(value, bytes):
            return _base64(value)
        return super().to_human_string(source, value)

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def __repr__(self) -> str:
        return f"TruncateTransform(width={self.width})"


class TimeTransform(Transform):
    """A unit of the calendar, counted from 1970."""

    __slots__ = ()
    takes: ClassVar[tuple[type[ice.IcebergType], ...]] = (ice.DateType, *_MOMENTS)
    preserves_order = True

    def result_type(self, source: ice.IcebergType) -> ice.IcebergType:
        """An int."""
        return ice.IntegerType()

    @property
    def dedup_name(self) -> str:
        """One column has one unit of time."""
        return "time"


class YearTransform(TimeTransform):
    """Years since 1970."""

    __slots__ = ()
    name = "year"

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Such as 2024."""
        return f"{1970 + value:04d}" if isinstance(value, int) else "null"


class MonthTransform(TimeTransform):
    """Months since January 1970."""

    __slots__ = ()
    name = "month"

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Such as 2024-01."""
        if not isinstance(value, int):
            return "null"
        return f"{1970 + value // 12:04d}-{1 + value % 12:02d}"


class DayTransform(TimeTransform):
    """Days since the first of January 1970."""

    __slots__ = ()
    name = "day"

    def result_type(self, source: ice.IcebergType) -> ice.IcebergType:
        """A date, which is how Iceberg shows days."""
        return ice.DateType()

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Such as 2024-01-15."""
        if not isinstance(value, int):
            return "null"
        return (_DAY + timedelta(days=value)).isoformat()


class HourTransform(TimeTransform):
    """Hours since 1970 began."""

    __slots__ = ()
    name = "hour"
    takes = _MOMENTS

    def to_human_string(self, source: ice.IcebergType, value: Any) -> str:
        """Such as 2024-01-15-10."""
        if not isinstance(value, int):
            return "null"
        return (_MOMENT + timedelta(hours=value)).isoformat("-", "hours")


class UnknownTransform(Transform):
    """A transform of a name that nothing here knows; it is kept and not used."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def result_type(self, source: ice.IcebergType) -> ice.IcebergType:
        """Text, as Iceberg says."""
        return ice.StringType()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"UnknownTransform(text={self.text!r})"


_NAMED: Final[dict[str, Transform]] = {
    kind.name: kind()
    for kind in (
        IdentityTransform,
        VoidTransform,
        YearTransform,
        MonthTransform,
        DayTransform,
        HourTransform,
    )
}
_NUMBERED: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")


def parse_transform(text: str, *, sources: int = 1) -> Transform:
    """The transform of a name, applied to `sources` columns. Raises ValueError."""
    unsized = _NAMED.get(text)
    if unsized is not None and (sources == 1 or isinstance(unsized, VoidTransform)):
        return unsized
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None and numbered[1] == "bucket":
        kind = BucketTransform if sources == 1 else JointBucketTransform
        return kind(int(numbered[2]))
    if numbered is not None and sources == 1:
        return TruncateTransform(int(numbered[2]))
    if numbered is None and text.startswith(("bucket", "truncate")):
        raise ValueError(f"{text!r} has no number in brackets")
    return UnknownTransform(text)


F = TypeVar("F")


class FieldList(Generic[F]):
    """Fields that are transforms of columns, in order, and an id, whose name `ID` says."""

    __slots__ = ("fields",)
    ID: ClassVar[str]
    fields: tuple[F, ...]

    def _parts(self) -> tuple[type[Any], tuple[F, ...], int]:
        return type(self), self.fields, getattr(self, self.ID)

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, FieldList) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __str__(self) -> str:
        return (
            "[" + "".join(f"\n  {field}" for field in self.fields) + "\n" * bool(self.fields) + "]"
        )

    def __repr__(self) -> str:
        fields = "".join(f"{field!r}, " for field in self.fields)
        return f"{type(self).__name__}({fields}{self.ID}={getattr(self, self.ID)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, self._parts()


def _unpickled(cls: type[Any], fields: tuple[Any, ...], number: int) -> Any:
    return cls(*fields, **{cls.ID: number})


def check_source(
    source: ice.NestedField | None, transform: Transform, field: object, *, what: str, verb: str
) -> None:
    """Refuse a column that does not exist, or whose type the transform of a field does not take."""
    if source is None:
        raise InvalidInput(f"Cannot find source column for {what} field: {field}")
    if not source.field_type.is_primitive:
        raise InvalidInput(f"Cannot {verb} by non-primitive source field: {source}")
    if not transform.can_transform(source.field_type):
        raise InvalidInput(
            f"Invalid source field {source.name} with type {source.field_type} "
            f"for transform: {transform}"
        )


def _base64(value: bytes) -> str:
    from base64 import b64encode

    return b64encode(value).decode()
