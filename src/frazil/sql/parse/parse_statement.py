"""Text to statements. The shell of a statement is read here; queries and expressions stay text.

What begins with a word this module does not know goes to the engine if it only reads, and is
refused with its place otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from frazil.errors import InvalidInput
from frazil.parser.cursor import Cursor, Name, chain
from frazil.parser.tokens import Kind, Part, Source, statements, tokens
from frazil.sql.parse import parse_alter, parse_tables
from frazil.sql.parse.parse_rows import parse_delete, parse_insert, parse_merge, parse_update
from frazil.sql.parse.parse_tables import NAMESPACE
from frazil.sql.parse.statements import (
    Call,
    Copy,
    Delete,
    Describe,
    Explain,
    Insert,
    Merge,
    Query,
    Show,
    Statement,
    TransactionStatement,
    Update,
    Use,
)
from frazil.text_format import did_you_mean

_READS: Final = ("select", "from", "values", "table", "pivot", "unpivot", "summarize")
_CHANGES: Final[dict[str, Callable[..., Insert | Delete | Update | Merge]]] = {
    "insert": parse_insert,
    "delete": parse_delete,
    "update": parse_update,
    "merge": parse_merge,
}
_IS_SET: Final = "the engine is set by Frazil"
_INSTEAD: Final[Mapping[str, str]] = {
    "optimize": "CALL system.rewrite_data_files compacts a table",
    "vacuum": "CALL system.expire_snapshots and system.remove_orphan_files free space",
    "restore": "CALL system.rollback_to_snapshot and system.rollback_to_timestamp go back",
    "analyze": "every commit keeps the bounds and counts of all columns; "
    "CALL system.compute_table_stats counts distinct values",
    "refresh": "every statement reads the newest snapshot",
    **dict.fromkeys(("set", "reset", "pragma", "install", "load", "attach"), _IS_SET),
}
"""Statements of other engines, and what there is instead."""
_SHOWN_AS: Final = {
    "databases": "namespaces",
    "schemas": "namespaces",
    "properties": "tblproperties",
}
_SHOWN: Final = (
    *("tables", "views", "namespaces", "columns", "tblproperties", "create table", "create view"),
    *("partitions", "branches", "tags", *_SHOWN_AS),
)
_SHOWN_TEXT: Final = (
    "tables, views, namespaces, columns, tblproperties, create table, create view, partitions, "
    "branches or tags"
)


def parse_script(text: str) -> Iterator[tuple[Source, Cursor, Statement]]:
    """The statements of a text, each read when it is asked for."""
    source = Source(text)
    for statement_tokens in statements(tokens(source)):
        cursor = Cursor(source, statement_tokens)
        yield source, cursor, parse_statement(cursor)


def is_complete(text: str) -> bool:
    """Whether a text ends with a semicolon that ends a statement."""
    try:
        all_tokens = tokens(Source(text))
    except InvalidInput:
        return False  # inside quotes or a comment
    return bool(all_tokens) and all_tokens[-1].is_symbol(";")


def parse_statement(cursor: Cursor) -> Statement:
    """One statement."""
    first = cursor.token
    assert first is not None
    if _is_query(cursor):
        return Query(part=cursor.rest("a query"))
    word = first.value.lower() if first.is_word(first.value.lower()) else ""
    if word in _PARSERS:
        return _PARSERS[word](cursor)
    word_text = cursor.source.text[first.start : first.end]
    message = f"unknown statement {word_text!r}{_hint(word)}"
    raise cursor.source.unsupported(first.start, message, feature=word_text)


def _hint(word: str) -> str:
    if word in _INSTEAD:
        return f"; {_INSTEAD[word]}"
    return did_you_mean(word.upper(), map(str.upper, (*_READS, *_PARSERS)))


def _is_query(cursor: Cursor) -> bool:
    return cursor.is_at("(") or (cursor.token is not None and cursor.token.is_word(*_READS))


def _with(cursor: Cursor) -> Statement:
    """WITH … in front of a query, or of a change of rows."""
    start = cursor.offset
    cursor.expect("with")
    depth = 0
    while (token := cursor.token) is not None:
        if depth == 0 and token.is_word(*_CHANGES):
            ctes = cursor.since(start)
            return _CHANGES[token.value.lower()](cursor, ctes=ctes)
        if depth == 0 and token.is_word(*_READS):
            break
        depth += token.is_symbol("(") - token.is_symbol(")")
        cursor.index += 1
    return Query(part=Part(start, cursor.end))


def _explain(cursor: Cursor) -> Explain:
    cursor.expect("explain")
    analyze = cursor.take("analyze")
    token = cursor.token
    if _is_query(cursor):
        return Explain(parts=(cursor.rest("a query"),), analyze=analyze)
    if token is None or not token.is_word("with", *_CHANGES):
        raise cursor.unexpected("a query to explain")
    change = _with(cursor) if token.is_word("with") else _CHANGES[token.value.lower()](cursor)
    if isinstance(change, Query):
        return Explain(parts=(change.part,), analyze=analyze)
    if analyze:
        raise cursor.source.unsupported(
            token.start,
            "EXPLAIN ANALYZE runs the statement; it takes queries only",
            feature="EXPLAIN ANALYZE of a change",
        )
    return _explained_change(change, cursor, token.start)


def _explained_change(change: Statement, cursor: Cursor, start: int) -> Explain:
    """The query that finds the rows of a change."""
    match change:
        case Insert(query=query, ctes=ctes, only_defaults=False):
            return Explain(parts=(query,) if ctes is None else (ctes, query), analyze=False)
        case Delete(table=table, using=None, ctes=None):
            rows = Part(table.start, cursor.end)
            return Explain(parts=(rows,), analyze=False, prefix="SELECT * FROM ")
        case Update(table=table, source=None, ctes=None, assignments=assignments, where=where):
            before = [token for token in cursor.tokens if token.start < assignments[0][0].start]
            parts = [Part(table.start, before[-2].end)]  # up to SET
            if where is not None:
                word = [token for token in cursor.tokens if token.start < where.start][-1]
                parts.append(Part(word.start, where.end))
            return Explain(parts=tuple(parts), analyze=False, prefix="SELECT * FROM ")
    raise cursor.source.unsupported(
        start,
        "EXPLAIN shows queries, INSERT … SELECT, and DELETE and UPDATE of one table",
        feature="EXPLAIN of a change that joins",
    )


def _copy(cursor: Cursor) -> Copy:
    start = cursor.offset
    cursor.expect("copy")
    prefix = between = ""
    parts: list[Part] = []
    if cursor.is_at("("):
        parts.append(cursor.until("to", what="a query in brackets"))
    else:
        table = chain(cursor, "a table, or a query in brackets")
        prefix = "SELECT * FROM "
        if cursor.is_at("("):
            columns = cursor.bracketed("a column")
            parts.append(Part(columns[0].start, columns[-1].end))
            prefix, between = "SELECT ", " FROM "
        parts.append(Part(table.start, table.end))
    if cursor.ahead("from"):
        raise cursor.source.unsupported(
            start,
            "COPY … FROM is not supported; use INSERT INTO table SELECT … FROM read_csv('…')",
            feature="COPY FROM",
        )
    cursor.expect("to")
    token = cursor.token
    if token is None or token.kind not in (Kind.STRING, Kind.PARAM):
        raise cursor.unexpected("the name of a file in 'quotes'")
    cursor.index += 1
    return Copy(
        start=start,
        parts=tuple(parts),
        file=Part(token.start, token.end),
        options=None if cursor.token is None else cursor.rest("options"),
        prefix=prefix,
        between=between,
    )


def _describe(cursor: Cursor) -> Describe:
    cursor.advance()
    if cursor.take("history"):
        cursor.take("table")
        statement = Describe(table=chain(cursor), history=True)
    elif _is_namespace(cursor):
        cursor.index += 1
        cursor.take("extended")
        statement = Describe(namespace=chain(cursor, "a namespace"))
    elif cursor.is_at("(") or any(map(cursor.ahead, ("select", "with", "from", "values"))):
        return Describe(query=cursor.rest("a query"))
    else:
        cursor.take("table")
        extended = cursor.take_any("extended", "formatted")
        statement = Describe(table=chain(cursor), extended=extended)
    cursor.finish()
    return statement


def _is_namespace(cursor: Cursor) -> bool:
    """Whether NAMESPACE and a name follow; alone, the word is a table's name."""
    name = cursor.following
    return any(map(cursor.ahead, NAMESPACE)) and name is not None and name.is_name


