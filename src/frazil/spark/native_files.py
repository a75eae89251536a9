"""Which files of a plan Spark's own Parquet reader can read; the others go through Arrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pyiceberg import types as ice

from frazil.data.metadata_columns import RESERVED_IDS
from frazil.data.read_files import NAME_MAPPING
from frazil.rows.planned import Planned
from frazil.spark.log import is_readable_name


def native_files(planned: Planned) -> npt.NDArray[np.bool_]:
    """A mask over the files of the plan."""
    files = planned.plan.files
    if not _schema_is_native(planned):
        return np.zeros(files.num_rows, dtype=np.bool_)
    formats = pc.equal(pc.utf8_lower(files.column("file_format")), "parquet")
    mask = np.array(formats.to_numpy(), dtype=np.bool_)
    mask[list(planned.plan.matches)] = False
    for row in np.flatnonzero(mask):
        if not is_readable_name(planned.paths[row]):
            mask[row] = False
    return mask


def _schema_is_native(planned: Planned) -> bool:
    return NAME_MAPPING not in planned.scan._handle.metadata.properties and all(
        _is_native_column(field) for field in planned.wanted.fields
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
