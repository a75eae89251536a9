"""Which statistics a table keeps for which column.

Modes and property names are Iceberg's: `none`, `counts`, `truncate(n)`, `full`, a default for the
table, overrides by column, and a limit on how many columns of a wide table get the default without
being asked for. Two rules go beyond the properties: a column with an identity partition keeps full
bounds, because the root prunes by them, and a sort column keeps bounds unless overridden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import InvalidInput
from frazil.format.entries.stats import TrackedField, tracked_fields
from frazil.format.values.truncate import truncate_lower, truncate_upper
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import BinaryType, IcebergType, StringType
from frazil.properties.property import Property
from frazil.properties.registry import METRICS_COLUMN, METRICS_DEFAULT, METRICS_MAX_INFERRED
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortOrder


class Kept(Enum):
    """How much of a column's statistics is kept."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@frozen
class MetricsMode:
    """The mode of one column; `length` only with TRUNCATE."""

    keep: Kept
    length: int | None = None

    @staticmethod
    def of(
        setting: Property[tuple[str, int | None] | None], properties: Mapping[str, str]
    ) -> MetricsMode | None:
        """The mode that a property asks for; None if it is not set."""
        value = setting.of(properties)
        return None if value is None else MetricsMode(keep=Kept(value[0]), length=value[1])

    @property
    def has_counts(self) -> bool:
        """Whether anything is kept at all."""
        return self.keep is not Kept.NONE

    @property
    def has_bounds(self) -> bool:
        """Whether lower and upper bounds are kept."""
        return self.keep in (Kept.TRUNCATE, Kept.FULL)

    def fit(self, lower: Any, upper: Any, kind: IcebergType) -> tuple[Any, Any, bool]:
        """Bounds as this mode stores them, and whether they are unchanged."""
        if self.length is None or not isinstance(kind, StringType | BinaryType):
            return lower, upper, True
        low = None if lower is None else truncate_lower(lower, self.length)
        high = None if upper is None else truncate_upper(upper, self.length)
        return low, high, low == lower and high == upper

    def __str__(self) -> str:
        return self.keep.value if self.length is None else f"truncate({self.length})"


FULL: Final = MetricsMode(keep=Kept.FULL)
NONE: Final = MetricsMode(keep=Kept.NONE)
TRUNCATE_16: Final = MetricsMode(keep=Kept.TRUNCATE, length=16)


@frozen
class MetricsConfig:
    """The mode of every column of a table."""

    default: MetricsMode = TRUNCATE_16
    columns: Mapping[int, MetricsMode] = field(default_factory=dict)

    @staticmethod
    def from_properties(
        properties: Mapping[str, str],
        schema: Schema,
        *,
        sort_order: SortOrder | None = None,
        identity_ids: Iterable[int] = (),
    ) -> MetricsConfig:
        """What the table properties ask for.

        `identity_ids` are the source columns of identity partition fields. An override for a
        column that is not there is ignored, so that a dropped column does not stop writes;
        `check_properties` refuses it where properties are set.
        """
        fields = tracked_fields(schema)
        default, columns = _defaults(properties, fields)
        bounded = default if default.has_bounds else TRUNCATE_16
        columns |= dict.fromkeys(_sort_columns(sort_order), bounded)
        by_name = {column.full_name: column.id for column in fields}
        for name, mode in _overrides(properties).items():
            if name in by_name:
                columns[by_name[name]] = mode
        columns |= dict.fromkeys(identity_ids, FULL)
        return MetricsConfig(default=default, columns=columns)

    def mode(self, field_id: int) -> MetricsMode:
        """The mode of one column."""
        return self.columns.get(field_id, self.default)


def check_properties(properties: Mapping[str, str], schema: Schema) -> None:
    """Refuse metrics properties that cannot be read or that name a column that does not exist."""
    MetricsConfig.from_properties(properties, schema)
    names = set(schema.column_names)
    for name in _overrides(properties):
        if name not in names:
            raise InvalidInput(f"{METRICS_COLUMN.key}{name}: the table has no column {name!r}")


def _defaults(
    properties: Mapping[str, str], fields: tuple[TrackedField, ...]
) -> tuple[MetricsMode, dict[int, MetricsMode]]:
    limit = METRICS_MAX_INFERRED.of(properties)
    default = MetricsMode.of(METRICS_DEFAULT, properties)
    if default is not None:
        return default, {}
    if len(fields) <= limit:
        return TRUNCATE_16, {}
    outer_first = sorted(fields, key=lambda column: column.depth)
    return NONE, {column.id: TRUNCATE_16 for column in outer_first[:limit]}


def _sort_columns(sort_order: SortOrder | None) -> list[int]:
    if sort_order is None:
        return []
    return [part.source_id for part in sort_order.fields if part.transform.preserves_order]


def _overrides(properties: Mapping[str, str]) -> dict[str, MetricsMode]:
    return {
        column: mode
        for column in METRICS_COLUMN.columns(properties)
        if (mode := MetricsMode.of(METRICS_COLUMN.for_column(column), properties)) is not None
    }
