"""What a request is about: a table, one of its snapshots, and some of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.format.entries.stats import TrackedField, is_ordered, tracked_fields
from frazil.format.metadata.metadata import RefKind, Snapshot
from frazil.iceberg.schema import Schema
from frazil.serve.exchange import Request
from frazil.serve.limits import MAX_PAGE_COLUMNS
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.table import Table
from frazil.tree.read import TreeReader
from frazil.value_classes import field, frozen, replace

PLACE = "/explorer/api/tables/{namespace}/{table}"
_BY_ITSELF = 8
_MAX_SIZES = 10_000


@frozen
class Subject:
    """A table at a snapshot, in the schema that a scan of it would have."""

    table: Table
    snapshot: Snapshot | None
    schema: Schema
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes of roots that were asked for before; files of metadata never change."""

    @staticmethod
    def of(service: Service, call: Request) -> Subject:
        """As the path and the query say: `snapshot` is an id, a branch or a tag."""
        table = service.table(call.identifier())
        subject = Subject.at(table, call.query.get("snapshot"))
        return replace(subject, sizes=service.root_sizes)

    @staticmethod
    def at(table: Table, named: str | None) -> Subject:
        """A table at a snapshot that has a name or an id; None is the head of main."""
        if not named:
            return Subject(
                table=table, snapshot=table.current_snapshot(), schema=table.metadata.schema()
            )
        snapshot = table.snapshot(named)
        ref = table.metadata.refs.get(named)
        heads = {
            ref.snapshot_id for ref in table.metadata.refs.values() if ref.kind is RefKind.BRANCH
        }
        moving = ref is not None and ref.kind is RefKind.BRANCH
        if moving or (ref is None and snapshot.snapshot_id in heads):
            return Subject(table=table, snapshot=snapshot, schema=table.metadata.schema())
        return Subject(table=table, snapshot=snapshot, schema=table.metadata.schema_of(snapshot))

    @property
    def reader(self) -> TreeReader:
        """Reads its trees."""
        return self.table._handle.reader()

    def size_of(self, path: str) -> int:
        """How large a file of metadata is; asked for once."""
        size = self.sizes.get(path)
        if size is None:
            if len(self.sizes) > _MAX_SIZES:
                self.sizes.clear()
            size = self.sizes[path] = self.table._handle.storage.size(path)
        return size

    @property
    def bounded(self) -> tuple[TrackedField, ...]:
        """Columns whose type can have bounds."""
        return tuple(column for column in tracked_fields(self.schema) if is_ordered(column.type))

    def columns(self, asked: str | None) -> tuple[TrackedField, ...]:
        """The columns of that ids; by default a few, those of partitions and order first."""
        columns_by_id = {column.id: column for column in self.bounded}
        if asked:
            ids = _ids(asked)
            return tuple(columns_by_id[id] for id in ids if id in columns_by_id)[:MAX_PAGE_COLUMNS]
        first = [*self.partition_sources, *self.sort_sources]
        order = sorted(columns_by_id, key=lambda id: first.index(id) if id in first else len(first))
        return tuple(columns_by_id[id] for id in order[:_BY_ITSELF])

    @property
    def partition_sources(self) -> list[int]:
        """Ids of columns that the current spec is made of."""
        return [
            source for field in self.table.metadata.spec().fields for source in field.source_ids
        ]

    @property
    def sort_sources(self) -> list[int]:
        """Ids of columns that the current sort order is made of."""
        return [field.source_id for field in self.table.metadata.sort_order().fields]


def _ids(text: str) -> Sequence[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 11 for part in parts):
        raise bad_request(f"columns is {text!r}; expected field ids such as 1,3")
    return [int(part) for part in parts]


def whole(call: Request, name: str, *, default: int, maximum: int) -> int:
    """A number of the query, at most `most`."""
    value = call.query.get(name)
    if value is None or value == "":
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise bad_request(f"{name} is {value!r}; expected a number")
    return min(int(value), maximum)
