"""Text to statements. The shell of a statement is read here; queries and expressions stay text.

What begins with a word this module does not know goes to the engine if it only reads, and is
refused with its place otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

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
    TransactionVerb,
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
_FIRST_WORDS: Final = (
    *_READS,
    *_CHANGES,
    *("with", "create", "replace", "drop", "truncate", "alter", "comment", "show", "describe"),
    *("explain", "copy", "call", "use", "begin", "commit", "rollback"),
)
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
_SHOWN: Final = (
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
    if first.is_symbol("(") or first.is_word(*_READS):
        return Query(part=Part(first.start, cursor.end))
    word = first.value.lower() if first.is_word(first.value.lower()) else ""
    match word:
        case "with":
            return _with(cursor)
        case "insert" | "delete" | "update" | "merge":
            return _CHANGES[word](cursor)
        case "create":
            return parse_tables.create(cursor)
        case "replace":
            return parse_tables.replace_table(cursor)
        case "drop":
            return parse_tables.drop(cursor)
        case "truncate":
            return parse_tables.truncate(cursor)
        case "alter":
            return parse_alter.alter(cursor)
        case "comment":
            return parse_alter.comment(cursor)
        case "show":
            return _show(cursor)
        case "describe" | "desc":
            return _describe(cursor)
        case "explain":
            return _explain(cursor)
        case "copy":
            return _copy(cursor)
        case "call":
            return _call(cursor)
        case "use":
            return _use(cursor)
        case "begin" | "start" | "commit" | "rollback" | "abort" | "end":
            return _transaction(cursor)
    word_text = cursor.source.text[first.start : first.end]
    message = f"unknown statement {word_text!r}{_hint(word)}"
    raise cursor.source.unsupported(first.start, message, feature=word_text)


def _hint(word: str) -> str:
    if word in _INSTEAD:
        return f"; {_INSTEAD[word]}"
    return did_you_mean(word.upper(), map(str.upper, _FIRST_WORDS))


def _with(cursor: Cursor) -> Statement:
    """WITH … in front of a query, or of a change of rows."""
    start = cursor.offset
    cursor.expect("with")
    depth = 0
    while (token := cursor.token) is not None:
        if depth == 0 and token.is_word(*_CHANGES):
            ctes = Part(start, cursor.tokens[cursor.index - 1].end)
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
    if token is not None and (token.is_symbol("(") or token.is_word(*_READS)):
        return Explain(parts=(Part(token.start, cursor.end),), analyze=analyze)
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
    if cursor.token is not None and cursor.token.is_symbol("("):
        parts.append(cursor.until("to", what="a query in brackets"))
    else:
        table = chain(cursor, "a table, or a query in brackets")
        prefix = "SELECT * FROM "
        if cursor.token is not None and cursor.token.is_symbol("("):
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
    elif cursor.token is not None and (
        cursor.token.is_symbol("(") or cursor.token.is_word("select", "with", "from", "values")
    ):
        return Describe(query=cursor.rest("a query"))
    else:
        cursor.take("table")
        extended = cursor.take("extended") or cursor.take("formatted")
        statement = Describe(table=chain(cursor), extended=extended)
    cursor.finish()
    return statement


def _is_namespace(cursor: Cursor) -> bool:
    """Whether NAMESPACE and a name follow; alone, the word is a table's name."""
    following = cursor.tokens[cursor.index : cursor.index + 2]
    return len(following) == 2 and following[0].is_word(*NAMESPACE) and following[1].is_name


def _show(cursor: Cursor) -> Show:
    cursor.expect("show")
    what = _shown(cursor)
    of: Name | None = None
    like = key = None
    if what in ("tables", "views", "namespaces"):
        if cursor.take("in") or cursor.take("from"):
            of = chain(cursor, "a namespace")
        if cursor.take("like") or (
            cursor.token is not None and cursor.token.kind.value == "string"
        ):
            like = cursor.string()
    else:
        if not cursor.take("in"):
            cursor.take("from")
        of = chain(cursor)
        if what == "tblproperties" and cursor.take_symbol("("):
            key = cursor.string("the name of a property in 'quotes'")
            cursor.expect_symbol(")")
    cursor.finish()
    return Show(what=what, of=of, like=like, key=key)


def _shown(cursor: Cursor) -> str:
    for pair in (("create", "table"), ("create", "view")):
        if cursor.take(*pair):
            return " ".join(pair)
    for what, words in {
        "tables": ("tables",),
        "views": ("views",),
        "namespaces": ("namespaces", "databases", "schemas"),
        "columns": ("columns",),
        "tblproperties": ("tblproperties", "properties"),
        "partitions": ("partitions",),
        "branches": ("branches",),
        "tags": ("tags",),
    }.items():
        if any(cursor.take(word) for word in words):
            return what
    raise cursor.unexpected(_SHOWN)


def _call(cursor: Cursor) -> Call:
    cursor.expect("call")
    procedure = chain(cursor, "a procedure such as system.expire_snapshots")
    cursor.expect_symbol("(")
    positional: list[Part] = []
    named: list[tuple[Name, Part]] = []
    while not cursor.take_symbol(")"):
        if positional or named:
            cursor.expect_symbol(",")
        following = cursor.tokens[cursor.index + 1 : cursor.index + 2]
        if following and following[0].is_symbol("=>"):
            start = cursor.offset
            name = cursor.name("the name of an argument")
            named.append((Name((name,), start, following[0].start), _argument(cursor)))
        elif named:
            raise cursor.unexpected("a named argument (name => value), as the ones before it")
        else:
            positional.append(cursor.until(what="a value"))
    cursor.finish()
    return Call(procedure=procedure, positional=tuple(positional), named=tuple(named))


def _argument(cursor: Cursor) -> Part:
    cursor.expect_symbol("=>")
    return cursor.until(what="a value")


def _use(cursor: Cursor) -> Use:
    cursor.expect("use")
    if not cursor.take("namespace"):
        cursor.take("schema")
    statement = Use(namespace=chain(cursor, "a namespace"))
    cursor.finish()
    return statement


def _transaction(cursor: Cursor) -> TransactionStatement:
    start = cursor.offset
    word = cursor.advance().value.lower()
    if word == "start":
        cursor.expect("transaction")
    elif not cursor.take("transaction"):
        cursor.take("work")
    cursor.finish()
    verb = {"begin": TransactionVerb.BEGIN, "start": TransactionVerb.BEGIN}.get(word)
    if verb is None:
        verb = TransactionVerb.COMMIT if word in ("commit", "end") else TransactionVerb.ROLLBACK
    return TransactionStatement(verb=verb, start=start)
