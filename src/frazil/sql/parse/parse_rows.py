"""INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frazil.errors import InvalidInput
from frazil.parser.cursor import Cursor, Name, chain, columns_in_brackets
from frazil.parser.tokens import Part
from frazil.parser.tree import parse_expression, parse_query
from frazil.rows.actions import Action
from frazil.rows.merge_clauses import Clause, Side
from frazil.sql.parse.statements import (
    Delete,
    Insert,
    InsertMode,
    Merge,
    MergeClause,
    Takes,
    Update,
    Written,
)

_QUERY = ("select", "with", "from", "values", "table")
_AFTER_WHERE = ("returning", "limit", ("order", "by"))
_POSSIBLE: Final = {
    Side.MATCHED: (Action.UPDATE, Action.DELETE, Action.KEEP),
    Side.SOURCE_ONLY: (Action.INSERT, Action.KEEP),
    Side.TARGET_ONLY: (Action.UPDATE, Action.DELETE, Action.KEEP),
}
_VERBS: Final = {
    Action.UPDATE: "UPDATE",
    Action.DELETE: "DELETE",
    Action.INSERT: "INSERT",
    Action.KEEP: "DO NOTHING",
}


def parse_insert(cursor: Cursor, *, ctes: Part | None = None) -> Insert:
    """INSERT INTO t [(columns)] [BY NAME] query, and its OVERWRITE and REPLACE WHERE forms."""
    cursor.expect("insert")
    if cursor.ahead("or"):
        raise cursor.source.unsupported(
            cursor.offset, "INSERT OR … is not supported; use MERGE INTO", feature="INSERT OR"
        )
    overwrite = cursor.take("overwrite")
    if not overwrite:
        cursor.expect("into")
        cursor.take("table")
    elif not cursor.take("into"):
        cursor.take("table")
    table = chain(cursor)
    fixed = _partition(cursor) if cursor.take("partition") else []
    columns: tuple[Name, ...] | None = None
    by_name = cursor.take("by", "name")
    if not by_name and not cursor.take("by", "position") and _has_columns(cursor):
        columns = columns_in_brackets(cursor)
    where = _condition(cursor) if cursor.take("replace", "where") else None
    only_defaults = cursor.ahead("default", "values")
    mode = InsertMode.APPEND
    if overwrite:
        is_dynamic = any(part is None for _, part in fixed)
        mode = InsertMode.OVERWRITE_PARTITIONS if is_dynamic else InsertMode.OVERWRITE
    return Insert(
        table=table,
        query=_inserted(cursor),
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
    depth, first = 0, cursor.index
    for at, token in enumerate(cursor.tokens[cursor.index :], start=cursor.index):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth or not token.is_word("returning", "on"):
            continue
        cursor.index = at
        if token.is_word("on") and not cursor.ahead("on", "conflict"):
            continue
        _no_returning(cursor)
        raise cursor.source.unsupported(
            token.start, "ON CONFLICT is not supported; use MERGE INTO", feature="ON CONFLICT"
        )
    cursor.index = first
    return cursor.rest("a query or VALUES")


def _condition(cursor: Cursor) -> Part:
    """The condition before a query. A word that can begin one may belong to the condition, as in
    `TIMESTAMP WITH TIME ZONE`: DuckDB's parser says where an expression ends."""
    start, text = cursor.offset, cursor.source.text
    first: tuple[int, int] | None = None
    while True:
        end = cursor.until(*_QUERY, what="a condition").end
        if first is None:
            first = end, cursor.index
        if cursor.token is None:  # the query is one that only we can read
            end, cursor.index = first
            return Part(start, end)
        if _is_read(parse_expression, text[start:end]) and _is_read(
            parse_query, text[cursor.offset : cursor.end]
        ):
            return Part(start, end)
        cursor.advance()


