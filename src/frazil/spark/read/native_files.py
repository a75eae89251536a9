"""Which files of a plan Spark's own Parquet reader can read; the others go through Arrow."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import RESERVED_IDS
from frazil.format import paths
from frazil.format.entries.column_files import have_column_files
from frazil.iceberg import types as ice
from frazil.properties.registry import NAME_MAPPING
from frazil.rows.planned import Planned
from frazil.spark.read.file_parts import Parts
from frazil.spark.session.file_list import UNREADABLE_NAME, can_read, is_readable_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def native_files(
    planned: Planned, spark: SparkSession, parts: Parts = MappingProxyType({})
) -> npt.NDArray[np.bool_]:
    """A mask over the files of the plan. Of those with column files, `parts` has what may be
    read."""
    files = planned.plan.files
    if not _schema_is_native(planned):
        return np.zeros(files.num_rows, dtype=np.bool_)
    formats = pc.equal(pc.utf8_lower(files.column("file_format")), "parquet")
    mask = np.array(formats.to_numpy(), dtype=np.bool_)
    mask[list(planned.plan.matches)] = False
    location = planned.scan._handle.location
    stored = files.column("location")
    below = ~arrow_values.to_numpy(paths.which_absolute(stored)).astype(np.bool_)
    stores = _Stores(spark)
    if not stores.can_read(f"{location}/x"):
        mask[below] = False
    unreadable = pc.match_substring_regex(stored, UNREADABLE_NAME)
    mask[below & arrow_values.to_numpy(unreadable).astype(np.bool_)] = False
    elsewhere = np.flatnonzero(~below & mask)
    resolved = paths.resolve_all(location, stored.take(pa.array(elsewhere))).to_pylist()
    for row, path in zip(elsewhere, resolved, strict=True):
        mask[row] = stores.can_read(path)
    for row in np.flatnonzero(have_column_files(files) & mask):
        opened = parts.get(int(row))
        mask[row] = opened is not None and all(stores.can_read(p.source.path) for p in opened)
    return mask


class _Stores:
    """Which stores Spark's virtual machine can read, each asked once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, bool] = {}

    def can_read(self, path: str) -> bool:
        """Whether a file can be read: its store, and under its name."""
        scheme = path.partition(":")[0]
        if scheme not in self._known:
            self._known[scheme] = can_read(self._spark, path)
        return self._known[scheme] and is_readable_name(path)


def _schema_is_native(planned: Planned) -> bool:
    return NAME_MAPPING.key not in planned.scan._handle.metadata.properties and all(
        _is_native_column(field) for field in planned.read_schema.fields
    )


def _is_native_column(field: ice.NestedField) -> bool:
    kind = field.field_type
    if field.field_id in RESERVED_IDS or isinstance(kind, ice.UUIDType | ice.UnknownType):
        return True
    return _is_native_type(kind)


def _is_native_type(kind: ice.IcebergType) -> bool:
    match kind:
        case ice.StructType():
            return all(
                field.initial_default is None and _is_native_type(field.field_type)
                for field in kind.fields
            )
        case ice.ListType():
            return _is_native_type(kind.element_type)
        case ice.MapType():
            return _is_native_type(kind.key_type) and _is_native_type(kind.value_type)
    return not isinstance(
        kind, ice.UUIDType | ice.UnknownType | ice.GeometryType | ice.GeographyType
    )
