"""INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.expr.sql_text import Expression
from frazil.rows.duckdb_types import type_text
from frazil.sql import statements as st
from frazil.sql.result import Result, done
from frazil.sql.rewriting import Rewritten
from frazil.sql.run_tables import CountedRows
from frazil.sql.text import Name, quoted
from frazil.table.table import Table

if TYPE_CHECKING:
    from frazil.sql.statement import Statement


def run(statement: st.Insert | st.Delete | st.Update | st.Merge, at: Statement) -> Result:
    """Carry out a statement."""
    with at.place(statement.table.start):
        table = at.names.table(statement.table.parts)
    match statement:
        case st.Insert():
            return _insert(statement, table, at)
        case st.Delete():
            return _delete(statement, table, at)
        case st.Update():
            return _update(statement, table, at)
    raise at.source.unsupported(
        statement.table.start, "MERGE is not supported", feature="MERGE INTO"
    )


def _delete(statement: st.Delete, table: Table, at: Statement) -> Result:
    where = "true" if statement.where is None else at.binder.plain(statement.where)
    start = statement.table.start if statement.where is None else statement.where.start
    with at.place(start), at.transactions.writing(table) as tx:
        tx.delete(where)
    return done(deleted=None if at.transactions.is_open else tx.result.rows_removed)


def _update(statement: st.Update, table: Table, at: Statement) -> Result:
    known = {field.name.lower(): field.name for field in table.schema.fields}
    assignments = {
        _known(name, known, at): Expression(text=at.binder.plain(value))
        for name, value in statement.assignments
    }
    where = None if statement.where is None else at.binder.plain(statement.where)
    with at.place(statement.table.start), at.transactions.writing(table) as tx:
        tx.update(assignments, where)
    return done(updated=None if at.transactions.is_open else tx.result.rows_updated)


def _insert(statement: st.Insert, table: Table, at: Statement) -> Result:
    parts = [part for part in (statement.ctes, statement.query) if part is not None]
    ran = at.binder.query(*parts)
    relation = at.relation(ran)
    targets = _targets(statement, table, list(relation.columns), at)
    with at.place(statement.query.start):
        rows = _cast(ran, relation.columns, targets, table, at)
    counted = CountedRows(rows)
    where = _replaced(statement, at)
    with at.place(statement.table.start), at.transactions.writing(table) as tx:
        match statement.mode:
            case st.InsertMode.APPEND if where is None:
                tx.append(counted.reader())
            case st.InsertMode.OVERWRITE_PARTITIONS:
                tx.overwrite_partitions(counted.reader())
            case _:
                tx.overwrite(counted.reader(), where)
    return done(inserted=counted.rows)


def _replaced(statement: st.Insert, at: Statement) -> str | None:
    """The condition of the rows that new ones take the place of."""
    if statement.where is not None:
        return at.binder.plain(statement.where)
    if not statement.fixed:
        return None
    return " and ".join(
        f"{quoted(name.parts[0])} = {at.binder.plain(value)}" for name, value in statement.fixed
    )


def _targets(
    statement: st.Insert, table: Table, given: list[str], at: Statement
) -> list[tuple[str, str]]:
    """Pairs of a column of the table and the SQL that fills it, from columns c0, c1, … ."""
    known = {field.name.lower(): field.name for field in table.schema.fields}
    fixed = {_known(name, known, at): at.binder.plain(value) for name, value in statement.fixed}
    if statement.by_name:
        names = [Name((name,), statement.query.start, statement.query.start) for name in given]
        wanted = [_known(name, known, at) for name in names]
    elif statement.columns is not None:
        wanted = [_known(name, known, at) for name in statement.columns]
    else:
        wanted = [name for name in known.values() if name not in fixed]
    twice = sorted({name for name in [*wanted, *fixed] if [*wanted, *fixed].count(name) > 1})
    if twice:
        raise at.source.problem(statement.table.end, f"column {twice[0]} is filled twice")
    if len(wanted) != len(given):
        raise at.source.problem(
            statement.query.start,
            f"{len(wanted)} column{'s' * (len(wanted) != 1)} of {table.name} "
            f"({', '.join(wanted)}) are to be filled, but the query gives {len(given)}",
        )
    return [(name, f"c{at}") for at, name in enumerate(wanted)] + list(fixed.items())


def _known(name: Name, known: dict[str, str], at: Statement) -> str:
    found = known.get(name.parts[0].lower()) if len(name.parts) == 1 else None
    if found is None:
        raise at.source.problem(
            name.start, f"unknown column {name}; the table has {', '.join(known.values())}"
        )
    return found


def _cast(
    ran: Rewritten, given: list[str], targets: list[tuple[str, str]], table: Table, at: Statement
) -> pa.RecordBatchReader:
    """The query's rows in the types of the table's columns."""
    types = {field.name: field.field_type for field in table.schema.fields}
    outputs = ", ".join(
        f"CAST({source} AS {type_text(types[name])}) AS {quoted(name)}" for name, source in targets
    )
    names = ", ".join(f"c{number}" for number in range(len(given)))
    text = f"SELECT {outputs} FROM (\n{ran.text}) AS q({names})"
    return at.stream(Rewritten(text, ()))
