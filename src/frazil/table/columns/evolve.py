"""Changing a table's columns, and how new files are partitioned and sorted: builders that collect
edits and commit them at once.

Every call is checked when it is made and sees the calls before it. Field ids are never reused: new
columns count on from the table's last column id, so files written before keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from frazil.argument_checks import check_arguments
from frazil.commit.change import Change
from frazil.commit.result import STAGED, CommitResult
from frazil.commit.updates import SetSchema, SetSortOrder, SetSpec
from frazil.data.schema import iceberg_schema
from frazil.errors import InvalidInput
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.text.partition_by import parse_part, parse_sort_order, repeats
from frazil.filter.text.type_text import parse_type
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.pyiceberg_values import (
    AnySchema,
    AnyType,
    from_pyiceberg,
    pyiceberg_schema,
    pyiceberg_spec,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import IcebergType, NestedField
from frazil.table.columns.column_tree import LAST, ROOT, SiblingPlace, default_of, owners
from frazil.table.columns.merged_names import Edits
from frazil.table.columns.schema_draft import ColumnPath, SchemaDraft, path_name, split, unite
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec as PyIcebergSpec
    from pyiceberg.schema import Schema as PyIcebergSchema


@check_arguments
class EvolvePartitions(Edits):
    """Edits of a partition spec, applied by `commit` or by leaving the `with` block.

    >>> table.evolve_partitions().remove("ts_month").add("day(ts)").commit()    # doctest: +SKIP
    """

    def __init__(self, metadata: TableMetadata, commit: Callable[[Change], object]) -> None:
        super().__init__(metadata, commit)
        self._columns = ColumnIndex.of(metadata.schema())
        self._fields: list[PartitionField] = list(metadata.spec().fields)
        self._ids = count(metadata.last_partition_id + 1)

    @property
    def spec(self) -> PyIcebergSpec:
        """The spec so far, as PyIceberg's; new fields get their ids at commit."""
        return pyiceberg_spec(self._spec())

    def _spec(self) -> PartitionSpec:
        return PartitionSpec(*self._fields, spec_id=self._metadata.default_spec_id)

    def add(self, term: str, name: str | None = None) -> EvolvePartitions:
        """Partition by one more term, such as `day(ts)`, `bucket[16](id)` or `country`."""
        part = parse_part(term, self._columns, field_id=next(self._ids), name=name)
        for other in self._fields:
            if repeats(part, other):
                raise InvalidInput(
                    f"partition '{term}' repeats '{other.name}' ({other.transform}); "
                    "remove that first"
                )
        self._check_name(part)
        self._fields.append(part)
        return self

    def remove(self, what: str) -> EvolvePartitions:
        """Stop partitioning by a field, given by name or by the term it was added with."""
        self._fields.remove(self._find(what))
        return self

    def rename(self, what: str, to: str) -> EvolvePartitions:
        """Rename a partition field."""
        part = self._find(what)
        renamed = replace(part, name=to)
        at = self._fields.index(part)
        self._fields.remove(part)
        self._check_name(renamed)
        self._fields.insert(at, renamed)
        return self

    def commit(self) -> CommitResult:
        """Commit the spec, or add it to the transaction."""
        self._need_open()
        self._ended = True
        if tuple(self._fields) == tuple(self._metadata.spec().fields):
            return CommitResult.nothing("the partitioning is the same")
        update = SetSpec(spec=self._spec(), based_on_spec_id=self._metadata.default_spec_id)
        result = self._commit(Change(updates=(update,)))
        return result if isinstance(result, CommitResult) else CommitResult.nothing(STAGED)

    def _find(self, what: str) -> PartitionField:
        for part in self._fields:
            if part.name == what:
                return part
        problem = ""
        try:
            wanted_part = parse_part(what, self._columns, field_id=0)
        except InvalidInput as error:
            problem = f" ({error})"
        else:
            for part in self._fields:
                if (
                    part.source_ids == wanted_part.source_ids
                    and part.transform == wanted_part.transform
                ):
                    return part
        parts = ", ".join(f"{part.name} ({part.transform})" for part in self._fields) or "none"
        raise InvalidInput(f"no partition field '{what}'; there are: {parts}{problem}")

    def _check_name(self, part: PartitionField) -> None:
        name = part.name
        if not isinstance(name, str) or not name or name != name.strip():
            raise InvalidInput(f"{name!r} is not a name for a partition field")
        if any(other.name == name for other in self._fields):
            raise InvalidInput(f"there is a partition field '{name}' already")
        column = self._columns.by_name.get(name)
        if column is not None and not (
            isinstance(part.transform, IdentityTransform)
            and column.field.field_id == part.source_id
        ):
            raise InvalidInput(f"'{name}' is the name of a column; choose another")


