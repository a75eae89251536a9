"""Text to statements. The shell of a statement is read here; queries and expressions stay text.

What begins with a word this module does not know goes to the engine if it only reads, and is
refused with its place otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from frazil.errors import InvalidInput
from frazil.sql import parse_alter, parse_tables
from frazil.sql.parse_rows import parse_delete, parse_insert, parse_merge, parse_update
from frazil.sql.parse_tables import NAMESPACE
from frazil.sql.statements import (
    Bracket,
    Call,
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
from frazil.sql.text import Cursor, Name, Part, Source, chain, statements, tokens
from frazil.words import did_you_mean

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
    *("explain", "call", "use", "begin", "commit", "rollback"),
)
_IS_SET: Final = "the engine is set by Frazil"
_INSTEAD: Final[Mapping[str, str]] = {
    "optimize": "CALL system.rewrite_data_files compacts a table",
    "vacuum": "CALL system.expire_snapshots and system.remove_orphan_files free space",
    "restore": "CALL system.rollback_to_snapshot and system.rollback_to_timestamp go back",
    "analyze": "every commit keeps the statistics of all columns",
    "refresh": "every statement reads the newest snapshot",
    "copy": "INSERT INTO … SELECT … FROM read_parquet('…') reads files, and frazil sql --format "
    "writes results as CSV, JSON lines or Arrow",
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
    for found in statements(tokens(source)):
        cursor = Cursor(source, found)
        yield source, cursor, parse_statement(cursor)


def is_complete(text: str) -> bool:
    """Whether a text ends with a semicolon that ends a statement."""
    try:
        found = tokens(Source(text))
    except InvalidInput:
        return False  # inside quotes or a comment
    return bool(found) and found[-1].is_symbol(";")


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
        case "call":
            return _call(cursor)
        case "use":
            return _use(cursor)
        case "begin" | "start" | "commit" | "rollback" | "abort" | "end":
            return _bracket(cursor)
    shown = cursor.source.text[first.start : first.end]
    message = f"statements that begin with {shown!r} are not known{_hint(word)}"
    raise cursor.source.unsupported(first.start, message, feature=shown)


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
    found = _with(cursor) if token.is_word("with") else _CHANGES[token.value.lower()](cursor)
    if isinstance(found, Query):
        return Explain(parts=(found.part,), analyze=analyze)
    if analyze:
        raise cursor.source.unsupported(
            token.start,
            "EXPLAIN ANALYZE runs the statement; it takes queries only",
            feature="EXPLAIN ANALYZE of a change",
        )
    return _explained_change(found, cursor, token.start)


def _explained_change(found: Statement, cursor: Cursor, start: int) -> Explain:
    """The query that finds the rows of a change."""
    match found:
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


def _describe(cursor: Cursor) -> Describe:
    cursor.advance()
    if cursor.take("history"):
        cursor.take("table")
        made = Describe(table=chain(cursor), history=True)
    elif _is_namespace(cursor):
        cursor.index += 1
        cursor.take("extended")
        made = Describe(namespace=chain(cursor, "a namespace"))
    elif cursor.token is not None and (
        cursor.token.is_symbol("(") or cursor.token.is_word("select", "with", "from", "values")
    ):
        return Describe(query=cursor.rest("a query"))
    else:
        cursor.take("table")
        extended = cursor.take("extended") or cursor.take("formatted")
        made = Describe(table=chain(cursor), extended=extended)
    cursor.finish()
    return made


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
    made = Use(namespace=chain(cursor, "a namespace"))
    cursor.finish()
    return made


def _bracket(cursor: Cursor) -> TransactionStatement:
    start = cursor.offset
    word = cursor.advance().value.lower()
    if word == "start":
        cursor.expect("transaction")
    elif not cursor.take("transaction"):
        cursor.take("work")
    cursor.finish()
    bracket = {"begin": Bracket.BEGIN, "start": Bracket.BEGIN}.get(word)
    if bracket is None:
        bracket = Bracket.COMMIT if word in ("commit", "end") else Bracket.ROLLBACK
    return TransactionStatement(bracket=bracket, start=start)
