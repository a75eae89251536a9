"""What Spark SQL's catalog asks for: namespaces, tables, their definition, procedures.

Each verb is a method that takes a JSON text and returns what Spark is told. No rule of tables lives
here: the catalog and its tables are asked. What only writes need is imported by the verbs that
write, so that a first query does not wait for it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.schema import Schema
from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from frazil.errors import AlreadyExists, NotFound
from frazil.spark.bridge import Answers, Bridge
from frazil.spark.defaults import CURRENT, default_value
from frazil.spark.find_table import prepare
from frazil.spark.loaded import CURRENT_SNAPSHOT, Loaded
from frazil.spark.spark_types import declared_schema
from frazil.table.column_tree import default_of

if TYPE_CHECKING:
    from frazil.table.catalog import Catalog
    from frazil.table.table import Table
    from frazil.table.transaction import Transaction

_RESERVED: Final = frozenset(
    {"provider", "location", "owner", "external", "is_managed_location", CURRENT_SNAPSHOT}
)


@dataclass(slots=True, kw_only=True)
class _Staged:
    """A table being filled before it is seen under its name."""

    table: Table
    name: tuple[str, ...]
    replacement: Transaction | None = None


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
        ):
            self.verbs[verb] = getattr(self, f"_{verb.replace(' ', '_')}")

    # Tables

    def _load(self, request: str) -> dict[str, Any]:
        found = Loaded.named(self._catalog, json.loads(request))
        return {"missing": True} if found is None else self._described(found)

    def _described(self, loaded: Loaded) -> dict[str, Any]:
        key = f"{self._name}.{loaded.table.name}"
        self._bridge.tables[key] = loaded.table
        fields = loaded.scan.table_schema.fields
        prepare(self._bridge.spark, (field.field_type for field in fields))
        return loaded.described(key)

    def _shown(self, table: Table) -> dict[str, Any]:
        return self._described(Loaded(table=table, scan=table.scan()))

    def _list_tables(self, request: str) -> dict[str, Any]:
        namespace = tuple(json.loads(request)["namespace"])
        names = self._catalog.list_tables(namespace) if namespace else []
        return {"tables": [name.rsplit(".", 1)[-1].replace("%2E", ".") for name in names]}

    def _create(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        return self._shown(self._created(asked, (*asked["namespace"], asked["name"])))

    def _created(self, asked: Mapping[str, Any], name: Sequence[str]) -> Table:
        properties = asked["properties"]
        return self._catalog.create_table(
            name,
            self._schema(asked),
            partition_by=_partition_by(asked),
            location=properties.get("location"),
            properties=_kept(properties),
        )

    def _schema(self, asked: Mapping[str, Any]) -> Schema:
        """The columns of a statement, with the defaults it declares."""
        given = sql.StructType.fromJson(json.loads(asked["schema"]))
        made = declared_schema(given)
        fields = []
        for field, said in zip(made.fields, given.fields, strict=True):
            text = (said.metadata or {}).get(CURRENT)
            if text is not None:
                value = default_value(self._bridge.spark, text, said.dataType)
                value = default_of(value, field.field_type, field.name)
                field = field.model_copy(update={"initial_default": value, "write_default": value})
            fields.append(field)
        return Schema(*fields)

    def _alter(self, request: str) -> dict[str, Any]:
        from frazil.spark.alterations import alter

        asked = json.loads(request)
        table = self._catalog.load_table((*asked["namespace"], asked["name"]))
        alter(self._bridge.spark, table, asked["changes"])
        return self._shown(table.refresh())

    def _drop(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = (*asked["namespace"], asked["name"])
        if not self._catalog.table_exists(name):
            return {"dropped": False}
        self._catalog.drop_table(name, purge=asked.get("purge", False))
        return {"dropped": True}

    def _rename(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        to = asked["to"]
        self._catalog.rename_table(
            (*asked["namespace"], asked["name"]), (*to["namespace"], to["name"])
        )
        return {}

    # Tables that are filled first

    def _stage_create(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = (*asked["namespace"], asked["name"])
        if self._catalog.table_exists(name):
            raise AlreadyExists(f"table {'.'.join(name)} exists already")
        hidden = (*name[:-1], f"{name[-1]}__staged_{uuid.uuid4().hex[:8]}")
        table = self._created(asked, hidden)
        return self._stage(_Staged(table=table, name=name))

    def _stage_replace(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        name = (*asked["namespace"], asked["name"])
        if not self._catalog.table_exists(name):
            return self._stage_create(request) if asked.get("or create") else {"missing": True}
        from frazil.expr.partition_by import parse_partition_by
        from frazil.format.plain import UNPARTITIONED
        from frazil.table.replacement import replacing

        table = self._catalog.load_table(name)
        schema = self._schema(asked)
        terms = _partition_by(asked)
        spec = parse_partition_by(terms, schema) if terms else UNPARTITIONED
        made = replacing(table, schema, spec=spec, properties=_kept(asked["properties"]))
        return self._stage(_Staged(table=table, name=name, replacement=made), asked["schema"])

    def _stage(self, staged: _Staged, schema: str | None = None) -> dict[str, Any]:
        token = f"staged {uuid.uuid4()}"
        self._staged[token] = staged
        described = self._shown(staged.table)
        return {**described, "token": token, "schema": schema or described["schema"]}

    def _commit_staged(self, token: str) -> dict[str, Any]:
        staged = self._staged.pop(token)
        if staged.replacement is not None:
            staged.replacement.commit()
        else:
            self._catalog.rename_table(staged.table.name, staged.name)
        return {}

    def _abort_staged(self, token: str) -> dict[str, Any]:
        staged = self._staged.pop(token)
        if staged.replacement is not None:
            staged.replacement.abort()
        else:
            self._catalog.drop_table(staged.table.name, purge=True)
        return {}

    # Rows

    def _insert(self, request: Any) -> dict[str, Any]:
        from frazil.spark import writer
        from frazil.spark.sql_changes import merges_schema

        asked = json.loads(request[0])
        frame = DataFrame(request[1], self._bridge.spark)
        staged = self._staged.get(asked["token"])
        if staged is not None and staged.replacement is not None:
            staged.replacement._add_entries(
                writer.write_frame(frame, staged.table, metadata=staged.replacement.metadata)
            )
            return {}
        table = self._bridge.loaded(asked["token"]).table if staged is None else staged.table
        writer.append(table, frame, merge_schema=merges_schema(asked["options"]))
        return {}

    def _change_rows(self, change: Any) -> dict[str, Any]:
        from frazil.spark.sql_changes import carry_out

        table = self._bridge.loaded(str(change.token())).table
        carry_out(self._bridge.spark, table, change)
        return {}

    def _truncate(self, token: str) -> dict[str, Any]:
        self._bridge.loaded(token).table.delete("true")
        return {}

    # Namespaces

    def _list_namespaces(self, request: str) -> dict[str, Any]:
        parent = tuple(json.loads(request)["namespace"])
        found = self._catalog.list_namespaces(parent)
        return {"namespaces": [_levels(name) for name in found]}

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
        if asked["cascade"]:
            for name in self._catalog.list_tables(namespace):
                self._catalog.drop_table(name)
        try:
            self._catalog.drop_namespace(namespace)
        except NotFound:
            return {"dropped": False}
        return {"dropped": True}

    # Procedures

    def _list_procedures(self, request: str) -> dict[str, Any]:
        from frazil.spark.procedures import names

        return {"procedures": names()}

    def _procedure(self, request: str) -> dict[str, Any]:
        from frazil.spark.procedures import described

        return described(json.loads(request)["name"])

    def _call(self, request: str) -> Any:
        from frazil.spark.procedures import called

        return called(self._bridge.spark, self._catalog, self._name, json.loads(request))


def _partition_by(asked: Mapping[str, Any]) -> list[str] | None:
    terms = []
    for part in asked["partitioning"]:
        arguments = part["arguments"]
        column = (
            arguments[-1]
            if part["transform"] != "truncate"
            else next(each for each in arguments if not each.isdigit())
        )
        width = next((each for each in arguments if each.isdigit() and each != column), None)
        name = part["transform"]
        terms.append(
            column
            if name == "identity"
            else f"{name}({column})"
            if width is None
            else f"{name}({width}, {column})"
        )
    return terms or None


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in _RESERVED}


def _levels(name: str) -> list[str]:
    from frazil.catalog.names import undotted

    return list(undotted(name))
