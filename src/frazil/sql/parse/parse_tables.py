"""CREATE and DROP of tables, views and namespaces; columns and types as DDL writes them."""

from __future__ import annotations

from typing import Any, Final, Literal

from frazil.errors import FrazilError, InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.filter.text.type_text import parse_type
from frazil.parser.cursor import Cursor, Name, chain, chains
from frazil.parser.tokens import Kind, Part
from frazil.sql.parse.statements import (
    ColumnDefinition,
    CreateNamespace,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Statement,
)

NAMESPACE: Final = ("namespace", "schema", "database")
_PROPERTIES: Final = (
    ("tblproperties",),
    ("with", "properties"),
    ("with", "dbproperties"),
    ("options",),
)
_CLAUSES: Final = (
    "partitioned",
    "tblproperties",
    "location",
    "comment",
    "using",
    "options",
    "write",
    "expressions",
)
_COLUMN_ENDS: Final = ("not", "null", "comment", "default", "primary", "first", "after")
_COMPUTED: Final = ("generated", "as")
_CONSTRAINTS: Final = ("references", "check", "unique", *_COMPUTED)
_TYPES: Final = {
    "blob": "binary",
    "bytea": "binary",
    "int2": "int",
    "int4": "int",
    "int8": "long",
    "float4": "float",
    "float8": "double",
    "timestamp_ltz": "timestamptz",
    "dec": "decimal",
    "logical": "boolean",
    "int1": "tinyint",
    "int16": "smallint",
    "short": "smallint",
    "int32": "int",
    "signed": "int",
    "integral": "int",
    "int64": "long",
    "oid": "long",
    "bpchar": "string",
    "nvarchar": "string",
    "guid": "uuid",
    "timestamp_us": "timestamp",
}


def create(cursor: Cursor) -> Statement:
    """CREATE TABLE, VIEW or NAMESPACE."""
    cursor.expect("create")
    or_replace = cursor.take("or", "replace")
    if cursor.ahead("temp") or cursor.ahead("temporary") or cursor.ahead("recursive"):
        raise cursor.source.unsupported(
            cursor.offset,
            "temporary and recursive objects are not stored in a catalog; use WITH",
            feature=f"CREATE {cursor.advance().value.upper()}",
        )
    if cursor.take("view"):
        return _view(cursor, or_replace=or_replace)
    if cursor.take("table"):
        return _table(cursor, or_replace=or_replace)
    if cursor.take_any(*NAMESPACE):
        if_not_exists = cursor.take("if", "not", "exists")
        namespace = chain(cursor, "a namespace")
        properties = _options(cursor)[0]
        cursor.finish()
        return CreateNamespace(
            namespace=namespace, if_not_exists=if_not_exists, properties=properties
        )
    raise cursor.unexpected("TABLE, VIEW or NAMESPACE")


def replace_table(cursor: Cursor) -> CreateTable:
    """REPLACE TABLE, which is CREATE OR REPLACE TABLE."""
    cursor.expect("replace")
    cursor.expect("table")
    return _table(cursor, or_replace=True)


def drop(cursor: Cursor) -> Drop:
    """DROP TABLE, VIEW or NAMESPACE."""
    cursor.expect("drop")
    kind: Literal["table", "view", "namespace"]
    if cursor.take("table"):
        kind = "table"
    elif cursor.take("view"):
        kind = "view"
    elif cursor.take_any(*NAMESPACE):
        kind = "namespace"
    else:
        raise cursor.unexpected("TABLE, VIEW or NAMESPACE")
    if_exists = cursor.take("if", "exists")
    name = chain(cursor, f"a {kind}")
    if kind == "namespace" and cursor.ahead("cascade"):
        raise cursor.source.unsupported(
            cursor.offset,
            "CASCADE is not supported; drop the tables first",
            feature="DROP … CASCADE",
        )
    purge = kind == "table" and cursor.take("purge")
    if kind == "namespace":
        cursor.take("restrict")
    cursor.finish()
    return Drop(kind=kind, name=name, if_exists=if_exists, purge=purge)


def truncate(cursor: Cursor) -> Delete:
    """TRUNCATE TABLE t deletes every row."""
    cursor.expect("truncate")
    cursor.take("table")
    table = chain(cursor)
    cursor.finish()
    return Delete(table=table, alias=None, where=None)


def _view(cursor: Cursor, *, or_replace: bool) -> CreateView:
    if_not_exists = cursor.take("if", "not", "exists")
    view = chain(cursor, "a view")

    def column_and_comment() -> tuple[str, str | None]:
        name = cursor.name("a column")
        return name, cursor.string() if cursor.take("comment") else None

    columns = cursor.in_brackets(column_and_comment) if cursor.is_at("(") else []
    properties = _options(cursor)[0]
    cursor.expect("as")
    return CreateView(
        view=view,
        query=cursor.rest("a query"),
        columns=tuple(columns),
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        properties=properties,
    )