def _show(cursor: Cursor) -> Show:
    cursor.expect("show")
    what = _shown(cursor)
    of: Name | None = None
    like = key = None
    if what in ("tables", "views", "namespaces"):
        if cursor.take_any("in", "from"):
            of = chain(cursor, "a namespace")
        is_text = cursor.token is not None and cursor.token.kind is Kind.STRING
        if cursor.take("like") or is_text:
            like = cursor.string()
    else:
        cursor.take_any("in", "from")
        of = chain(cursor)
        if what == "tblproperties" and cursor.take_symbol("("):
            key = cursor.string("the name of a property in 'quotes'")
            cursor.expect_symbol(")")
    cursor.finish()
    return Show(what=what, of=of, like=like, key=key)


def _shown(cursor: Cursor) -> str:
    for what in _SHOWN:
        if cursor.take(*what.split()):
            return _SHOWN_AS.get(what, what)
    raise cursor.unexpected(_SHOWN_TEXT)


def _call(cursor: Cursor) -> Call:
    cursor.expect("call")
    procedure = chain(cursor, "a procedure such as system.expire_snapshots")
    cursor.expect_symbol("(")
    positional: list[Part] = []
    named: list[tuple[Name, Part]] = []
    while not cursor.take_symbol(")"):
        if positional or named:
            cursor.expect_symbol(",")
        following = cursor.following
        if following is not None and following.is_symbol("=>"):
            start = cursor.offset
            name = Name((cursor.name("the name of an argument"),), start, following.start)
            cursor.expect_symbol("=>")
            named.append((name, cursor.until(what="a value")))
        elif named:
            raise cursor.unexpected("a named argument (name => value), as the ones before it")
        else:
            positional.append(cursor.until(what="a value"))
    cursor.finish()
    return Call(procedure=procedure, positional=tuple(positional), named=tuple(named))


