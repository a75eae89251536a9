"""What Spark SQL's catalog asks for: namespaces, tables, their definition, procedures.

Each verb is a method that takes a JSON text and returns what Spark is told. No rule of tables lives
here: the catalog and its tables are asked. What only writes need is imported by the verbs that
write, so that a first query does not wait for it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    Conflict,
    InvalidInput,
    NotFound,
    Unsupported,
)
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.schema import Schema
from frazil.spark.bridge.table_token import CURRENT_SNAPSHOT, TableToken, named_table
from frazil.spark.bridge.verbs import Answers, Bridge
from frazil.spark.catalog.alterations import without_format_version
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.session.find_table import prepare
from frazil.spark.types.defaults import CURRENT, default_value
from frazil.spark.types.spark_types import declared_schema
from frazil.table.columns.column_tree import default_of
from frazil.table.refs import ancestors
from frazil.value_classes import dataclass, field, replace

if TYPE_CHECKING:
    from frazil.table.catalog import Catalog
    from frazil.table.staged_table import StagedHead
    from frazil.table.table import Table
    from frazil.table.transaction import Transaction

_PROVIDERS: Final = ("frazil", "iceberg", "parquet")
_RESERVED: Final = frozenset(
    {"provider", "location", "owner", "external", "is_managed_location", CURRENT_SNAPSHOT}
)


@dataclass(slots=True, kw_only=True)
class _Staged:
    """A table being filled before it is seen: one that is new, or another definition of one."""

    table: Table
    head: StagedHead | None = None
    replacement: Transaction | None = None
    entries: list[EntryBatch] = field(default_factory=list)
    summary: dict[str, str] = field(default_factory=dict)


class CatalogVerbs(Answers):
    """The verbs of one catalog, beside those of its session."""

    def __init__(self, bridge: Bridge, catalog: Catalog, name: str) -> None:
        super().__init__(bridge.verbs)
        self._bridge = bridge
        self._catalog = catalog
        self._name = name
        self._staged: dict[str, _Staged] = {}
        for verb in (
            "load",
            "list tables",
            "load view",
            "create",
            "alter",
            "drop",
            "rename",
            "stage create",
            "stage replace",
            "commit staged",
            "abort staged",
            "insert",
            "list namespaces",
            "load namespace",
            "create namespace",
            "alter namespace",
            "drop namespace",
            "procedure",
            "list procedures",
            "call",
            "change rows",
            "truncate",
            "stream",
        ):
            self.verbs[verb] = getattr(self, f"_{verb.replace(' ', '_')}")

    # Tables

    def _load(self, request: str) -> dict[str, Any]:
        wap_branch = self._bridge.spark.conf.get("spark.wap.branch", None)
        token = TableToken.named(self._catalog, json.loads(request), wap_branch=wap_branch)
        return {"missing": True} if token is None else self._described(token)

    def _described(self, loaded: TableToken) -> dict[str, Any]:
        key = f"{self._name}.{loaded.table.name}"
        self._bridge.tables[key] = loaded.table
        self._bridge.named(loaded.table, (self._name, *_levels(loaded.table.name)))
        columns = loaded.scan.table_schema.fields
        prepare(self._bridge.spark, (column.field_type for column in columns))
        return loaded.described(key)

    def _table_document(self, table: Table) -> dict[str, Any]:
        return self._described(TableToken(table=table, scan=table.scan()))

    def _list_tables(self, request: str) -> dict[str, Any]:
        namespace = tuple(json.loads(request)["namespace"])
        names = self._catalog.list_tables(namespace) if namespace else []
        return {"tables": [name.rsplit(".", 1)[-1].replace("%2E", ".") for name in names]}

    def _load_view(self, request: str) -> dict[str, Any]:
        from frazil.spark.catalog.view_changes import loaded_view

        view = loaded_view(self._catalog, self._name, json.loads(request)["path"])
        return {"missing": True} if view is None else view

    def _create(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        properties = asked["properties"]
        _check_provider(properties)
        created = self._catalog.create_table(
            self._named(asked),
            self._schema(asked),
            partition_by=_partition_by(asked),
            location=properties.get("location"),
            properties=_kept(properties),
        )
        return self._table_document(created)

    def _named(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """The name of a table whose definition a statement changes."""
        return named_table(self._catalog, (*asked["namespace"], asked["name"]))

    def _schema(self, asked: Mapping[str, Any]) -> Schema:
        """The columns of a statement, with the defaults it declares."""
        struct = sql.StructType.fromJson(json.loads(asked["schema"]))
        schema = declared_schema(struct)
        fields = []
        for column, said in zip(schema.fields, struct.fields, strict=True):
            text = (said.metadata or {}).get(CURRENT)
            if text is not None:
                value = default_value(self._bridge.spark, text, said.dataType)
                value = default_of(value, column.field_type, column.name)
                column = replace(column, initial_default=value, write_default=value)
            fields.append(column)
        return Schema(*fields)

    def _alter(self, request: str) -> dict[str, Any]:
        from frazil.spark.catalog.alterations import alter

        asked = json.loads(request)
        table = self._catalog.load_table(self._named(asked))._as_loaded()
        alter(self._bridge.spark, table, asked["changes"])
        return self._table_document(table.refresh())

    def _drop(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = self._named(asked)
        if not self._catalog.table_exists(name):
            return {"dropped": False}
        self._catalog.drop_table(name, purge=asked.get("purge", False))
        return {"dropped": True}

    def _rename(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = self._named(asked)
        if not self._catalog.table_exists(name):
            return {"missing": True}
        namespace = list(asked["to"]["namespace"])
        # Spark hands the new name over as it is written, with the catalog where that is named.
        is_qualified = len(namespace) > 1 and namespace[0] == self._name
        if is_qualified and self._name not in self._catalog.list_namespaces(()):
            namespace = namespace[1:]
        to = named_table(self._catalog, (*namespace, asked["to"]["name"]))
        self._catalog.rename_table(name, to)
        return {}

    # Tables that are filled first

    def _stage_create(self, request: str) -> dict[str, Any]:
        from frazil.table.staged_table import staged_table

        asked = json.loads(request)
        name, properties = self._named(asked), asked["properties"]
        if self._catalog.table_exists(name):
            raise AlreadyExists(f"table {'.'.join(name)} already exists")
        _check_provider(properties)
        table, head = staged_table(
            self._catalog,
            name,
            self._schema(asked),
            partition_by=_partition_by(asked),
            location=properties.get("location"),
            properties=_kept(properties),
        )
        return self._stage(_Staged(table=table, head=head))

    def _stage_replace(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = self._named(asked)
        if not self._catalog.table_exists(name):
            return self._stage_create(request) if asked.get("or create") else {"missing": True}
        from frazil.filter.text.partition_by import parse_partition_by
        from frazil.iceberg.partitioning import UNPARTITIONED
        from frazil.table.replacing import replacing

        _check_provider(asked["properties"])
        table = self._catalog.load_table(name)._as_loaded()
        schema = self._schema(asked)
        terms = _partition_by(asked)
        spec = parse_partition_by(terms, schema) if terms else UNPARTITIONED
        replacement = replacing(table, schema, spec=spec, properties=_kept(asked["properties"]))
        return self._stage(_Staged(table=table, replacement=replacement), asked["schema"])

    def _stage(self, staged: _Staged, schema: str | None = None) -> dict[str, Any]:
        token = f"staged {uuid.uuid4()}"
        self._staged[token] = staged
        described = TableToken(table=staged.table, scan=staged.table.scan()).described(token)
        return {**described, "token": token, "schema": schema or described["schema"]}

    def _insert(self, request: Any) -> dict[str, Any]:
        """The rows of a table that is being filled."""
        from frazil.spark.options.options import WriteOptions
        from frazil.spark.write.writer import write_frame

        asked = json.loads(request[0])
        frame = DataFrame(request[1], self._bridge.spark)
        staged = self._staged.get(asked["token"])
        if staged is None:
            raise InvalidInput(
                "rows are added through Frazil's extension of the session: set "
                "spark.sql.extensions to frazil.spark.Extensions"
            )
        options = WriteOptions.whole_table(asked["options"])
        staged.summary.update(options.summary)
        replacement = staged.replacement
        metadata = (staged.table if replacement is None else replacement).metadata
        metadata = replace(metadata, properties={**metadata.properties, **options.properties})
        if replacement is None:
            staged.entries.append(write_frame(frame, staged.table, metadata=metadata))
            return {}
        base = self._bridge.base_of(staged.table, asked["scanned"])
        if base is not None:
            _check_unchanged(staged.table, base.snapshot)
        entries = write_frame(frame, staged.table, metadata=metadata)
        replacement._add_entries(entries, summary=staged.summary, reads_table=base is not None)
        return {}

    def _commit_staged(self, token: str) -> dict[str, Any]:
        from frazil.spark.write.writer import commit_added, plain_change

        staged = self._staged.pop(token)
        if staged.replacement is not None:
            staged.replacement.commit()
            return {}
        assert staged.head is not None
        entries = EntryBatch.concat(staged.entries)
        if entries.num_rows:
            terms = WriteTerms(table=staged.table, summary=staged.summary)
            commit_added(terms, entries, lambda: plain_change(staged.table, entries))
        else:
            staged.head.create()
        return {}

    def _abort_staged(self, token: str) -> dict[str, Any]:
        from frazil.spark.write.writer import discard_entries

        staged = self._staged.pop(token, None)
        if staged is None:
            return {}  # its commit failed, and has left nothing
        if staged.replacement is not None:
            staged.replacement.abort()
        else:
            discard_entries(staged.table, EntryBatch.concat(staged.entries))
        return {}

    # Rows

    def _change_rows(self, change: Any) -> dict[str, Any]:
        from frazil.spark.rows.sql_changes import carry_out

        carry_out(self._bridge, change)
        return {}

    def _truncate(self, token: str) -> dict[str, Any]:
        from frazil.spark.options.options import WriteOptions
        from frazil.spark.rows.sql_changes import written_table

        loaded = self._bridge.loaded(token)
        table, wap_id = written_table(self._bridge, loaded, WriteOptions())
        if wap_id is not None:
            raise Unsupported("TRUNCATE cannot be staged; use DELETE", feature="staged truncate")
        table.delete("true")
        return {}

    def _stream(self, request: str) -> dict[str, Any]:
        from frazil.spark.catalog.streams import stream_of

        asked = json.loads(request)
        loaded = self._bridge.loaded(asked["token"])
        return stream_of(self._catalog, loaded, asked["options"], writes=asked["writes"])

    # Namespaces

    def _list_namespaces(self, request: str) -> dict[str, Any]:
        parent = tuple(json.loads(request)["namespace"])
        namespaces = self._catalog.list_namespaces(parent)
        return {"namespaces": [_levels(name) for name in namespaces]}

    def _load_namespace(self, request: str) -> dict[str, Any]:
        namespace = tuple(json.loads(request)["namespace"])
        if not namespace:
            return {"properties": {}}
        return {"properties": self._catalog.namespace_properties(namespace)}

    def _create_namespace(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        kept = {key: value for key, value in asked["properties"].items() if key != "owner"}
        self._catalog.create_namespace(tuple(asked["namespace"]), kept)
        return {}

    def _alter_namespace(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        namespace = tuple(asked["namespace"])
        self._catalog.set_namespace_properties(namespace, asked["set"], remove=asked["remove"])
        return {}

    def _drop_namespace(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        namespace = tuple(asked["namespace"])
        try:
            if asked["cascade"]:
                self._empty_namespace(namespace)
            self._catalog.drop_namespace(namespace)
        except NotFound:
            return {"dropped": False}
        return {"dropped": True}

    def _empty_namespace(self, namespace: tuple[str, ...]) -> None:
        """Drop whatever is in a namespace, those below it too. Files of tables stay."""
        for child in self._catalog.list_namespaces(namespace):
            levels = tuple(_levels(child))
            self._empty_namespace(levels)
            self._catalog.drop_namespace(levels)
        for name in self._catalog.list_views(namespace):
            self._catalog.drop_view(name)
        for name in self._catalog.list_tables(namespace):
            self._catalog.drop_table(name)

    # Procedures

    def _list_procedures(self, request: str) -> dict[str, Any]:
        from frazil.spark.catalog.procedures import names

        return {"procedures": names()}

    def _procedure(self, request: str) -> dict[str, Any]:
        from frazil.spark.catalog.procedures import described

        return described(json.loads(request)["name"])

    def _call(self, request: str) -> Any:
        from frazil.spark.catalog.procedures import called

        return called(self._bridge, self._catalog, self._name, json.loads(request))


def _partition_by(asked: Mapping[str, Any]) -> list[str] | None:
    terms = []
    for part in asked["partitioning"]:
        name, arguments = part["transform"], list(part["arguments"])
        width = None
        if name in ("bucket", "truncate"):
            # Spark takes the width of truncate on either side of the column.
            at = 0 if name == "bucket" or arguments[0].isdigit() else -1
            width = arguments.pop(at)
        column = ", ".join(arguments)
        terms.append(
            column
            if name == "identity"
            else f"{name}({column})"
            if width is None
            else f"{name}({width}, {column})"
        )
    return terms or None


def _check_provider(properties: Mapping[str, str]) -> None:
    """Refuse formats that the table would not have."""
    provider = properties.get("provider", _PROVIDERS[0])
    if provider.lower() not in _PROVIDERS:
        raise InvalidInput(
            f"USING {provider}: tables of this catalog are Frazil tables with Parquet files; omit "
            "USING, or write USING frazil"
        )


def _check_unchanged(table: Table, read: Snapshot | None) -> None:
    """Refuse to replace a table by rows of its own that are older than what is replaced."""
    now = table.current_snapshot()
    for snapshot in ancestors(table._handle, now):
        if read is not None and snapshot.snapshot_id == read.snapshot_id:
            return
        if snapshot.operation != "replace":
            raise CommitConflict(
                f"{table.name} changed after the query that replaces it was resolved; run it again",
                [
                    Conflict(
                        what="rows changed",
                        where=table.branch_name,
                        by_snapshot_id=int(snapshot.snapshot_id),
                    )
                ],
            )


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in properties.items() if key not in _RESERVED}
    return without_format_version(kept)


def _levels(name: str) -> list[str]:
    from frazil.catalog.names import undotted

    return list(undotted(name))
