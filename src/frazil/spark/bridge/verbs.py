"""What Spark's Java side asks for: one verb, one JSON text, one answer.

Every scan and every statement of Spark SQL on a Frazil table ends here. Errors of Frazil travel
back as data, so that users see their message first.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.errors import CommitConflict, FrazilError, InvalidInput, NotFound
from frazil.format.metadata.metadata import MAIN, Snapshot
from frazil.iceberg.expressions import AlwaysFalse
from frazil.rows.actions import KEY
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.spark.bridge import metadata_answers
from frazil.spark.bridge.file_columns import ColumnFiles
from frazil.spark.bridge.scan_plan import AskedColumns, scan_plan
from frazil.spark.bridge.source_verbs import SourceVerbs
from frazil.spark.bridge.table_token import ROWS, Pin, TableToken
from frazil.spark.expressions.conditions import quoted
from frazil.spark.expressions.pushed import Pushed, understood
from frazil.spark.options.options import ReadOptions
from frazil.spark.options.write_terms import Base
from frazil.spark.read.bulk_reads import frame
from frazil.spark.read.executor_plans import each_leaf
from frazil.spark.session import jar
from frazil.spark.session.file_list import is_connect
from frazil.spark.session.find_table import prepare
from frazil.spark.session.session_bridge import bridges, session_id
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.catalog import Catalog
    from frazil.table.table import Table

log = logging.getLogger("frazil.spark")
_PARTITION: Final = "_partition"
_MAX_HELD: Final = 256
_MIN_PLANS: Final = 8
"""The latest answers, which Java may be about to map, however large they are."""
_MAX_PLANS: Final = 256 << 20
"""Bytes of columns of answers that are kept."""


def bridge_of(spark: SparkSession) -> Bridge:
    """The bridge of a session; the first call loads the Java classes."""
    known, session = bridges(spark), session_id(spark)
    if session not in known:
        known[session] = Bridge(spark)
    return known[session]


def bridge_for(spark: SparkSession) -> Bridge | None:
    """The bridge of a session; None for a client of Spark Connect, which has none."""
    return None if is_connect(spark) else bridge_of(spark)


class Answers:
    """Answers by verb, as Java asks for them."""

    def __init__(self, verbs: Mapping[str, Callable[[Any], Any]]) -> None:
        self.verbs = dict(verbs)

    def apply(self, verb: str, request: Any) -> Any:
        """Called by Java."""
        try:
            if verb not in self.verbs:
                raise InvalidInput(
                    "a frame of a table can only be read; statements that change rows name a table "
                    "of a registered catalog"
                )
            result = self.verbs[verb](request)
        except FrazilError as error:
            return _refusal(type(error).__name__, str(error))
        except Exception as error:
            thrown = getattr(error, "java_exception", getattr(error, "_origin", None))
            if thrown is not None:
                return thrown  # what Spark said of a job goes back as it is
            log.exception("%s failed", verb)
            return _refusal("Internal", f"{type(error).__name__}: {error}")
        return json.dumps(result) if isinstance(result, dict) else result

    class Java:
        """What py4j calls."""

        implements = ["java.util.function.BiFunction"]


class Bridge(Answers):
    """Answers for one session. Remembers tables by key, and plans that jobs hold on to."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self.tables: dict[str, Table] = {}
        self._names: dict[UUID, set[tuple[str, ...]]] = {}
        source = SourceVerbs(spark, self)
        super().__init__(
            {
                "plan": self._plan,
                "rows": self._rows,
                "settled": self._settled,
                "aggregate": self._aggregate,
                "statistics": self._statistics,
                "read options": self._read_options,
                "source": source.described,
                "source insert": source.insert,
            }
        )
        gateway = spark.sparkContext._gateway
        ensure_callback_server_started(gateway)
        # Threads that wait for the JVM outlive the interpreter. What they can reach is never freed,
        # and DuckDB would list all of its types as leaked when a script ends.
        atexit.register(gateway.gateway_property.pool.dict.clear)
        self.spark = spark
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._plans: OrderedDict[str, str] = OrderedDict()
        self._columns = ColumnFiles()
        self.catalog: Catalog | None = None
        self._lock = threading.Lock()
        self._next = 0
        self.java = jar.new(spark, "Bridge", self)
        jar.call(spark, "Source", "serve", spark._jsparkSession, self.java)

    # Frames

    def held(
        self, rows: Scan | Planned, metadata_columns: Sequence[str] = ()
    ) -> tuple[str, DataFrame]:
        """A frame over a scan whose plan is kept, with a token to ask for it by.

        The files are those of the plan, or, of a scan, those that the filters over the frame leave
        when Spark plans it first.
        """
        with self._lock:
            self._next += 1
            token = json.dumps({"held": self._next})
            self._held[token] = _Held(
                scan=rows.scan if isinstance(rows, Planned) else rows,
                planned=rows if isinstance(rows, Planned) else None,
            )
            while len(self._held) > _MAX_HELD:
                self._held.popitem(last=False)
        scan = self._held[token].scan
        prepare(self.spark, (field.field_type for field in scan.table_schema.fields))
        table = TableToken(
            table=_whole_table(scan), scan=replace(scan, columns=None, matching=None)
        )
        described = {**table.described(""), "token": token, "writable": False}
        return token, self.frame(described, metadata_columns)

    def planned(self, token: str) -> tuple[Planned, Pushed]:
        """The plan of a held frame once Spark has planned it, and what its filters told."""
        held = self._held[token]
        if held.planned is None or held.pushed is None:  # no row can match: Spark left it out
            held.pushed = Pushed(expression=AlwaysFalse(), is_exact=True)
            held.planned = Planned.of(replace(held.scan, matching=AlwaysFalse()))
        return held.planned, held.pushed

    def rows(self, table: Table, scan: Scan) -> DataFrame:
        """A frame over one snapshot of a table."""
        key = f"{table.name} at {table.location}"
        self.tables[key] = table
        prepare(self.spark, (field.field_type for field in scan.table_schema.fields))
        return self.frame(TableToken(table=table, scan=scan, pin=Pin.FRAME).described(key))

    def frame(
        self, described: Mapping[str, Any], metadata_columns: Sequence[str] = ()
    ) -> DataFrame:
        """The rows of a table that Spark knows."""
        more = json.dumps(list(metadata_columns))
        rows = jar.frames(self.spark).rows(self.java, json.dumps(described), more)
        return DataFrame(rows, self.spark)

    # Reading

    def loaded(self, token: str) -> TableToken:
        """What a token stands for."""
        said = json.loads(token)
        table = self.tables.get(said.get("table", ""))
        if table is None:
            raise InvalidInput(
                "the plan of this frame is no longer available; create the frame again"
            )
        return TableToken.of(replace(table, branch_name=said["branch"]), said)

    def _read_options(self, request: str) -> dict[str, Any]:
        """The token of another state of a table, that options ask for."""
        asked = json.loads(request)
        loaded = self.loaded(asked["token"]).with_options(ReadOptions.parse(asked["options"]))
        return {"token": loaded.token(json.loads(asked["token"])["table"])}

    def named(self, table: Table, parts: tuple[str, ...]) -> None:
        """Remember the name by which statements of the session call a table."""
        self._names.setdefault(table.metadata.table_uuid, set()).add(parts)

    def names_of(self, table: Table) -> list[tuple[str, ...]]:
        """The names by which statements of the session have called a table."""
        return sorted(self._names.get(table.metadata.table_uuid, ()))

    # What a query has read

    def base_of(self, table: Table, states: Iterable[Mapping[str, Any]]) -> Base | None:
        """The oldest state of a table's branch that a query reads without having asked for it."""
        return Base.oldest(
            snapshot
            for state in states
            for snapshot in self._read_of(table, state["token"], state["options"])
        )

    def base_of_frame(self, table: Table, rows: DataFrame) -> Base | None:
        """The same of the rows of a frame."""
        states = json.loads(jar.frames(self.spark).scanned(rows._jdf))["scanned"]
        return self.base_of(table, states)

    def _read_of(
        self, table: Table, token: str, options: Mapping[str, str]
    ) -> list[Snapshot | None]:
        held = self._held.get(token)
        if held is not None:
            is_same = held.scan._handle.metadata.table_uuid == table.metadata.table_uuid
            return [held.scan.snapshot] if is_same and table.branch_name == MAIN else []
        own = self.tables.get(json.loads(token).get("table", ""))
        if own is None or own.metadata.table_uuid != table.metadata.table_uuid:
            return []
        try:
            loaded = self.loaded(token).with_options(ReadOptions.parse(options))
        except NotFound as error:
            raise CommitConflict(
                f"the state of {table.name} that the query reads has expired; run it again"
            ) from error
        is_other = loaded.table.branch_name != table.branch_name
        return [] if is_other or loaded.pin is Pin.CHOSEN else [loaded.scan.snapshot]

    def _plan(self, request: str) -> str:
        """The plan of a scan. A token names one snapshot, so an answer stays true: Spark plans a
        statement more than once."""
        with self._lock:
            if request in self._plans:
                self._plans.move_to_end(request)
                return self._plans[request]
        text = json.dumps(self._planned_scan(request))
        with self._lock:
            self._plans[request] = text
            while len(self._plans) > _MAX_HELD or (
                len(self._plans) > _MIN_PLANS and self._columns.size > _MAX_PLANS
            ):
                self._columns.remove(self._plans.popitem(last=False)[0])
        return text

    def _planned_scan(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        token = asked["token"]
        held = self._held.get(token)
        loaded = None if held is not None else self.loaded(token)
        if loaded is not None and loaded.kind != ROWS:
            return {"native": False, "bytes": 1 << 20}
        scan = held.scan if held is not None else loaded.scan  # type: ignore[union-attr]
        if _PARTITION in _struct(asked["schema"]).names:  # joined to the rows, file by file
            return {"native": False, "bytes": 1 << 20}
        if loaded is not None and scan.matching is not None:  # a filter in Frazil's own grammar
            return {"native": False, "bytes": 1 << 20}
        columns = AskedColumns.of(_struct(asked["schema"]), scan.table_schema)
        prepare(self.spark, (field.field_type for field in columns.schema.fields))
        filters = [*asked["filters"], *asked.get("runtime", ())]
        pushed = understood(
            filters,
            scan.table_schema,
            is_all=asked["exact"],
            expressions=scan.expressions(),
        )
        names = tuple(field.name for field in columns.schema.fields)
        planned = Planned.of(
            replace(scan, matching=pushed.expression, columns=names, max_rows=None),
            extra_keys=metadata_answers.size_keys(columns.schema.fields),
            each_leaf=each_leaf(self.spark, scan),
        )
        if held is not None:
            planned = held.kept(planned, pushed)
        document = scan_plan(
            planned,
            columns,
            spark=self.spark,
            of=_files_of(scan),
            columns_at=self._columns.path(request),
            grouped_by=asked.get("grouped by") if held is None else None,
        )
        if loaded is not None and loaded.split_bytes is not None:
            document["split"] = loaded.split_bytes
        return document

    def _by_metadata(self, asked: Mapping[str, Any]) -> Scan | None:
        """A scan with a query's filters that metadata may answer; None where it may not."""
        if asked["token"] in self._held:
            return None
        loaded = self.loaded(asked["token"])
        if loaded.kind != ROWS or loaded.scan.matching is not None:
            return None
        pushed = understood(asked["filters"], loaded.scan.table_schema, is_all=asked["exact"])
        if not pushed.is_exact:
            return None
        return replace(loaded.scan, matching=pushed.expression, columns=None, max_rows=None)

    def _settled(self, request: str) -> dict[str, Any]:
        """Whether files fulfil filters as a whole, so that Spark need not apply them."""
        scan = self._by_metadata(json.loads(request))
        return {"settled": scan is not None and metadata_answers.is_settled(scan)}

    def _aggregate(self, request: str) -> dict[str, Any]:
        """Aggregates of all matching rows, where metadata knows them."""
        asked = json.loads(request)
        scan = self._by_metadata(asked)
        values = None if scan is None else metadata_answers.aggregates(scan, asked["aggregates"])
        return {} if values is None else {"values": values}

    def _statistics(self, request: str) -> dict[str, Any]:
        """What is known of the columns of a scan, for estimates."""
        asked = json.loads(request)
        if asked["token"] in self._held:
            return {}
        scan = self.loaded(asked["token"]).scan
        pushed = understood(asked["filters"], scan.table_schema, is_all=False)
        narrowed = replace(scan, matching=pushed.expression, columns=None, max_rows=None)
        return metadata_answers.column_statistics(narrowed, _struct(asked["schema"]).names)

    def _rows(self, request: str) -> Any:
        """The rows of a scan that only Python can read, as Spark's own rows."""
        asked = json.loads(request)
        held = self._held.get(asked["token"])
        fields = _struct(asked["schema"]).fields
        names = [field.name for field in fields]
        loaded = None if held is not None else self.loaded(asked["token"])
        if loaded is not None and loaded.kind != ROWS:
            rows = loaded.frame(self.spark)
        else:
            scan = held.scan if held is not None else loaded.scan  # type: ignore[union-attr]
            pushed = understood(asked["filters"], scan.table_schema, is_all=False)
            columns = tuple(name for name in names if name != KEY)
            narrowed = replace(scan, columns=columns, max_rows=None)
            if held is not None or scan.matching is None:
                narrowed = replace(narrowed, matching=pushed.expression)
            else:
                narrowed = narrowed.where(pushed.expression)
            planned = Planned.of(narrowed)
            if held is not None:
                planned = held.kept(planned, pushed)
            key = KEY if KEY in names else None
            rows = frame(self.spark, narrowed, planned=planned, key=key, bridge=self)
        return rows.select(*(_narrowed(rows, field) for field in fields))._jdf.rdd()


@dataclass(slots=True, kw_only=True)
class _Held:
    """A scan whose plan a job needs again; the plan is fixed when it is first known."""

    scan: Scan
    planned: Planned | None = None
    pushed: Pushed | None = None

    def kept(self, planned: Planned, pushed: Pushed) -> Planned:
        """A plan that Spark asks for, with the numbers of the plan that is held."""
        if self.planned is None:
            self.planned = planned
        if self.pushed is None:
            self.pushed = pushed
        return planned.among(self.planned)


def _refusal(kind: str, message: str) -> str:
    return json.dumps({"error": {"kind": kind, "message": message}})


def _struct(text: str) -> sql.StructType:
    struct: sql.StructType = sql.StructType.fromJson(json.loads(text))
    return struct


def _narrowed(rows: DataFrame, target: sql.StructField) -> Column:
    """A column with the parts that are asked for."""
    column = rows[quoted(target.name)]
    has = rows.schema[target.name].dataType
    if has == target.dataType or not isinstance(target.dataType, sql.StructType):
        return column
    parts = [column.getField(name).alias(name) for name in target.dataType.names]
    return F.when(column.isNotNull(), F.struct(*parts)).alias(target.name)


def _files_of(scan: Scan) -> int:
    """How many data files the snapshot has; -1 where its summary does not say."""
    count = "0" if scan.snapshot is None else scan.snapshot.summary.get("total-data-files", "-1")
    return int(count)


def _whole_table(scan: Scan) -> Table:
    from frazil.table.table import Table

    return Table(scan._handle)