def _is_read(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InvalidInput:
        return False
    return True


def _has_columns(cursor: Cursor) -> bool:
    """Whether brackets hold column names and not a query."""
    first = cursor.following if cursor.is_at("(") else None
    return first is not None and first.is_name and not first.is_word(*_QUERY)


def _partition(cursor: Cursor) -> list[tuple[Name, Part | None]]:
    """PARTITION (a = 1, b): values that are given, and columns without."""

    def term() -> tuple[Name, Part | None]:
        name = chain(cursor, "a column")
        return name, cursor.until(what="a value") if cursor.take_symbol("=") else None

    return cursor.in_brackets(term)


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
    using, where = _others_and_condition(cursor, "using")
    return Delete(table=table, alias=alias, where=where, using=using, ctes=ctes)


def _others_and_condition(cursor: Cursor, word: str) -> tuple[Part | None, Part | None]:
    """The end of a change: other tables after a word, and the condition."""
    tables = where = None
    if cursor.take(word):
        start = cursor.offset
        cursor.list_until("where", "returning", what="a table")
        tables = cursor.since(start)
    if cursor.take("where"):
        where = cursor.until(*_AFTER_WHERE, what="a condition")
    _no_returning(cursor)
    cursor.finish()
    return tables, where


def parse_update(cursor: Cursor, *, ctes: Part | None = None) -> Update:
    """UPDATE t [alias] SET a = …, … [FROM …] [WHERE …]."""
    cursor.expect("update")
    table = chain(cursor)
    alias = _alias(cursor, "set")
    cursor.expect("set")
    assignments = _assignments(cursor, "from", "where", *_AFTER_WHERE)
    source, where = _others_and_condition(cursor, "from")
    return Update(
        table=table, alias=alias, assignments=assignments, source=source, where=where, ctes=ctes
    )


def _assignments(cursor: Cursor, *ends: str | tuple[str, ...]) -> tuple[tuple[Name, Part], ...]:
    def assignment() -> tuple[Name, Part]:
        if cursor.is_at("("):
            raise cursor.source.unsupported(
                cursor.offset,
                "(a, b) = … is not supported; assign each column by itself",
                feature="assigning several columns at once",
            )
        name = chain(cursor, "a column")
        cursor.expect_symbol("=")
        return name, cursor.until(*ends)

    return tuple(cursor.listed(assignment))


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
        on = columns_in_brackets(cursor)
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
    if cursor.is_at("("):
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
    source = cursor.since(start)
    alias = _alias(cursor, "on", "using")
    if alias is not None and cursor.is_at("("):  # v(a, b) names the columns
        columns_in_brackets(cursor)
        source = cursor.since(start)
    return source, alias


def _clause(cursor: Cursor) -> MergeClause:
    start = cursor.offset
    cursor.expect("when")
    if cursor.take("matched"):
        side = Side.MATCHED
    else:
        cursor.expect("not", "matched")
        side = Side.SOURCE_ONLY
        if cursor.take("by", "source"):
            side = Side.TARGET_ONLY
        else:
            cursor.take("by", "target")
    condition = cursor.until("then", what="a condition") if cursor.take("and") else None
    cursor.expect("then")
    at = cursor.offset
    action, written = _action(cursor, start)
    if action not in _POSSIBLE[side]:
        raise cursor.source.problem(
            at,
            f"WHEN {side.value.upper()} cannot {_VERBS[action]}; it can "
            f"{' or '.join(_VERBS[action] for action in _POSSIBLE[side])}",
        )
    if side is Side.TARGET_ONLY and action is Action.UPDATE and written.values is None:
        raise cursor.source.problem(at, "WHEN NOT MATCHED BY SOURCE has no source row to take * of")
    return Clause(side=side, action=action, condition=condition, values=written)


def _action(cursor: Cursor, start: int) -> tuple[Action, Written]:
    if cursor.take("delete"):
        return Action.DELETE, Written(start=start)
    if cursor.take("do", "nothing"):
        return Action.KEEP, Written(start=start)
    if cursor.take("update"):
        takes = _takes(cursor)
        if takes is Takes.ALL and cursor.take("set") and not cursor.take_symbol("*"):
            pairs = _assignments(cursor, "when", "returning")
            columns, values = zip(*pairs, strict=True)
            return Action.UPDATE, Written(start=start, columns=columns, values=values)
        # DuckDB's short form: UPDATE alone takes every column of the source.
        return Action.UPDATE, Written(start=start, takes=takes)
    if cursor.take("insert"):
        return Action.INSERT, _inserts(cursor, start)
    raise cursor.unexpected("UPDATE SET, DELETE, INSERT or DO NOTHING")


def _inserts(cursor: Cursor, start: int) -> Written:
    if cursor.take("default", "values"):
        return Written(start=start, takes=Takes.DEFAULTS)
    takes = _takes(cursor)
    if cursor.take_symbol("*") or cursor.token is None or cursor.ahead("when"):
        return Written(start=start, takes=takes)
    columns = columns_in_brackets(cursor) if cursor.is_at("(") else None
    cursor.expect("values")
    return Written(start=start, columns=columns, values=tuple(cursor.bracketed("a value")))


def _takes(cursor: Cursor) -> Takes:
    if cursor.take("by", "name"):
        return Takes.BY_NAME
    return Takes.BY_POSITION if cursor.take("by", "position") else Takes.ALL