def _use(cursor: Cursor) -> Use:
    cursor.expect("use")
    cursor.take_any("namespace", "schema")
    statement = Use(namespace=chain(cursor, "a namespace"))
    cursor.finish()
    return statement


def _transaction(cursor: Cursor) -> TransactionStatement:
    start = cursor.offset
    word = cursor.advance().value.lower()
    if word == "start":
        cursor.expect("transaction")
    else:
        cursor.take_any("transaction", "work")
    cursor.finish()
    return TransactionStatement(verb=_VERBS[word], start=start)


_VERBS: Final[Mapping[str, Literal["BEGIN", "COMMIT", "ROLLBACK"]]] = {
    "begin": "BEGIN",
    "start": "BEGIN",
    "commit": "COMMIT",
    "end": "COMMIT",
    "rollback": "ROLLBACK",
    "abort": "ROLLBACK",
}
_PARSERS: Final[Mapping[str, Callable[[Cursor], Statement]]] = {
    **_CHANGES,
    "with": _with,
    "create": parse_tables.create,
    "replace": parse_tables.replace_table,
    "drop": parse_tables.drop,
    "truncate": parse_tables.truncate,
    "alter": parse_alter.alter,
    "comment": parse_alter.comment,
    "show": _show,
    "describe": _describe,
    "desc": _describe,
    "explain": _explain,
    "copy": _copy,
    "call": _call,
    "use": _use,
    **dict.fromkeys(_VERBS, _transaction),
}
