"""SQL on Spark Connect, where a client cannot register a catalog: `frazil.spark.sql(text)`.

Queries run on Spark, whose parser reads them: only the names of the catalog's tables are replaced,
by those of views. Every other statement is carried out here, by the SQL of `Catalog.sql`, and its
answer becomes a frame.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from frazil.errors import InvalidInput
from frazil.parser.cursor import Cursor
from frazil.parser.tokens import Kind, Source, Token, tokens
from frazil.spark.expressions.conditions import quoted
from frazil.spark.rows.table_frame import table
from frazil.spark.session.file_list import is_connect
from frazil.spark.session.find_table import CatalogLike, catalog_of, session
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = ("select", "with", "from", "values", "table")
_CHANGE: Final = ("insert", "update", "delete", "merge")
_WITH_FROM: Final = ("extract", "trim", "substring", "substr", "overlay", "position")
"""Functions whose arguments may be separated by FROM."""
_AFTER_TABLE: Final = frozenset(
    (
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "join",
        "inner",
        "left",
        "right",
        "full",
        "outer",
        "cross",
        "natural",
        "semi",
        "anti",
        "on",
        "using",
        "union",
        "except",
        "intersect",
        "minus",
        "lateral",
        "tablesample",
        "pivot",
        "unpivot",
        "window",
        "distribute",
        "cluster",
        "sort",
        "for",
        "version",
        "timestamp",
    )
)
"""Words that may follow a table without being its alias."""


@frozen
class _Named:
    """A name in FROM, the state that is asked for, and whether an alias follows."""

    path: tuple[str, ...]
    start: int
    end: int
    as_of: int | str | None
    has_alias: bool


def sql(text: str, *, catalog: CatalogLike | None = None, name: str = "frazil") -> DataFrame:
    """Run a statement over the tables of a catalog: `frazil.shop.orders`, or `shop.orders`.

    It is for clients of Spark Connect. Other sessions take plain `spark.sql` after
    `frazil.spark.register`.

    >>> frazil.spark.sql("SELECT count(*) FROM shop.orders", catalog="warehouse")  # doctest: +SKIP
    """
    spark = session()
    if not is_connect(spark):
        raise InvalidInput(
            "this session takes plain spark.sql: call frazil.spark.register(spark, catalog) once"
        )
    tables = catalog_of(spark, catalog)
    source = Source(text)
    words = tokens(source)
    if not _is_query(words):
        return spark.createDataFrame(tables.sql(text).to_arrow())
    pieces, end = [], 0
    for named in _named(Cursor(source, words)):
        path = named.path[1:] if named.path[0] == name and len(named.path) > 2 else named.path
        if len(path) < 2 or not tables.table_exists(path):
            continue
        view = f"frazil_{uuid.uuid4().hex[:12]}"
        table(tables.load_table(path), as_of=named.as_of).createOrReplaceTempView(view)
        alias = "" if named.has_alias else f" AS {quoted(path[-1])}"
        pieces += [text[end : named.start], f"{view}{alias}"]
        end = named.end
    return spark.sql("".join([*pieces, text[end:]]))


def _is_query(words: list[Token]) -> bool:
    if not words or not (words[0].is_word(*_QUERY) or words[0].is_symbol("(")):
        return False
    depth = 0
    for token in words:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth and token.is_word(*_CHANGE):
            return False  # WITH … INSERT
    return True


def _named(cursor: Cursor) -> Iterator[_Named]:
    """The names that stand where FROM and JOIN want a table."""
    lists = [False]
    """For each open bracket: whether a comma is followed by a table."""
    before: Token | None = None
    while (token := cursor.token) is not None:
        cursor.index += 1
        if token.is_symbol("("):
            lists.append(False)
        elif token.is_symbol(")") and len(lists) > 1:
            lists.pop()
        elif token.is_word("from", "join") and not _is_operator(cursor, before):
            lists[-1] = True
            yield from _table(cursor)
        elif token.is_symbol(",") and lists[-1]:
            yield from _table(cursor)
        elif token.is_word("select", "where", "group", "having", "order", "limit", "window"):
            lists[-1] = False
        before = token


def _is_operator(cursor: Cursor, before: Token | None) -> bool:
    """Whether FROM belongs to IS DISTINCT FROM, or separates the arguments of a function."""
    if before is not None and before.is_word("distinct"):
        return True
    depth = 0
    for at in range(cursor.index - 2, 0, -1):
        token = cursor.tokens[at]
        depth += token.is_symbol(")") - token.is_symbol("(")
        if depth < 0:
            return cursor.tokens[at - 1].is_word(*_WITH_FROM)
        if depth == 0 and token.is_word("select", "from"):
            return False
    return False


def _table(cursor: Cursor) -> Iterator[_Named]:
    token = cursor.token
    if token is None or not token.is_name:
        return
    start, path = token.start, [cursor.name()]
    while cursor.take_symbol("."):
        path.append(cursor.name())
    end = cursor.tokens[cursor.index - 1].end
    if cursor.token is not None and cursor.token.is_symbol("("):
        return  # a function
    as_of = _as_of(cursor)
    if as_of is not None:
        end = cursor.tokens[cursor.index - 1].end
    following = cursor.token
    has_alias = (
        following is not None
        and following.is_name
        and (following.kind is Kind.QUOTED or following.value.lower() not in _AFTER_TABLE)
    )
    yield _Named(path=tuple(path), start=start, end=end, as_of=as_of, has_alias=has_alias)


def _as_of(cursor: Cursor) -> int | str | None:
    """The state that `VERSION AS OF` asks for."""
    index = cursor.index
    cursor.take("for")
    is_time = cursor.take("timestamp", "as", "of") or cursor.take("system_time", "as", "of")
    if not is_time and not (
        cursor.take("version", "as", "of") or cursor.take("system_version", "as", "of")
    ):
        cursor.index = index
        return None
    value = cursor.token
    if value is not None and not is_time:
        cursor.index += 1
        if value.kind is Kind.STRING:
            return value.value
        if value.kind is Kind.NUMBER and value.value.isdigit():
            return int(value.value)
    raise InvalidInput("on Spark Connect a query may say VERSION AS OF a number or a name")
