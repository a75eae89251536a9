"""Changing how new files are partitioned and sorted. Files that exist stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from frazil.argument_checks import check_arguments
from frazil.commit.change import Change
from frazil.commit.result import STAGED, CommitResult
from frazil.commit.updates import SetSortOrder, SetSpec
from frazil.errors import InvalidInput
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.text.partition_by import parse_part, parse_sort_order, repeats
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.pyiceberg_values import pyiceberg_spec
from frazil.iceberg.transforms import IdentityTransform
from frazil.table.columns.merged_names import Edits
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec as PyIcebergSpec


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
