"""Whether one definition of a table may follow another: columns, partitioning, sort order,
properties. Every commit passes here, whoever made it: the library, SQL, Spark, or a client of a
server that sends finished schemas. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.format.checks import (
    check_fits,
    check_partition_names,
    check_path_properties,
    check_properties,
    check_schema,
    check_spec,
)
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.properties.registry import check_values

MAX_COLUMN_ID = 2_147_483_447
"""Higher ids are those of columns that Iceberg makes up, such as row ids."""


def promotable(current: ice.IcebergType, target: ice.IcebergType, *, format_version: int) -> bool:
    """Whether a column may be widened, so that old files are still read right."""
    match current, target:
        case (ice.IntegerType(), ice.LongType()) | (ice.FloatType(), ice.DoubleType()):
            return True
        case ice.DecimalType(), ice.DecimalType():
            return target.scale == current.scale and target.precision >= current.precision
        case ice.DateType(), ice.TimestampType() | ice.TimestampNanoType():
            return format_version >= 3
        case ice.UnknownType(), ice.PrimitiveType():
            return format_version >= 3
    return False


def check_definition(
    before: TableMetadata | None, after: TableMetadata, *, keeps_rows: bool = True
) -> None:
    """Refuse a definition that could not be written or read. `before` is None for a new table.

    With `keeps_rows=False` no row of the old columns is left on `main`, so that a column's id may
    stand for another type.
    """
    if before is None or before.shape != after.shape:
        _check_shape(before, after)
        if after.refs and not after.schema().fields:
            raise InvalidInput("the schema has no columns, and the table has snapshots")
        if before is not None and keeps_rows:
            _check_types(before.schema(), after.schema(), after.format_version)
    check_changed_properties(before, after)


def check_changed_properties(before: TableMetadata | None, after: TableMetadata) -> None:
    """Refuse values that were set now; those that were stored before are left as they are."""
    if before is not None and before.properties is after.properties:
        return
    properties = {} if before is None else before.properties
    changed = {
        key: value for key, value in after.properties.items() if properties.get(key) != value
    }
    check_properties(changed)
    check_path_properties(after.location, changed)
    check_values(changed)


def check_shape(metadata: TableMetadata) -> None:
    """Refuse a table from elsewhere whose columns, partitioning or sort order contradict each
    other. Its properties are judged by what reads them."""
    _check_shape(None, metadata)


def _check_shape(before: TableMetadata | None, after: TableMetadata) -> None:
    schemas_before = (
        {} if before is None else {schema.schema_id: schema for schema in before.schemas}
    )
    for schema in after.schemas:
        if schema.schema_id not in schemas_before:
            _check_columns(schema)
        elif not _is_same(schemas_before[schema.schema_id], schema):
            raise InvalidInput(f"schema {schema.schema_id} differs from the stored one")
    try:
        schema, spec, order = after.schema(), after.spec(), after.sort_order()
    except NotFound as error:
        raise InvalidInput(str(error)) from error
    _check_unique("schema", [schema.schema_id for schema in after.schemas])
    _check_unique("partition spec", [spec.spec_id for spec in after.partition_specs])
    _check_unique("sort order", [order.order_id for order in after.sort_orders])
    highest = max(field for schema in after.schemas for field in (0, *schema.field_ids))
    if after.last_column_id < highest:
        raise InvalidInput(f"last-column-id is {after.last_column_id}; a column has id {highest}")
    check_spec(spec)
    check_partition_names(spec, schema)
    check_fits(spec, order, schema)
    _check_specs(before, after)


def _is_same(one: Schema, other: Schema) -> bool:
    ids = set(one.identifier_field_ids), set(other.identifier_field_ids)
    return one.fields == other.fields and ids[0] == ids[1]


def _check_columns(schema: Schema) -> None:
    check_schema(schema)
    ids = [field.field_id for field in _fields(schema.as_struct())]
    _check_unique("column", ids)
    strange = [id for id in ids if not 0 <= id <= MAX_COLUMN_ID]
    if strange:
        raise InvalidInput(f"column ids {strange} are not between 0 and {MAX_COLUMN_ID}")
    try:
        schema.check_format_version_compatibility(3)
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def _check_specs(before: TableMetadata | None, after: TableMetadata) -> None:
    """Fields of new specs have a column, as some schema knows it, and ids of their own."""
    old = {} if before is None else before.specs_by_id()
    meanings: dict[int, PartitionField] = {
        part.field_id: part for spec in old.values() for part in spec.fields
    }
    for spec in after.partition_specs:
        if spec.spec_id in old and old[spec.spec_id].fields == spec.fields:
            continue
        if spec.spec_id in old:
            raise InvalidInput(f"partition spec {spec.spec_id} differs from the stored one")
        check_spec(spec)
        if not any(_is_compatible(spec, schema) for schema in after.schemas):
            check_fits(spec, after.sort_order(), after.schema())
        for part in spec.fields:
            same = meanings.setdefault(part.field_id, part)
            if _meaning(same) != _meaning(part):
                raise InvalidInput(
                    f"partition field id {part.field_id} is {_meaning(part)}, and was "
                    f"{_meaning(same)}"
                )


def _meaning(part: PartitionField) -> str:
    sources = part.source_ids
    columns = ", ".join(str(source) for source in sources)
    return f"{part.transform} of column{'s' if len(sources) > 1 else ''} {columns}"


def _is_compatible(spec: PartitionSpec, schema: Schema) -> bool:
    try:
        spec.check_compatible(schema)
    except InvalidInput:
        return False
    return True


def _check_types(before: Schema, after: Schema, format_version: int) -> None:
    """Files that exist are read as the new types: each must hold what the old one held."""
    fields_before = {field.field_id: field for field in _fields(before.as_struct())}
    for field in _fields(after.as_struct()):
        old = fields_before.get(field.field_id)
        if old is None or old.field_type == field.field_type:
            continue
        nested = (ice.StructType, ice.ListType, ice.MapType)
        if isinstance(old.field_type, nested) and type(old.field_type) is type(field.field_type):
            continue  # what is inside is compared by itself
        if not promotable(old.field_type, field.field_type, format_version=format_version):
            raise InvalidInput(
                f"column '{field.name}' is {old.field_type} and cannot become {field.field_type}; "
                "only wider types are possible, such as int to long"
            )


def _fields(kind: ice.IcebergType) -> Iterator[ice.NestedField]:
    """Every field at every level."""
    for field in kind.inner_fields:
        yield field
        yield from _fields(field.field_type)


def _check_unique(what: str, ids: list[int]) -> None:
    twice = sorted({id for id in ids if ids.count(id) > 1}) if len(set(ids)) != len(ids) else []
    if twice:
        raise InvalidInput(f"{what} ids {twice} are used twice")


CONSTRAINTS = "constraints"


def check_rows_can_be_added(metadata: TableMetadata) -> None:
    """Refuse when the table has a constraint that every new row has to be checked against."""
    constraints = metadata.extra.get(CONSTRAINTS)
    for constraint in constraints if isinstance(constraints, list) else ():
        if isinstance(constraint, dict) and constraint.get("enforced") is True:
            name = constraint.get("name", constraint.get("constraint-id"))
            raise Unsupported(
                f"{metadata.location}: constraint {name} is enforced, and this version cannot "
                "verify that new rows satisfy it; add them with an engine that can, or drop the "
                "constraint",
                feature="enforced constraints",
            )


__all__ = [
    "CONSTRAINTS",
    "check_changed_properties",
    "check_definition",
    "check_rows_can_be_added",
    "check_shape",
    "promotable",
]
