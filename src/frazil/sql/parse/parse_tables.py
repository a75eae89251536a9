"""CREATE and DROP of tables, views and namespaces; columns and types as DDL writes them."""

from __future__ import annotations

from typing import Any, Final

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
    DropNamespace,
    DropTable,
    DropView,
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
    if any(cursor.take(word) for word in NAMESPACE):
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


def drop(cursor: Cursor) -> Statement:
    """DROP TABLE, VIEW or NAMESPACE."""
    cursor.expect("drop")
    statement: Statement
    if cursor.take("table"):
        if_exists = cursor.take("if", "exists")
        table = chain(cursor)
        statement = DropTable(table=table, if_exists=if_exists, purge=cursor.take("purge"))
    elif cursor.take("view"):
        if_exists = cursor.take("if", "exists")
        statement = DropView(view=chain(cursor, "a view"), if_exists=if_exists)
    elif any(cursor.take(word) for word in NAMESPACE):
        if_exists = cursor.take("if", "exists")
        statement = DropNamespace(namespace=chain(cursor, "a namespace"), if_exists=if_exists)
        if cursor.ahead("cascade"):
            raise cursor.source.unsupported(
                cursor.offset,
                "CASCADE is not supported; drop the tables first",
                feature="DROP … CASCADE",
            )
        cursor.take("restrict")
    else:
        raise cursor.unexpected("TABLE, VIEW or NAMESPACE")
    cursor.finish()
    return statement


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
    columns: list[tuple[str, str | None]] = []
    if cursor.take_symbol("("):
        while True:
            name = cursor.name("a column")
            columns.append((name, cursor.string() if cursor.take("comment") else None))
            if not cursor.take_comma():
                break
        cursor.expect_symbol(")")
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
    query: Part | None = None
    if cursor.take("as"):
        query = cursor.rest("a query")
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
    following = cursor.tokens[cursor.index : cursor.index + 2]
    return len(following) == 2 and following[0].is_name and following[1].is_symbol(",", ")")


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
    if cursor.token is not None and cursor.token.is_symbol("("):
        return terms(cursor, cursor.bracketed("a column"))
    return terms(cursor, cursor.list_until("as", *_CLAUSES))


def property_list(cursor: Cursor) -> dict[str, str]:
    """('key' = 'value', …)."""
    properties: dict[str, str] = {}
    cursor.expect_symbol("(")
    while True:
        key = property_key(cursor)
        if not cursor.take_symbol("="):
            cursor.take_symbol("=>")
        token = cursor.advance()
        if token.kind not in (Kind.STRING, Kind.NUMBER) and not token.is_word("true", "false"):
            cursor.index -= 1
            raise cursor.unexpected("a value")
        properties[key] = token.value
        if not cursor.take_comma():
            break
    cursor.expect_symbol(")")
    return properties


def property_key(cursor: Cursor) -> str:
    """A property's name: in quotes, or words with dots and dashes."""
    token = cursor.token
    if token is not None and token.kind is Kind.STRING:
        return cursor.advance().value
    name = cursor.name("the name of a property")
    while cursor.token is not None and cursor.token.is_symbol(".", "-"):
        name += cursor.advance().value + cursor.name("the rest of the name")
    return name


# Columns and types


def _columns(cursor: Cursor) -> tuple[list[ColumnDefinition], list[str]]:
    columns: list[ColumnDefinition] = []
    keys: list[str] = []
    while True:
        if cursor.take("primary", "key"):
            keys += [cursor.source.of(part).strip('"`') for part in cursor.bracketed("a column")]
        elif any(cursor.ahead(word) for word in ("constraint", "foreign", "check", "unique")):
            raise _constraint(cursor)
        else:
            columns.append(column(cursor))
        if not cursor.take_comma():
            break
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
            _close(cursor, close)
        case "list" | "array":
            close = _open(cursor)
            text = f"list<{_type(cursor)}>"
            _close(cursor, close)
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
    sizes: list[str] = []
    if cursor.take_symbol("("):
        sizes.append(str(cursor.number()))
        while cursor.take_comma():
            sizes.append(str(cursor.number()))
        cursor.expect_symbol(")")
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
    close = _open(cursor)
    fields: list[str] = []
    while True:
        name = cursor.name("a field")
        cursor.take_symbol(":")
        kind = _type(cursor)
        required = " not null" if cursor.take("not", "null") else ""
        if cursor.take("comment"):
            cursor.string()
        fields.append(f"{quoted(name)}: {kind}{required}")
        if not cursor.take_comma():
            break
    _close(cursor, close)
    return f"struct<{', '.join(fields)}>"


def _open(cursor: Cursor) -> str:
    if cursor.take_symbol("<"):
        return ">"
    cursor.expect_symbol("(")
    return ")"


def _close(cursor: Cursor, close: str) -> None:
    cursor.expect_symbol(close)
