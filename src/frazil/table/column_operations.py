"""The part of a table that writes columns beside rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frazil.argument_checks import check_arguments
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult
    from frazil.data.write.row_input import Rows
    from frazil.table.transaction import Transaction


@check_arguments
class ColumnOperations:
    """Columns computed for every row, written as column files: no row is rewritten."""

    _recomputed: Callable[..., CommitResult]

    def add_columns(
        self,
        columns: Mapping[str, Any],
        *,
        read_columns: Sequence[str] | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Add columns with values for every row: each an SQL expression over the row, or a function
        that is given batches of rows (`pyarrow.RecordBatch`) and returns as many values.

        The values are written to column files beside the data files. Functions are called with
        `read_columns`, by default all columns, and once with a single row to learn the type. Other
        readers do not know column files yet; `compact(merge_columns=True)` merges them.

        >>> orders.add_columns({"margin": "price - cost"})               # doctest: +SKIP
        """
        return self._recomputed(
            lambda tx: add_columns(tx, columns, read_columns=read_columns, summary=summary)
        )

    def merge_columns(
        self,
        rows: Rows,
        on: str | Sequence[str],
        *,
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Take the values of columns from rows with the same key; columns that the table lacks are
        added. Rows of the table without a match keep what they have; no row is added.

        Written to column files, as by `add_columns`.

        >>> orders.merge_columns(scores, on="id")                        # doctest: +SKIP
        """
        return self._recomputed(
            lambda tx: merge_columns(tx, rows, on, summary=summary), source=rows
        )


def add_columns(
    tx: Transaction,
    columns: Mapping[str, Any],
    *,
    read_columns: Sequence[str] | None = None,
    summary: Mapping[str, str] | None = None,
) -> None:
    """Add columns with values to a transaction."""
    from frazil.rows.columns import column_changes

    check_new_columns(columns)
    editor = tx._editor()
    texts = column_changes.expressions(editor, columns)
    functions = {name: value for name, value in columns.items() if name not in texts}
    added = column_changes.new_columns(editor, columns, read_columns)
    with _together(tx):
        evolve = tx.evolve_schema()
        for column in added.fields:
            evolve.add_column((column.name,), column.field_type)
        evolve.commit()
        tx._apply_edit(
            lambda now: column_changes.filled(now, texts, functions, read_columns), summary=summary
        )


def check_new_columns(columns: Mapping[str, Any], *kinds: type) -> None:
    """Refuse values of new columns that are neither SQL, functions, nor of these kinds."""
    from frazil.filter.text.sql_text import Expression

    if not columns:
        raise InvalidInput("add_columns needs at least one column: {'name': 'expression'}")
    for name in columns:
        if not name.strip():
            raise InvalidInput(f"{name!r} is not a name for a column")
    unknown = [
        name
        for name, value in columns.items()
        if not isinstance(value, (str, Expression, *kinds)) and not callable(value)
    ]
    if unknown:
        raise InvalidInput(
            f"the value of column {unknown[0]} is neither an SQL expression nor a function of "
            "batches"
        )


def merge_columns(
    tx: Transaction,
    rows: Rows,
    on: str | Sequence[str],
    *,
    summary: Mapping[str, str] | None = None,
) -> None:
    """Add the values of columns by key to a transaction."""
    from frazil.rows.columns import column_changes
    from frazil.table.columns.merge_on_write import columns_to_merge

    keys = [on] if isinstance(on, str) else list(on)
    lacking = [name for name in keys if name not in tx.metadata.schema().column_names]
    if lacking or not keys:
        raise InvalidInput(
            f"merge_columns needs key columns of the table: {', '.join(lacking) or 'none given'}"
        )
    new_columns, rows = columns_to_merge(rows, tx.metadata.schema())
    with _together(tx):
        if new_columns.names:
            tx.evolve_schema().union_by_name(new_columns).commit()
        tx._apply_edit(lambda editor: column_changes.merged(editor, rows, keys), summary=summary)


@contextmanager
def _together(tx: Transaction) -> Iterator[None]:
    """Columns come with their values or not at all, also where a failure is caught and the
    transaction goes on."""
    before = tx._change
    try:
        yield
    except BaseException:
        tx._change = before
        tx._unstage()
        raise