def sort_order_update(metadata: TableMetadata, columns: Sequence[str]) -> SetSortOrder:
    """The update that sets the sort order, from terms such as `price desc nulls last`; no terms
    make the table unsorted."""
    return SetSortOrder(
        order=parse_sort_order(columns, metadata.schema()),
        based_on_order_id=metadata.default_sort_order_id,
    )


TypeLike: TypeAlias = "str | AnyType | pa.DataType"


class Unchanged(Enum):
    """Marks an argument that was not given, where None means something."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@check_arguments
class EvolveSchema(Edits):
    """Edits of a schema, applied by `commit` or by leaving the `with` block without an error.

    >>> with table.evolve_schema() as columns:                            # doctest: +SKIP
    ...     columns.add_column("discount", "decimal(10,2)", after="price")
    ...     columns.rename_column("qty", "quantity")
    """

    def __init__(
        self,
        metadata: TableMetadata,
        commit: Callable[[Change], object],
        *,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(metadata, commit)
        self._draft = SchemaDraft(metadata, case_sensitive=case_sensitive)

    @property
    def schema(self) -> PyIcebergSchema:
        """The schema with the edits made so far, as PyIceberg's."""
        return pyiceberg_schema(self._draft.schema)

    @property
    def draft_schema(self) -> Schema:
        """The schema with the edits made so far, in Frazil's own values."""
        return self._draft.schema

    # Edits

    def add_column(
        self,
        path: ColumnPath,
        type: TypeLike,
        *,
        doc: str | None = None,
        required: bool = False,
        default: Any = None,
        first: bool = False,
        before: str | None = None,
        after: str | None = None,
        allow_incompatible: bool = False,
    ) -> EvolveSchema:
        """Add a column, by default last; `a.b` adds to the struct `a`, or to a list or map of them.

        `default` is the value of existing rows, and of new rows that give none. A required column
        needs one; `allow_incompatible` adds it without, for a table that has no rows.
        """
        draft = self._open()
        parents, name = split(path)
        new = NestedField(
            field_id=0, name=name, field_type=_type_of(type), required=required, doc=doc
        )
        draft.add(
            draft.struct_at(parents) if parents else ROOT,
            new,
            where=".".join((*parents, name)),
            default=default,
            allow_incompatible=allow_incompatible,
            place=SiblingPlace.of(first=first, before=before, after=after) or LAST,
        )
        return self

    def drop_column(self, path: ColumnPath) -> EvolveSchema:
        """Drop a column. Its id is never reused; old snapshots still have it."""
        draft = self._open()
        draft.drop(draft.struct_field(path, "dropped"), path_name(path))
        return self

    def rename_column(self, path: ColumnPath, to: str) -> EvolveSchema:
        """Rename a column. Data files are not touched."""
        draft = self._open()
        field = draft.struct_field(path, "renamed")
        if to != field.name:
            draft.check_name(owners(draft.root)[field.field_id], to, renamed=field.field_id)
            draft.edit_field(field.field_id, {"name": to})
        return self

    def update_column(
        self,
        path: ColumnPath,
        type: TypeLike | None = None,
        *,
        doc: str | Unchanged | None = UNCHANGED,
        required: bool | None = None,
        default: Any = UNCHANGED,
        allow_incompatible: bool = False,
    ) -> EvolveSchema:
        """Widen a column's type, change its doc, whether it is required, or its write default.

        `doc=None` and `default=None` remove them. A column becomes required only with
        `allow_incompatible`, which asserts that no row holds a null.
        """
        draft = self._open()
        field, where = draft.find(path), path_name(path)
        kind = field.field_type if type is None else _type_of(type)
        changes: dict[str, Any] = {}
        if doc is not UNCHANGED:
            changes["doc"] = doc
        if required is not None and required != field.required:
            draft.check_required(field, where, required, allow_incompatible=allow_incompatible)
            changes["required"] = required
        if default is not UNCHANGED:
            parsed = None if default is None else default_of(default, kind, where)
            changes["write_default"] = parsed
        draft.retype(field, kind, where)
        draft.edit_field(field.field_id, changes)
        return self

    def move(
        self,
        path: ColumnPath,
        *,
        first: bool = False,
        before: str | None = None,
        after: str | None = None,
    ) -> EvolveSchema:
        """Move a column first, or before or after a sibling."""
        draft = self._open()
        field = draft.struct_field(path, "moved")
        place = SiblingPlace.of(first=first, before=before, after=after)
        if place is None:
            raise InvalidInput(f"column '{path_name(path)}': pass first=True, before= or after=")
        draft.move(field, place)
        return self

    def set_identifier_fields(self, *paths: ColumnPath) -> EvolveSchema:
        """Set the columns that identify a row, which must be required. No arguments clear them."""
        draft = self._open()
        ids: set[int] = set()
        for path in paths:
            field_id = draft.find(path).field_id
            if field_id in ids:
                raise InvalidInput(f"identifier column '{path_name(path)}' is named twice")
            draft.check_identifier(field_id, path_name(path))
            ids.add(field_id)
        draft.identifiers = frozenset(ids)
        return self

    def union_by_name(self, other: AnySchema | pa.Schema | Any) -> EvolveSchema:
        """Merge in another schema: new columns, wider types, docs.

        Columns are matched by name, at any depth; new ones are optional. Narrower types are
        ignored, and columns that the other schema lacks are kept. Arrow data stands for its
        schema. Columns that are optional in a PyIceberg schema become optional.
        """
        draft = self._open()
        other = from_pyiceberg(other)
        source = other if isinstance(other, Schema | pa.Schema) else getattr(other, "schema", None)
        if isinstance(source, Schema):
            unite(draft, source.fields, relaxes=True)
        elif isinstance(source, pa.Schema):
            unite(draft, iceberg_schema(source).fields, relaxes=False)
        else:
            raise InvalidInput(f"expected a schema or Arrow data, found {type(other).__name__}")
        return self

    # Ending

    def commit(self) -> CommitResult:
        """Commit the schema, or add it to the transaction."""
        schema = self._open().schema
        self._ended = True
        if schema == self._metadata.schema():
            return CommitResult.nothing("the schema is the same")
        update = SetSchema(
            schema=schema,
            based_on_schema_id=self._metadata.current_schema_id,
            based_on_last_column_id=self._metadata.last_column_id,
        )
        result = self._commit(Change(updates=(update,)))
        return result if isinstance(result, CommitResult) else CommitResult.nothing(STAGED)

    def _open(self) -> SchemaDraft:
        self._need_open()
        return self._draft


def _type_of(type_: TypeLike) -> IcebergType:
    if isinstance(type_, str):
        return parse_type(type_)
    if isinstance(type_, pa.DataType):
        return iceberg_schema(pa.schema([pa.field("column", type_)])).fields[0].field_type
    kind: IcebergType = from_pyiceberg(type_)
    return kind


__all__ = ["EvolvePartitions", "EvolveSchema", "parse_sort_order", "sort_order_update"]
