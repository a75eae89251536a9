"""Options of the `frazil` data source, read once and checked.

- `path` or `table`: the table, `load("shop.orders")`
- `catalog`: a warehouse folder or a database URI, as `frazil.connect` takes it
- `catalog-name`, `warehouse`: the catalog's name in its database, and where its tables go
- `snapshot`, `as-of`, `tag`, `branch`: what to read, at most one; `branch` is also where to write.
  Snapshot 0 is the table before its first commit. `snapshot-id` and `as-of-timestamp`
  (milliseconds) are Iceberg's names of the first two
- `start-snapshot-id`, `end-snapshot-id`: the rows that appends added after one snapshot, up to
  another
- `schema-id`: in which of the table's schemas to read; by default that of the moment
- `where`: which rows to read; prunes files while planning
- `columns`: names to read, separated by commas; metadata columns too
- `split-size`: bytes that one task reads
- `metadata`: a metadata table instead of the rows: snapshots, files, manifests, …
- a name with a dot: a property of the storage, such as `s3.endpoint`
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from frazil.errors import InvalidInput
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.table.refs import AsOf
    from frazil.table.table import Table

CHANGES_ARE_STREAMS = "changes are read as a stream, or with frazil.spark.changes"
METADATA_TABLES = (
    "snapshots",
    "files",
    "data_files",
    "delete_files",
    "manifests",
    "entries",
    "history",
    "partitions",
    "refs",
    "metadata_log_entries",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_entries",
    "all_manifests",
)
_SYNONYMS = {"snapshot-id": "snapshot", "as-of-timestamp": "as-of"}
"""Names that Iceberg has for options."""
_START, _END = "start-snapshot-id", "end-snapshot-id"
_KNOWN = frozenset(
    {
        *_SYNONYMS,
        _START,
        _END,
        "path",
        "table",
        "catalog",
        "catalog-name",
        "warehouse",
        "snapshot",
        "schema-id",
        "as-of",
        "tag",
        "branch",
        "where",
        "columns",
        "split-size",
        "metadata",
    }
)


@frozen
class SourceOptions:
    """What a user of the data source asked for."""

    table: str
    catalog: str
    catalog_name: str = "default"
    warehouse: str | None = None
    snapshot: int | None = None
    schema_id: int | None = None
    as_of: str | None = None
    tag: str | None = None
    branch: str | None = None
    appended: tuple[int, int | None] | None = None
    where: str | None = None
    columns: tuple[str, ...] | None = None
    split_bytes: int | None = None
    metadata: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def parse(options: Mapping[str, str], *, extra: frozenset[str] = frozenset()) -> SourceOptions:
        """Options by their names, in any case; `extra` names those that another reader knows."""
        values = {key.lower(): value for key, value in options.items()}
        known = _KNOWN | extra
        unknown = sorted(key for key in values if key not in known and "." not in key)
        if unknown:
            raise InvalidInput(
                f"unknown option {', '.join(unknown)} of the frazil data source; expected "
                + ", ".join(sorted(known))
            )
        table = values.get("table") or values.get("path")
        catalog = values.get("catalog")
        if not table:
            raise InvalidInput('no table: name it in load("namespace.table") or option "table"')
        if not catalog:
            raise InvalidInput('no catalog: option "catalog" takes a warehouse folder or a URI')
        states = ("snapshot", "as-of", *_SYNONYMS, "tag", "branch", _START)
        chosen = [key for key in states if key in values]
        if len(chosen) > 1:
            raise InvalidInput(f"options {' and '.join(chosen)} exclude each other")
        number(values, "as-of-timestamp")
        for theirs, ours in _SYNONYMS.items():
            if theirs in values:
                values[ours] = values[theirs]
        return SourceOptions(
            table=table,
            catalog=catalog,
            catalog_name=values.get("catalog-name", "default"),
            warehouse=values.get("warehouse"),
            snapshot=number(values, "snapshot"),
            schema_id=number(values, "schema-id"),
            as_of=values.get("as-of"),
            tag=values.get("tag"),
            branch=values.get("branch"),
            appended=_appended(values),
            where=values.get("where"),
            columns=_names(values.get("columns")),
            split_bytes=number(values, "split-size") or None,
            metadata=_metadata(values.get("metadata")),
            properties={key: value for key, value in values.items() if "." in key},
        )

    def load(self) -> Table:
        """The table, on the branch asked for."""
        from frazil.table.open_catalog import connect_existing

        options = {**self.properties, "name": self.catalog_name}
        if self.warehouse is not None:
            options["warehouse"] = self.warehouse
        catalog = connect_existing(self.catalog, **options)
        loaded = catalog.load_table(self.table)._as_loaded()
        return loaded if self.branch is None else loaded.branch(self.branch, create=False)

    def check_writable(self) -> None:
        """Refuse a write to what is only read."""
        if self.appended is not None:
            raise InvalidInput(f"option {_START} is for reads")
        if self.metadata is not None:
            raise InvalidInput("metadata tables cannot be written to")

    def check_without_session(self) -> None:
        """Refuse what only batches of a session with a Frazil catalog read."""
        if self.appended is not None:
            raise InvalidInput(
                f"option {_START} needs a session with a Frazil catalog (frazil.spark.register), "
                "and is for batches; a stream takes start-snapshot"
            )

    def moment(self, table: Table) -> AsOf | None:
        """What to read, as `Table.scan` takes it; None for the table's own tip."""
        if self.tag is not None:
            if self.tag not in table.metadata.refs:
                raise InvalidInput(f"{table.name} has no tag {self.tag!r}")
            return self.tag
        if self.as_of is not None and self.as_of.isdigit():
            return datetime.fromtimestamp(int(self.as_of) / 1000, UTC)
        return self.snapshot if self.as_of is None else self.as_of


def number(values: Mapping[str, str], key: str, *, minimum: int = 0) -> int | None:
    """The whole number that an option holds."""
    text = values.get(key)
    if text is None:
        return None
    if not text.isdigit() or int(text) < minimum:
        above = f" above {minimum - 1}" if minimum else ""
        raise InvalidInput(f"option {key} is {text!r}; expected a number{above}")
    return int(text)


def _appended(values: Mapping[str, str]) -> tuple[int, int | None] | None:
    start = number(values, _START)
    if start is None:
        if _END in values:
            raise InvalidInput(f"option {_END} needs {_START}")
        return None
    for key in ("where", "metadata", "schema-id"):
        if key in values:
            raise InvalidInput(f"options {_START} and {key} exclude each other")
    return start, number(values, _END)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _metadata(text: str | None) -> str | None:
    if text is not None and text not in METADATA_TABLES:
        raise InvalidInput(f"no metadata table {text!r}; there are {', '.join(METADATA_TABLES)}")
    return text
