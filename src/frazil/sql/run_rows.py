"""INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.types import NestedField

from frazil.expr.quotes import quoted
from frazil.expr.sql_text import SOURCE, TARGET, Expression
from frazil.rows.duckdb_types import literal, type_text
from frazil.rows.merge import Merge
from frazil.sql import statements as st
from frazil.sql.parse_rows import table_and_alias
from frazil.sql.query_result import Result, done
from frazil.sql.rewriting import Edit, EngineText
from frazil.sql.row_problems import placed
from frazil.sql.run_tables import CountedRows
from frazil.sql.scopes import Scope
from frazil.sql.text import Cursor, Name, Part, chain
from frazil.table.table import Table
from frazil.table.transaction import Transaction
from frazil.words import counted

if TYPE_CHECKING:
    from frazil.sql.execution import Statement


def run(statement: st.Insert | st.Delete | st.Update | st.Merge, at: Statement) -> Result:
    """Carry out a statement."""
    with at.place(statement.table.start):
        table = at.names.table(statement.table.parts)
    if not isinstance(statement, st.Insert):
        at.run_ctes(statement.ctes)
    match statement:
        case st.Insert():
            return _insert(statement, table, at)
        case st.Delete():
            return _delete(statement, table, at)
        case st.Merge():
            return _merge(statement, table, at)
    if statement.source is None:
        return _update(statement, table, at)
    return _update_from(statement, table, at)


def _scope(table: Table, name: Name, alias: str | None) -> Scope:
    """The names of the changed table's rows in an expression."""
    names = [name.parts, name.parts[-1:]] if alias is None else [(alias,)]
    return Scope(
        aliases={tuple(part.lower() for part in each): TARGET for each in names},
        columns=[field.name for field in table.schema.fields],
    )


def _done(at: Statement, tx: Transaction, **keys: str) -> Result:
    """What landed; nothing is known yet inside a transaction."""
    if at.transactions.is_open:
        return done(**dict.fromkeys(keys))
    return done(**{name: getattr(tx.result, key) for name, key in keys.items()})


def _named(statement: st.Delete | st.Update | st.Merge) -> dict[str, str]:
    """What the user calls the rows of the table, and of the source of a merge."""
    found = {TARGET: statement.alias or statement.table.parts[-1]}
    if isinstance(statement, st.Merge) and statement.source_alias is not None:
        found[SOURCE] = statement.source_alias
    return found


def _delete(statement: st.Delete, table: Table, at: Statement) -> Result:
    where, start = "true", statement.table.start
    scope = _scope(table, statement.table, statement.alias)
    if statement.using is not None:
        start = statement.using.start
        end = (statement.where or statement.using).end
        where = at.row_binder.exists(Part(start, end), scope)
    elif statement.where is not None:
        start = statement.where.start
        where = at.row_binder.expression(statement.where, scope)
    with placed(at, start, table, _named(statement)), at.writing(table) as tx:
        tx.delete(where)
    return _done(at, tx, deleted="rows_removed")


def _update(statement: st.Update, table: Table, at: Statement) -> Result:
    scope = _scope(table, statement.table, statement.alias)
    values = _assigned(statement.assignments, table, scope, at)
    where = None
    if statement.where is not None:
        where = at.row_binder.expression(statement.where, scope)
    start = statement.assignments[0][0].start
    with placed(at, start, table, _named(statement)), at.writing(table) as tx:
        tx.update(values, where)
    return _done(at, tx, updated="rows_updated")


def _assigned(
    pairs: Iterable[tuple[Name, Part]], table: Table, scope: Scope, at: Statement
) -> dict[str, Any]:
    """New values by column: expressions, or the column's default."""
    found: dict[str, Any] = {}
    for name, part in pairs:
        path = _path(name, table, scope, at)
        if path in found:
            raise at.source.problem(name.start, f"column {path} is assigned twice")
        if at.source.of(part).strip().lower() == "default":
            found[path] = table.schema.find_field(path).write_default
        else:
            found[path] = Expression(text=at.row_binder.expression(part, scope))
    return found


def _path(name: Name, table: Table, scope: Scope, at: Statement) -> str:
    """A column, or a part of one, that is assigned to; it may be qualified."""
    for parts in (name.parts, name.parts[scope.qualifier(name.parts)[0] :]):
        try:
            field = table.schema.find_field(".".join(parts), case_sensitive=False)
        except ValueError:
            continue
        return str(table.schema.find_column_name(field.field_id))
    columns = ", ".join(field.name for field in table.schema.fields)
    raise at.source.problem(name.start, f"unknown column {name}; the table has {columns}")


# MERGE


