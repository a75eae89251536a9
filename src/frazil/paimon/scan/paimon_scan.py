"""A scan of a Paimon table: lazy, chainable, and convertible to every kind of frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_values
from frazil.data.arrow_rows import ArrowRows
from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.write.row_input import conformed
from frazil.errors import InvalidInput, Unsupported
from frazil.filter.condition import Condition, Where, condition
from frazil.filter.row_filter import columns_of, row_mask
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import ROWS
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.schema import Schema
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot
from frazil.paimon.read.table_schema import INSERT_KINDS, KIND
from frazil.paimon.scan.keyed_rows import KeyedFile, MergeRules, keyed_rows
from frazil.paimon.scan.paimon_plan import PaimonPlan, PaimonReport, plan, schema_of
from frazil.rows.duckdb import duckdb_connection, duckdb_failures
from frazil.rows.duckdb.duckdb_filter import matching
from frazil.text_format import did_you_mean
from frazil.value_classes import dataclass, replace

_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True)
class PaimonScan(ArrowRows):
    """Rows of one snapshot of a Paimon table. Lazy: nothing is read until needed."""

    _table: PaimonTable
    snapshot: PaimonSnapshot
    matching: Where = None
    columns: tuple[str, ...] | None = None
    max_rows: int | None = None
    params: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        columns = "all columns" if self.columns is None else ", ".join(self.columns)
        where = "" if self.matching is None else f" where {self.matching}"
        return f"PaimonScan({self._table.location}: {columns}{where}; snapshot {self.snapshot.id})"

    def select(self, *columns: str) -> PaimonScan:
        """The same rows with these columns only."""
        if not columns:
            raise InvalidInput("select needs a column: scan.select('id', 'price')")
        return replace(self, columns=columns)

    def limit(self, rows: int) -> PaimonScan:
        """The first rows of this scan."""
        if rows < 0:
            raise InvalidInput(f"rows is {rows}; expected 0 or more")
        return replace(self, max_rows=rows if self.max_rows is None else min(rows, self.max_rows))

    @cached_property
    def _state(self) -> PaimonState:
        return self._table.state(self.snapshot)

    @cached_property
    def table_schema(self) -> Schema:
        """Every column of the table as this snapshot has it."""
        return schema_of(self._table, self._state)

    @cached_property
    def schema(self) -> Schema:
        """The columns that reading gives."""
        return (
            self.table_schema if self.columns is None else chosen(self.table_schema, self.columns)
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return arrow_schema(self.schema)

    @cached_property
    def condition(self) -> Condition:
        """Which rows match."""
        return condition(self.matching, self.table_schema, params=self.params)

    @cached_property
    def _plan(self) -> PaimonPlan:
        return plan(self._table, self._state, self.table_schema, self.condition.filter)

    def explain(self) -> PaimonReport:
        """What planning considered and ruled out."""
        return self._plan.report

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; files that are merged are held bucket by bucket."""
        batches = self._matching() if self.condition.sql is None else self._evaluated()
        return arrow_values.first_rows(batches, self.max_rows)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.arrow_schema)

    def count(self) -> int:
        """The number of rows, from metadata where no file has to be looked into."""
        if self.condition.is_everything and not self._plan.groups:
            total = self._plan.report.rows
            return total if self.max_rows is None else min(total, self.max_rows)
        narrow = replace(self, columns=(self.table_schema.fields[0].name,))
        return sum(batch.num_rows for batch in narrow.to_batches())

    def _reading(self, schema: Schema, row_filter: BooleanExpression) -> Reading:
        return Reading(
            storage=self._table.storage,
            schema=schema,
            table_schema=self.table_schema,
            row_filter=row_filter,
            specs=self._plan.specs,
            name_mapping=self._plan.mapping,
            batch_rows=_BATCH_ROWS,
            verify_checksums=False,  # Paimon writes none
        )

    def _matching(self) -> Iterator[pa.RecordBatch]:
        """The rows that pass the filter, which says it all."""
        where = self.condition.filter
        reading = self._reading(self.schema, where)
        for file in self._plan.plain:
            yield from read_file(file.source, reading, dropped=file.dropped)
        rules = self._plan.rules
        for group in self._plan.groups:
            assert rules is not None
            yield from self._merged(group, rules, where)

    def _merged(
        self, group: Sequence[KeyedFile], rules: MergeRules, where: BooleanExpression
    ) -> Iterator[pa.RecordBatch]:
        used = columns_of(where)
        fields = [
            field
            for field in self.table_schema.fields
            if field.field_id in {chosen.field_id for chosen in self.schema.fields}
            or used & _ids(field)
        ]
        needed = [
            field
            for field in self.table_schema.fields
            if field in fields or field.name in rules.needed
        ]
        # Older rows of a key may lack what the newest has, so nothing is required yet.
        optional = [replace(field, required=False) for field in needed]
        rows = keyed_rows(group, self._reading(Schema(*optional), AlwaysTrue()))
        self._check_kinds(rows, rules)
        merged = self._sql(rules.sql("rows", [field.name for field in fields]), rows)
        for batch in conformed(merged, Schema(*fields)):
            if not isinstance(where, AlwaysTrue):
                batch = batch.filter(row_mask(where, batch))
            yield _with_columns(batch, self.arrow_schema)

    def _check_kinds(self, rows: pa.Table, rules: MergeRules) -> None:
        if rules.takes_deletes:
            return
        kinds = set(rows[KIND].unique().to_pylist()) - set(INSERT_KINDS)
        if kinds:
            engine = rules.schema.merge_engine.value
            raise Unsupported(
                f"{self._table.location}: rows of a table with merge-engine {engine} delete "
                "others; only Paimon merges these. Run a full compaction there",
                feature="paimon-merge",
            )

    def _sql(self, text: str, rows: pa.Table) -> pa.Table:
        connection = duckdb_connection.connection()
        with duckdb_failures.explained("merge of Paimon's files"):
            connection.register("rows", rows)
            try:
                return connection.sql(text).to_arrow_table()
            finally:
                connection.unregister("rows")

    def _evaluated(self) -> Iterator[pa.RecordBatch]:
        """The rows that pass a condition which only an engine can evaluate."""
        unprojected = replace(self, matching=Condition(filter=self.condition.filter), columns=None)
        names = ", ".join(quoted(field.name) for field in self.table_schema.fields)
        text = f"SELECT {names} FROM rows AS {quoted(ROWS.name)} WHERE {matching(self.condition)}"
        for batch in replace(unprojected, max_rows=None).to_batches():
            rows = self._sql(text, pa.Table.from_batches([batch]))
            for part in conformed(rows, self.table_schema):
                yield _with_columns(part, self.arrow_schema)


def _ids(field: Any) -> set[int]:
    below = getattr(field.field_type, "fields", ())
    return {field.field_id}.union(*(_ids(child) for child in below))


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(field.name) for field in schema], schema=schema)


def chosen(schema: Schema, names: Sequence[str]) -> Schema:
    """The columns of these names, in their order."""
    fields = {field.name: field for field in schema.fields}
    unknown = [name for name in names if name not in fields]
    if unknown:
        raise InvalidInput(
            f"unknown column{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}; the table has "
            f"{', '.join(fields)}{did_you_mean(unknown[0], list(fields))}"
        )
    return Schema(*(fields[name] for name in dict.fromkeys(names)))
