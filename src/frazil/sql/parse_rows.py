"""INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from frazil.sql.statements import (
    ClauseAction,
    Delete,
    Insert,
    InsertMode,
    Matching,
    Merge,
    MergeClause,
    Update,
)
from frazil.sql.text import Cursor, Name, Part, chain

_QUERY = ("select", "with", "from", "values", "table")
_AFTER_WHERE = ("returning", "limit", ("order", "by"))


def parse_insert(cursor: Cursor, *, ctes: Part | None = None) -> Insert:
    """INSERT INTO t [(columns)] [BY NAME] query, and its OVERWRITE and REPLACE WHERE forms."""
    cursor.expect("insert")
    if cursor.ahead("or"):
        raise cursor.source.unsupported(
            cursor.offset, "INSERT OR … is not supported; use MERGE INTO", feature="INSERT OR"
        )
    overwrite = cursor.take("overwrite")
    if overwrite:
        if not cursor.take("into"):
            cursor.take("table")
    else:
        cursor.expect("into")
        cursor.take("table")
    table = chain(cursor)
    fixed: list[tuple[Name, Part]] = []
    by_partition = cursor.take("partition")
    if by_partition:
        fixed = _partition(cursor)
    where: Part | None = None
    columns: tuple[Name, ...] | None = None
    by_name = cursor.take("by", "name")
    if not by_name and not cursor.take("by", "position") and _has_columns(cursor):
        cursor.expect_symbol("(")
        columns = _names(cursor)
        cursor.expect_symbol(")")
    if cursor.take("replace", "where"):
        where = cursor.until(*_QUERY, what="a condition")
    only_defaults = cursor.ahead("default", "values")
    query = _inserted(cursor)
    mode = InsertMode.APPEND
    if overwrite:
        is_dynamic = by_partition and any(part is None for _, part in fixed)
        mode = InsertMode.OVERWRITE_PARTITIONS if is_dynamic else InsertMode.OVERWRITE
    return Insert(
        table=table,
        query=query,
        columns=columns,
        mode=mode,
        fixed=tuple((name, part) for name, part in fixed if part is not None),
        where=where,
        by_name=by_name,
        only_defaults=only_defaults,
        ctes=ctes,
    )


def _inserted(cursor: Cursor) -> Part:
    """The rest: a query, without what only engines with keys have."""
    depth = 0
    for at, token in enumerate(cursor.tokens[cursor.index :], start=cursor.index):
        depth += token.is_symbol("(") - token.is_symbol(")")
        following = cursor.tokens[at + 1 : at + 2]
        if depth or not token.is_word("returning", "on"):
            continue
        if token.is_word("on") and not (following and following[0].is_word("conflict")):
            continue
        cursor.index = at
        _no_returning(cursor)
        raise cursor.source.unsupported(
            token.start, "ON CONFLICT is not supported; use MERGE INTO", feature="ON CONFLICT"
        )
    return cursor.rest("a query or VALUES")


def _has_columns(cursor: Cursor) -> bool:
    """Whether brackets hold column names and not a query."""
    token = cursor.token
    if token is None or not token.is_symbol("("):
        return False
    inner = cursor.tokens[cursor.index + 1 : cursor.index + 2]
    return bool(inner) and inner[0].is_name and not inner[0].is_word(*_QUERY)


def _partition(cursor: Cursor) -> list[tuple[Name, Part]]:
    """PARTITION (a = 1, b): values that are given, and columns without."""
    found: list[tuple[Name, Part]] = []
    cursor.expect_symbol("(")
    while True:
        name = _column(cursor)
        value = cursor.until(what="a value") if cursor.take_symbol("=") else None
        found.append((name, value))  # type: ignore[arg-type]
        if not cursor.take_symbol(","):
            break
    cursor.expect_symbol(")")
    return found


def _column(cursor: Cursor) -> Name:
    return chain(cursor, "a column")


def _names(cursor: Cursor) -> tuple[Name, ...]:
    found = [_column(cursor)]
    while cursor.take_symbol(","):
        found.append(_column(cursor))
    return tuple(found)


def _alias(cursor: Cursor, *stops: str) -> str | None:
    if cursor.take("as"):
        return cursor.name("an alias")
    token = cursor.token
    if token is not None and token.is_name and not token.is_word(*stops):
        return cursor.name()
    return None


def parse_delete(cursor: Cursor, *, ctes: Part | None = None) -> Delete:
    """DELETE FROM t [alias] [USING …] [WHERE …]."""
    cursor.expect("delete")
    cursor.expect("from")
    table = chain(cursor)
    alias = _alias(cursor, "where", "using", "returning")
    using = _tables(cursor) if cursor.take("using") else None
    where = cursor.until(*_AFTER_WHERE, what="a condition") if cursor.take("where") else None
    _no_returning(cursor)
    cursor.finish()
    return Delete(table=table, alias=alias, where=where, using=using, ctes=ctes)


def _tables(cursor: Cursor) -> Part:
    start = cursor.offset
    cursor.list_until("where", "returning", what="a table")
    return Part(start, cursor.tokens[cursor.index - 1].end)


def parse_update(cursor: Cursor, *, ctes: Part | None = None) -> Update:
    """UPDATE t [alias] SET a = …, … [FROM …] [WHERE …]."""
    cursor.expect("update")
    table = chain(cursor)
    alias = _alias(cursor, "set")
    cursor.expect("set")
    assignments = _assignments(cursor, "from", "where", *_AFTER_WHERE)
    source = _tables(cursor) if cursor.take("from") else None
    where = cursor.until(*_AFTER_WHERE, what="a condition") if cursor.take("where") else None
    _no_returning(cursor)
    cursor.finish()
    return Update(
        table=table,
        alias=alias,
        assignments=assignments,
        source=source,
        where=where,
        ctes=ctes,
    )


def _assignments(cursor: Cursor, *ends: str | tuple[str, ...]) -> tuple[tuple[Name, Part], ...]:
    found: list[tuple[Name, Part]] = []
    while True:
        if cursor.token is not None and cursor.token.is_symbol("("):
            raise cursor.source.unsupported(
                cursor.offset,
                "(a, b) = … is not supported; assign each column by itself",
                feature="assigning several columns at once",
            )
        name = _column(cursor)
        cursor.expect_symbol("=")
        found.append((name, cursor.until(*ends)))
        if not cursor.take_symbol(","):
            return tuple(found)


def _no_returning(cursor: Cursor) -> None:
    if cursor.ahead("returning"):
        raise cursor.source.unsupported(
            cursor.offset,
            "RETURNING is not supported; read the changes with table_changes",
            feature="RETURNING",
        )


def parse_merge(cursor: Cursor, *, ctes: Part | None = None) -> Merge:
    """MERGE INTO t USING source ON condition WHEN …; or USING (columns) instead of ON."""
    cursor.expect("merge")
    cursor.expect("into")
    table = chain(cursor)
    alias = _alias(cursor, "using")
    cursor.expect("using")
    source, source_alias = table_and_alias(cursor)
    on: Part | tuple[Name, ...]
    if cursor.take("using"):
        cursor.expect_symbol("(")
        on = _names(cursor)
        cursor.expect_symbol(")")
    else:
        cursor.expect("on")
        on = cursor.until("when", what="a condition")
    clauses: list[MergeClause] = []
    while cursor.ahead("when"):
        clauses.append(_clause(cursor))
    if not clauses:
        raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED")
    _no_returning(cursor)
    cursor.finish()
    return Merge(
        table=table,
        alias=alias,
        source=source,
        source_alias=source_alias,
        on=on,
        clauses=tuple(clauses),
        ctes=ctes,
    )


def table_and_alias(cursor: Cursor) -> tuple[Part, str | None]:
    """A table, with time travel or arguments perhaps, or a query in brackets; and its alias."""
    start = cursor.offset
    if cursor.token is not None and cursor.token.is_symbol("("):
        depth = 0
        while (token := cursor.token) is not None:
            depth += token.is_symbol("(") - token.is_symbol(")")
            cursor.index += 1
            if depth == 0:
                break
    else:
        cursor.until("as", "on", "using", what="a table or a query in brackets")
        while cursor.ahead("as", "of"):  # VERSION AS OF
            cursor.index += 2
            cursor.until("as", "on", "using", what="a version or time")
        previous = [t for t in cursor.tokens[: cursor.index] if t.start >= start][-2:]
        if len(previous) == 2 and previous[1].is_name and not previous[0].is_symbol("."):
            cursor.index -= 1  # the last name is an alias
    source = Part(start, cursor.tokens[cursor.index - 1].end)
    alias = _alias(cursor, "on", "using")
    if alias is not None and cursor.take_symbol("("):  # v(a, b) names the columns
        _names(cursor)
        cursor.expect_symbol(")")
        source = Part(start, cursor.tokens[cursor.index - 1].end)
    return source, alias


def _clause(cursor: Cursor) -> MergeClause:
    start = cursor.offset
    cursor.expect("when")
    if cursor.take("matched"):
        matching = Matching.MATCHED
    else:
        cursor.expect("not", "matched")
        matching = Matching.NOT_MATCHED
        if cursor.take("by", "source"):
            matching = Matching.NOT_MATCHED_BY_SOURCE
        else:
            cursor.take("by", "target")
    condition = cursor.until("then", what="a condition") if cursor.take("and") else None
    cursor.expect("then")
    at = cursor.offset
    action, columns, values = _action(cursor)
    wanted = (
        (ClauseAction.INSERT, ClauseAction.NOTHING)
        if matching is Matching.NOT_MATCHED
        else (ClauseAction.UPDATE, ClauseAction.DELETE, ClauseAction.NOTHING)
    )
    if action not in wanted:
        raise cursor.source.problem(
            at,
            f"WHEN {matching.value} cannot {action.value}; it can "
            f"{' or '.join(each.value for each in wanted)}",
        )
    if (
        matching is Matching.NOT_MATCHED_BY_SOURCE
        and action is ClauseAction.UPDATE
        and values is None
    ):
        raise cursor.source.problem(at, "WHEN NOT MATCHED BY SOURCE has no source row to take * of")
    return MergeClause(
        start=start,
        matching=matching,
        condition=condition,
        action=action,
        columns=columns,
        values=values,
    )


def _action(
    cursor: Cursor,
) -> tuple[ClauseAction, tuple[Name, ...] | None, tuple[Part, ...] | None]:
    if cursor.take("delete"):
        return ClauseAction.DELETE, None, None
    if cursor.take("do", "nothing"):
        return ClauseAction.NOTHING, None, None
    if cursor.take("update"):
        if not cursor.take("set"):
            # DuckDB's short form: UPDATE alone takes every column of the source.
            return ClauseAction.UPDATE, None, None
        if cursor.take_symbol("*"):
            return ClauseAction.UPDATE, None, None
        pairs = _assignments(cursor, "when", "returning")
        return ClauseAction.UPDATE, tuple(n for n, _ in pairs), tuple(part for _, part in pairs)
    if cursor.take("insert"):
        if cursor.token is None or cursor.ahead("when") or cursor.take_symbol("*"):
            return ClauseAction.INSERT, None, None
        columns: tuple[Name, ...] | None = None
        if cursor.take_symbol("("):
            columns = _names(cursor)
            cursor.expect_symbol(")")
        cursor.expect("values")
        return ClauseAction.INSERT, columns, tuple(cursor.bracketed("a value"))
    raise cursor.unexpected("UPDATE SET, DELETE, INSERT or DO NOTHING")
