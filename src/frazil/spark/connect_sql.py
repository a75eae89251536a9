"""SQL on Spark Connect, where a client cannot register a catalog: `frazil.spark.sql(text)`.

Queries run on Spark: the tables they name become views. Every other statement is carried out here,
by the SQL of `Catalog.sql`, and its answer becomes a frame.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput
from frazil.spark.find_table import CatalogLike, catalog_of, session
from frazil.spark.log import is_connect
from frazil.spark.table_frame import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp


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
    found = catalog_of(spark, catalog)
    tree = _query(text)
    if tree is None:
        return spark.createDataFrame(found.sql(text).to_arrow())
    for node in _tables(tree):
        path = [part.name for part in node.parts]
        path = path[1:] if path[0] == name and len(path) > 2 else path
        if len(path) < 2 or not found.table_exists(path):
            continue
        view = f"frazil_{uuid.uuid4().hex[:12]}"
        table(found.load_table(path), as_of=_as_of(node)).createOrReplaceTempView(view)
        _rename(node, view, path[-1])
    return spark.sql(tree.sql("spark"))


def _query(text: str) -> exp.Query | None:
    """The statement as a query, if it is one."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None  # a statement that only the catalog's SQL knows
    return tree if isinstance(tree, exp.Query) else None


def _tables(tree: exp.Query) -> list[exp.Table]:
    from sqlglot import exp

    return list(tree.find_all(exp.Table))


def _rename(node: exp.Table, view: str, alias: str) -> None:
    from sqlglot import exp

    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    node.set("this", exp.to_identifier(view))
    node.set("db", None)
    node.set("catalog", None)
    node.set("version", None)


def _as_of(node: exp.Table) -> Any:
    """The state that `VERSION AS OF` asks for."""
    from sqlglot import exp

    version = node.args.get("version")
    if version is None:
        return None
    value = version.expression
    if str(version.this).upper() != "VERSION" or not isinstance(value, exp.Literal):
        raise InvalidInput("on Spark Connect a query may say VERSION AS OF a number or a name")
    return value.this if value.is_string else int(value.this)
