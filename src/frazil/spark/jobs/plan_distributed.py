"""Plan a scan with executors reading the leaves: for trees with very many of them."""

from __future__ import annotations

from frazil.iceberg.expressions import BooleanExpression
from frazil.scan.plan import Plan, plan
from frazil.spark.read.executor_plans import OnExecutors
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.table.refs import AsOf
from frazil.table.table import Table

_LEAVES_PER_TASK = 16


def plan_distributed(
    table: Table | str,
    where: str | BooleanExpression | None = None,
    *,
    as_of: AsOf | None = None,
    leaves_per_task: int = _LEAVES_PER_TASK,
    catalog: CatalogLike | None = None,
) -> Plan:
    """Plan a scan on executors; returns the same plan as `table.scan(where).plan()`."""
    spark = session()
    scan = table_of(spark, table, catalog).scan(where, as_of=as_of)
    return plan(
        scan._handle.reader(),
        scan.snapshot,
        schema=scan.table_schema,
        where=scan.filter,
        each_leaf=OnExecutors(spark, leaves_per_task),
    )