def _table(cursor: Cursor, *, or_replace: bool) -> CreateTable:
    at = cursor.offset
    if_not_exists = cursor.take("if", "not", "exists")
    if or_replace and if_not_exists:
        raise cursor.source.problem(at, "OR REPLACE and IF NOT EXISTS cannot be used together")
    table = chain(cursor)
    columns: list[ColumnDefinition] = []
    names: tuple[Name, ...] = ()
    keys: list[str] = []
    like: Name | None = None
    if cursor.take("like"):
        like = chain(cursor)
    elif cursor.take_symbol("("):
        if cursor.take("like"):
            like = chain(cursor)
        elif _has_names(cursor):
            names = chains(cursor)
        else:
            columns, keys = _columns(cursor)
        cursor.expect_symbol(")")
    properties, more = _options(cursor)
    query = cursor.rest("a query") if cursor.take("as") else None
    cursor.finish()
    if not columns and not names and like is None and query is None:
        raise cursor.source.problem(
            table.end, "a table needs columns: (id BIGINT, …), LIKE table, or AS SELECT …"
        )
    if names and query is None:
        raise cursor.source.problem(
            names[0].end, f"column {names[0]} needs a type, or the table a query: AS SELECT …"
        )
    if columns and query is not None:
        raise cursor.source.problem(
            columns[0].name.start,
            "with AS SELECT the columns come from the query; name them without types, or cast "
            "them there",
        )
    return CreateTable(
        table=table,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        columns=tuple(columns),
        names=names,
        keys=tuple(keys),
        like=like,
        query=query,
        properties=properties,
        **more,
    )


def _has_names(cursor: Cursor) -> bool:
    """Whether columns follow that have no types."""
    first, second = cursor.token, cursor.following
    is_name = first is not None and first.is_name
    return is_name and second is not None and second.is_symbol(",", ")")


def _options(cursor: Cursor) -> tuple[dict[str, str], dict[str, Any]]:
    """The clauses after the columns, in any order: properties, and where and how to store."""
    properties: dict[str, str] = {}
    starts: dict[str, int] = {}
    more: dict[str, Any] = {"starts": starts}
    while True:
        at = cursor.offset
        if cursor.take("using"):
            if not cursor.take("iceberg") and not cursor.take("frazil"):
                raise cursor.source.unsupported(
                    cursor.offset,
                    f"tables are stored in Iceberg's format; found {cursor.name()!r}",
                    feature="USING",
                )
        elif cursor.take("partitioned", "by") or cursor.take("partition", "by"):
            starts["partition_by"] = cursor.offset
            more["partition_by"] = terms(cursor, cursor.bracketed("a partition field"))
        elif cursor.take("expressions"):
            starts["expressions"] = cursor.offset
            more["expressions"] = terms(cursor, cursor.bracketed("an expression"))
        elif cursor.take("write"):
            starts["order_by"] = cursor.offset
            more["order_by"] = write_order(cursor)
        elif cursor.take("location"):
            more["location"] = cursor.string("a location in 'quotes'")
        elif cursor.take("comment"):
            properties["comment"] = cursor.string()
        elif any(cursor.take(*words) for words in _PROPERTIES):
            properties |= property_list(cursor)
        elif cursor.take("clustered", "by"):
            raise cursor.source.unsupported(
                at, "write PARTITIONED BY (bucket(16, column))", feature="CLUSTERED BY"
            )
        else:
            return properties, more


def terms(cursor: Cursor, parts: list[Part]) -> tuple[str, ...]:
    """Terms such as `bucket(16, id)` as text."""
    return tuple(cursor.source.of(part) for part in parts)


def write_order(cursor: Cursor) -> tuple[str, ...]:
    """What follows WRITE: [LOCALLY] ORDERED BY terms, or UNORDERED."""
    if cursor.take("unordered"):
        return ()
    cursor.take("locally")
    cursor.expect("ordered", "by")
    if cursor.is_at("("):
        return terms(cursor, cursor.bracketed("a column"))
    return terms(cursor, cursor.list_until("as", *_CLAUSES))


def property_list(cursor: Cursor) -> dict[str, str]:
    """('key' = 'value', …)."""

    def key_and_value() -> tuple[str, str]:
        key = property_key(cursor)
        if not cursor.take_symbol("="):
            cursor.take_symbol("=>")
        token = cursor.advance()
        if token.kind not in (Kind.STRING, Kind.NUMBER) and not token.is_word("true", "false"):
            cursor.index -= 1
            raise cursor.unexpected("a value")
        return key, token.value

    return dict(cursor.in_brackets(key_and_value))


def property_key(cursor: Cursor) -> str:
    """A property's name: in quotes, or words with dots and dashes."""
    token = cursor.token
    if token is not None and token.kind is Kind.STRING:
        return cursor.advance().value
    name = cursor.name("the name of a property")
    while cursor.is_at(".", "-"):
        name += cursor.advance().value + cursor.name("the rest of the name")
    return name


# Columns and types