def _update_from(statement: st.Update, table: Table, at: Statement) -> Result:
    """UPDATE … FROM source WHERE condition: a merge that updates what matches."""
    assert statement.source is not None
    if statement.where is None:
        raise at.source.problem(statement.source.start, "UPDATE … FROM needs WHERE")
    source, alias = _split_alias(statement.source, at)
    clause = st.MergeClause(
        start=statement.table.start,
        matching=st.Matching.MATCHED,
        condition=None,
        action=st.ClauseAction.UPDATE,
        columns=tuple(name for name, _ in statement.assignments),
        values=tuple(part for _, part in statement.assignments),
    )
    merge = st.Merge(
        table=statement.table,
        alias=statement.alias,
        source=source,
        source_alias=alias,
        on=statement.where,
        clauses=(clause,),
    )
    return _merge(merge, table, at, updated="rows_updated")


def _split_alias(part: Part, at: Statement) -> tuple[Part, str | None]:
    """One table with its alias; several are refused."""
    cursor = Cursor(at.source, [t for t in at.tokens if part.start <= t.start < part.end])
    source, alias = table_and_alias(cursor)
    if cursor.token is not None:
        raise at.source.unsupported(
            cursor.offset,
            "UPDATE … FROM takes one table or one query in brackets",
            feature="UPDATE … FROM several tables",
        )
    return source, alias


def _merge(statement: st.Merge, table: Table, at: Statement, **told: str) -> Result:
    rows = at.stream(at.binder.rows_of(statement.source))
    own = _scope(table, statement.table, statement.alias)
    source = _source_names(statement, at)
    clash = set(own.aliases) & set(source)
    if clash:
        raise at.source.problem(
            statement.source.start, f"table and source are both called {'.'.join(clash.pop())}"
        )
    aliases = {**own.aliases, **dict.fromkeys(source, SOURCE)}
    both = Scope(aliases=aliases, columns=own.columns)
    on: Expression | list[str]
    if isinstance(statement.on, Part):
        on = Expression(text=at.row_binder.expression(statement.on, both))
    else:
        known = {field.name.lower(): field.name for field in table.schema.fields}
        on = [_known(name, known, at) for name in statement.on]
    named = _named(statement)
    if SOURCE not in named and source:
        named[SOURCE] = source[-1][-1]
    place = placed(at, statement.table.start, table, named, rows.schema)
    with place, at.writing(table) as tx:
        merge = tx.merge(rows, on)
        settled: dict[st.Matching, list[str]] = {}
        for clause in statement.clauses:
            merge = _clause(merge, clause, table, both, settled, at)
        merge.execute()
    told = told or {"inserted": "rows_added", "updated": "rows_updated", "deleted": "rows_removed"}
    return _done(at, tx, **told)


def _source_names(statement: st.Merge, at: Statement) -> list[tuple[str, ...]]:
    if statement.source_alias is not None:
        return [(statement.source_alias.lower(),)]
    cursor = Cursor(at.source, [t for t in at.tokens if t.start >= statement.source.start])
    if cursor.token is None or not cursor.token.is_name:
        return []
    name = tuple(part.lower() for part in chain(cursor).parts)
    return [name, name[-1:]]


def _clause(
    merge: Merge,
    clause: st.MergeClause,
    table: Table,
    scope: Scope,
    settled: dict[st.Matching, list[str]],
    at: Statement,
) -> Merge:
    """The merge with one more clause. DO NOTHING keeps its rows from the clauses after it."""
    own = None if clause.condition is None else at.row_binder.expression(clause.condition, scope)
    earlier = settled.setdefault(clause.matching, [])
    if clause.action is st.ClauseAction.NOTHING:
        earlier.append("true" if own is None else own)
        return merge
    parts = [f"NOT coalesce(({each}), false)" for each in earlier]
    parts += [f"({own})"] if own is not None else []
    condition = Expression(text=" AND ".join(parts)) if parts else None
    values: dict[str, Any] | None = None
    if clause.values is not None:
        values = _assigned(_pairs(clause, table, at), table, scope, at)
    match clause.matching, clause.action:
        case st.Matching.MATCHED, st.ClauseAction.UPDATE:
            return merge.when_matched_update(values, condition=condition)
        case st.Matching.MATCHED, _:
            return merge.when_matched_delete(condition=condition)
        case st.Matching.NOT_MATCHED, _:
            return merge.when_not_matched_insert(values, condition=condition)
        case _, st.ClauseAction.UPDATE:
            assert values is not None
            return merge.when_not_matched_by_source_update(values, condition=condition)
    return merge.when_not_matched_by_source_delete(condition=condition)


