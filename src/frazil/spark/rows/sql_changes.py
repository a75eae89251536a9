"""DELETE, UPDATE and MERGE of Spark SQL: resolved by Spark, carried out by row-level jobs.

Conditions and values come as Spark columns over the very attributes of the statement; the rows of
the table are bound to those attributes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame

from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import MAIN
from frazil.properties.registry import WAP_ENABLED
from frazil.rows.actions import Action
from frazil.rows.engine import KeyPair
from frazil.rows.merge_clauses import Clause, Side
from frazil.spark.bridge.table_token import TableToken, audited
from frazil.spark.options.options import WriteOptions
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.delete import delete_rows
from frazil.spark.rows.merge import Merge
from frazil.spark.rows.merge_frames import SparkClause
from frazil.spark.rows.overwrites import overwrite_partition_rows, overwrite_rows
from frazil.spark.rows.sql_expressions import HeldExpression
from frazil.spark.rows.update import update_rows
from frazil.spark.write.writer import append_rows, widened

if TYPE_CHECKING:
    from frazil.spark.bridge.verbs import Bridge
    from frazil.table.table import Table

_SIDES = {side.value: side for side in Side}
_ACTIONS = {"delete": Action.DELETE, "update": Action.UPDATE, "insert": Action.INSERT}
WAP_BRANCH: Final = "spark.wap.branch"
_WAP_ID: Final = "spark.wap.id"


def carry_out(bridge: Bridge, change: Any) -> None:
    """One statement as one snapshot."""
    spark = bridge.spark
    held = spark._jvm.java.util.ArrayList()
    said = json.loads(change.described(held))
    verb, options = said["verb"], WriteOptions.parse(said["options"])
    _check_options(verb, options)
    table, wap_id = written_table(bridge, bridge.loaded(str(change.token())), options)
    base = bridge.base_of(table, said["scanned"])
    terms = WriteTerms.of(table, options, base=base, wap_id=wap_id)
    more = tuple(said["metadata columns"])

    def bound(rows: DataFrame) -> DataFrame:
        return DataFrame(change.bound(rows._jdf), spark)

    def condition() -> Column:
        return _column(change.condition())

    match verb:
        case "append":
            rows = DataFrame(change.rows(), spark)
            append_rows(terms, rows, merge_schema=options.merge_schema)
        case "delete":
            delete_rows(spark, terms, condition(), bound=bound, metadata_columns=more)
        case "update":
            values = _assigned(said["assignments"])
            update_rows(
                spark, terms, values, condition(), bound=bound, metadata_columns=more, held=held
            )
        case "merge":
            Merge(
                table=table,
                source=DataFrame(change.source(), spark),
                on=condition(),
                clauses=tuple(_clause(clause) for clause in said["clauses"]),
                pairs=tuple(KeyPair(target=ours, source=theirs) for ours, theirs in said["pairs"]),
                terms=terms,
                bound=bound,
                metadata_columns=more,
                held=held,
            ).execute()
        case _:
            rows = DataFrame(change.rows(), spark)
            if options.merge_schema:
                widened(table, rows)
            is_dynamic = verb == "overwrite partitions" or bool(options.is_dynamic)
            where = condition() if verb == "overwrite" else None
            if is_dynamic and where is not None:
                raise InvalidInput("an overwrite by a condition replaces rows, not partitions")
            if is_dynamic and table.metadata.spec().fields:
                overwrite_partition_rows(terms, rows)
            else:
                overwrite_rows(terms, rows, where, bound=bound)


def written_table(
    bridge: Bridge, loaded: TableToken, options: WriteOptions
) -> tuple[Table, str | None]:
    """The table and branch that a statement writes to, and the id that it stages its rows under.

    The branch is that of the name, of an option, or of the session (`spark.wap.branch`, for tables
    that take part in audits).
    """
    table = loaded.changed_table()
    conf = bridge.spark.conf
    wap_branch, wap_id = conf.get(WAP_BRANCH, None), conf.get(_WAP_ID, None)
    takes_part = WAP_ENABLED.lenient(table.properties, otherwise=False)
    if takes_part and wap_branch is not None and wap_id is not None:
        raise InvalidInput(f"{WAP_BRANCH} and {_WAP_ID} exclude each other; unset one of them")
    if options.branch is not None:
        if table.branch_name not in (MAIN, options.branch):
            raise InvalidInput(
                f"the name says branch {table.branch_name}, the option branch {options.branch}"
            )
        return table.branch(options.branch, create=False), None
    if not takes_part or table.branch_name != MAIN:
        return table, None
    return table if wap_branch is None else audited(table, wap_branch, create=True), wap_id


def _check_options(verb: str, options: WriteOptions) -> None:
    """Refuse options that a statement has no use for."""
    inserts = verb in ("append", "overwrite", "overwrite partitions")
    if not inserts and (options.properties or options.merge_schema):
        raise InvalidInput(f"options that say how rows are written do not go with {verb.upper()}")
    if options.is_dynamic is not None and not verb.startswith("overwrite"):
        raise InvalidInput(f"option overwrite-mode does not go with {verb.upper()}")
    if options.validate_from is not None and not verb.startswith("overwrite"):
        raise InvalidInput(f"option validate-from-snapshot-id does not go with {verb.upper()}")


def _clause(clause: Any) -> SparkClause:
    side, action, condition, assignments = clause
    return Clause(
        side=_SIDES[side],
        action=_ACTIONS[action],
        condition=None if condition is None else HeldExpression(condition),
        values=None if assignments is None else _assigned(assignments),
    )


def _assigned(pairs: Any) -> dict[tuple[str, ...], HeldExpression]:
    return {tuple(path): HeldExpression(number) for path, number in pairs}


def _column(node: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    return None if node is None else ClassicColumn(node)