def _columns(cursor: Cursor) -> tuple[list[ColumnDefinition], list[str]]:
    columns: list[ColumnDefinition] = []
    keys: list[str] = []

    def column_or_key() -> None:
        if cursor.take("primary", "key"):
            keys.extend(cursor.source.of(p).strip('"`') for p in cursor.bracketed("a column"))
        elif any(cursor.ahead(word) for word in ("constraint", "foreign", "check", "unique")):
            raise _constraint(cursor)
        else:
            columns.append(column(cursor))

    cursor.listed(column_or_key)
    twice = [
        c for i, c in enumerate(columns) if c.name.parts in [d.name.parts for d in columns[:i]]
    ]
    if twice:
        raise cursor.source.problem(twice[0].name.start, f"column {twice[0].name} is defined twice")
    keys += [str(definition.name) for definition in columns if definition.is_key]
    return columns, keys


def _constraint(cursor: Cursor) -> FrazilError:
    start, word = cursor.offset, cursor.advance().value
    if word.lower() in _COMPUTED:
        message = "a table has no generated columns; compute them in a view"
        return cursor.source.unsupported(start, message, feature="generated columns")
    return cursor.source.unsupported(
        start,
        f"{word.upper()} is not supported: tables enforce NOT NULL only",
        feature="constraints",
    )


def column(cursor: Cursor) -> ColumnDefinition:
    """A column with its type and what follows it."""
    name = chain(cursor, "a column")
    if any(cursor.ahead(word) for word in _COMPUTED):
        raise _constraint(cursor)
    kind = type_text(cursor)
    more: dict[str, Any] = {}
    while True:
        if cursor.take("not", "null"):
            more["required"] = True
        elif cursor.take("null"):
            more["required"] = False
        elif cursor.take("comment"):
            more["doc"] = cursor.string()
        elif cursor.take("default", "null"):
            more["default"] = None
        elif cursor.take("default"):
            more["default"] = cursor.until(*_COLUMN_ENDS, what="a value")
        elif cursor.take("primary", "key"):
            more |= {"is_key": True, "required": True}
        elif cursor.take("first"):
            more["first"] = True
        elif cursor.take("after"):
            more["after"] = cursor.name("a column")
        elif any(cursor.ahead(word) for word in _CONSTRAINTS):
            raise _constraint(cursor)
        else:
            break
    return ColumnDefinition(name=name, type=kind, **more)


def type_text(cursor: Cursor) -> str:
    """A type, in Iceberg's, Spark's or DuckDB's spelling, as Iceberg's text."""
    start = cursor.offset
    text = _type(cursor)
    try:
        parse_type(text)
    except InvalidInput as error:
        raise cursor.source.with_position(start, error) from None
    return text


def _type(cursor: Cursor) -> str:
    token = cursor.token
    if token is None or token.kind is not Kind.WORD:
        raise cursor.unexpected("a type such as BIGINT or DECIMAL(10, 2)")
    cursor.index += 1
    word = token.value.lower()
    match word:
        case "struct" | "row":
            text = _struct(cursor)
        case "map":
            close = _open(cursor)
            key = _type(cursor)
            cursor.expect_symbol(",")
            text = f"map<{key}, {_type(cursor)}>"
            cursor.expect_symbol(close)
        case "list" | "array":
            close = _open(cursor)
            text = f"list<{_type(cursor)}>"
            cursor.expect_symbol(close)
        case _:
            text = _plain(cursor, word)
    while cursor.take_symbol("["):
        cursor.expect_symbol("]")
        text = f"list<{text}>"
    return text


def _plain(cursor: Cursor, word: str) -> str:
    start = cursor.offset
    if word == "double":
        cursor.take("precision")
    sizes = list(map(str, cursor.in_brackets(cursor.number))) if cursor.is_at("(") else []
    if word in ("timestamp", "time", "datetime"):
        if sizes not in ([], ["6"], ["9"]) or (sizes and word == "time"):
            raise cursor.source.unsupported(
                start,
                f"{word.upper()}({', '.join(sizes)}) is not a type of tables; "
                "TIMESTAMP has microseconds, TIMESTAMP(9) nanoseconds",
                feature=f"{word.upper()}({', '.join(sizes)})",
            )
        more = "_ns" if sizes == ["9"] else ""
        if cursor.take("with", "time", "zone") or cursor.take("with", "local", "time", "zone"):
            return f"timestamptz{more}" if word != "time" else "time with time zone"
        cursor.take("without", "time", "zone")
        return "time" if word == "time" else f"timestamp{more}"
    name = _TYPES.get(word, word)
    return f"{name}({', '.join(sizes)})" if sizes else name


def _struct(cursor: Cursor) -> str:
    def field() -> str:
        name = cursor.name("a field")
        cursor.take_symbol(":")
        kind = _type(cursor)
        required = " not null" if cursor.take("not", "null") else ""
        if cursor.take("comment"):
            cursor.string()
        return f"{quoted(name)}: {kind}{required}"

    close = _open(cursor)
    fields = cursor.listed(field)
    cursor.expect_symbol(close)
    return f"struct<{', '.join(fields)}>"


def _open(cursor: Cursor) -> str:
    if cursor.take_symbol("<"):
        return ">"
    cursor.expect_symbol("(")
    return ")"