def _pairs(clause: st.MergeClause, table: Table, at: Statement) -> list[tuple[Name, Part]]:
    """Columns and values of a clause; an insert without columns fills all of them."""
    assert clause.values is not None
    columns = clause.columns
    if columns is None:
        fields = table.schema.fields
        columns = tuple(Name((field.name,), clause.start, clause.start) for field in fields)
    if len(columns) != len(clause.values):
        raise at.source.problem(
            clause.values[0].start,
            f"{counted(len(clause.values), 'value')} for {counted(len(columns), 'column')}",
        )
    return list(zip(columns, clause.values, strict=True))


# INSERT


def _insert(statement: st.Insert, table: Table, at: Statement) -> Result:
    counted = CountedRows(_inserted(statement, table, at))
    where = _replaced(statement, table, at)
    with at.place(statement.table.start), at.writing(table) as tx:
        match statement.mode:
            case st.InsertMode.APPEND if where is None:
                tx.append(counted.reader())
            case st.InsertMode.OVERWRITE_PARTITIONS:
                tx.overwrite_partitions(counted.reader())
            case _:
                tx.overwrite(counted.reader(), where)
    return done(inserted=counted.rows)


def _inserted(statement: st.Insert, table: Table, at: Statement) -> pa.RecordBatchReader:
    """The rows to insert, in the table's types."""
    if statement.only_defaults:
        if statement.columns is not None or statement.fixed:
            raise at.source.problem(statement.query.start, "DEFAULT VALUES fills every column")
        values = ", ".join(f"{_default(f)} AS {quoted(f.name)}" for f in table.schema.fields)
        return at.stream(EngineText(f"SELECT {values}", ()))
    at.binder.put(_defaults(statement, table, at))
    parts = [part for part in (statement.ctes, statement.query) if part is not None]
    ran = at.binder.query(*parts)
    relation = at.relation(ran)
    targets = _targets(statement, table, list(relation.columns), at)
    with at.place(statement.query.start):
        return _cast(ran, relation.columns, targets, table, at)


def _default(field: NestedField) -> str:
    return literal(field.write_default, field.field_type)


def _defaults(statement: st.Insert, table: Table, at: Statement) -> list[Edit]:
    """DEFAULT in the rows of VALUES, as the defaults of the columns it stands for."""
    inside = [t for t in at.tokens if statement.query.start <= t.start < statement.query.end]
    if not inside[0].is_word("values") or not any(t.is_word("default") for t in inside):
        return []
    known = {field.name.lower(): field for field in table.schema.fields}
    fixed = {name.parts[0].lower() for name, _ in statement.fixed}
    columns = [str(name).lower() for name in statement.columns or ()] or [
        name for name in known if name not in fixed
    ]
    edits: list[Edit] = []
    depth = column = 0
    for before, token, after in zip(inside, inside[1:], inside[2:], strict=False):
        if depth == 1 and token.is_symbol(","):
            column += 1
        is_alone = before.is_symbol("(", ",") and after.is_symbol(")", ",")
        if depth == 1 and token.is_word("default") and is_alone and column < len(columns):
            field = known.get(columns[column])
            if field is not None:
                edits.append((token.start, token.end, _default(field)))
        depth += token.is_symbol("(", "[", "{") - token.is_symbol(")", "]", "}")
        column = column if depth else 0
    return edits


def _replaced(statement: st.Insert, table: Table, at: Statement) -> str | None:
    """The condition of the rows that new ones take the place of."""
    if statement.where is not None:
        return at.row_binder.expression(statement.where, _scope(table, statement.table, None))
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
    filled = [*wanted, *fixed]
    twice = sorted({name for name in filled if filled.count(name) > 1})
    if twice:
        raise at.source.problem(statement.table.end, f"column {twice[0]} is filled twice")
    if len(wanted) != len(given):
        raise at.source.problem(
            statement.query.start,
            f"the query gives {counted(len(given), 'column')} for {len(wanted)} of {table.name}: "
            f"{', '.join(wanted)}",
        )
    return [(name, f"c{number}") for number, name in enumerate(wanted)] + list(fixed.items())


def _known(name: Name, known: dict[str, str], at: Statement) -> str:
    found = known.get(name.parts[0].lower()) if len(name.parts) == 1 else None
    if found is None:
        raise at.source.problem(
            name.start, f"unknown column {name}; the table has {', '.join(known.values())}"
        )
    return found


def _cast(
    ran: EngineText,
    given: list[str],
    targets: list[tuple[str, str]],
    table: Table,
    at: Statement,
) -> pa.RecordBatchReader:
    """The query's rows in the types of the table's columns."""
    types = {field.name: field.field_type for field in table.schema.fields}
    outputs = ", ".join(
        f"CAST({source} AS {type_text(types[name])}) AS {quoted(name)}" for name, source in targets
    )
    names = ", ".join(f"c{number}" for number in range(len(given)))
    text = f"SELECT {outputs} FROM (\n{ran.text}) AS q({names})"
    return at.stream(EngineText(text, ()))
