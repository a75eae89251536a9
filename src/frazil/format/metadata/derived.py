"""Derived columns of a table: ids for the results of partition transforms and of expressions.

Files have statistics under these ids, so an id means the same for as long as the table lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NewType

from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.format.expressions import Declaration
    from frazil.iceberg.partitioning import PartitionSpec
    from frazil.iceberg.transforms import Transform

FieldId = NewType("FieldId", int)

FIRST_DERIVED_ID: Final = 900_000
"""Derived columns count from here, so that a partition transform takes no id from the columns: a
client that adds a column at the same time would be given one that is in use."""
LAST_ID: Final = "last-expr-id"
"""The field of metadata with the highest id that an expression had, also one that is removed."""


@frozen
class DerivedColumn:
    """A field id reserved for the result of a partition transform or of an expression, so that it
    can have stats.

    One that is for no partition field and no expression in SQL is another writer's: it is kept and
    not used.
    """

    expr_id: FieldId
    source_ids: tuple[int, ...]
    transform: Transform
    name: str
    partition_field_id: int | None
    extra: Mapping[str, Any] = field(default_factory=dict)


def last_id(known: Sequence[DerivedColumn], last_column_id: int, recorded: int) -> int:
    """The highest id that is taken."""
    return max(FIRST_DERIVED_ID - 1, last_column_id, recorded, *(int(c.expr_id) for c in known))


def has_sql(known: Sequence[DerivedColumn]) -> bool:
    """Whether there is an expression in SQL."""
    if not known:
        return False
    from frazil.format.expressions import SqlTransform

    return any(isinstance(column.transform, SqlTransform) for column in known)


def of_partitions(
    specs: Sequence[PartitionSpec], known: Sequence[DerivedColumn], last: int
) -> list[DerivedColumn]:
    """A column for every partition field that is not identity and has none yet."""
    from frazil.iceberg.transforms import IdentityTransform

    have = {column.partition_field_id for column in known}
    added: list[DerivedColumn] = []
    for part in (part for spec in specs for part in spec.fields):
        if part.field_id in have or isinstance(part.transform, IdentityTransform):
            continue
        have.add(part.field_id)
        last += 1
        added.append(
            DerivedColumn(
                expr_id=FieldId(last),
                source_ids=part.source_ids,
                transform=part.transform,
                name=part.name,
                partition_field_id=part.field_id,
            )
        )
    return added


def with_declared(
    known: Sequence[DerivedColumn], declared: Sequence[Declaration], last: int
) -> tuple[tuple[DerivedColumn, ...], int]:
    """Exactly these expressions beside what else there is, and the highest id. One that was there
    keeps its id; the id of one that goes is not given again."""
    from frazil.format.expressions import SqlTransform, sql_columns

    same = {(column.transform, column.source_ids): column for column in sql_columns(known)}
    columns = [column for column in known if not isinstance(column.transform, SqlTransform)]
    for declaration in declared:
        transform = SqlTransform(declaration.sql, declaration.type)
        column = same.get((transform, declaration.source_ids))
        if column is None:
            last += 1
            column = DerivedColumn(
                expr_id=FieldId(last),
                source_ids=declaration.source_ids,
                transform=transform,
                name=f"expression_{last}",
                partition_field_id=None,
            )
        columns.append(column)
    return tuple(columns), last
