"""A catalog behind a Frazil server: the native extension of its REST API, as `Pointers`.

Names, heads and views come from the server; files are read and written by this process, which needs
access to the storage. Tables of other Iceberg writers (v1-v3) are read here, from the metadata file
that the server names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from frazil.catalog.backend import NamespaceName, Purged, TableHead, TableName, TableVersion
from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import Identifier, namespace_of
from frazil.catalog.notes import MemoryNotes, Notes
from frazil.catalog.ownership import OtherTables
from frazil.catalog.remote import remote_wire
from frazil.catalog.remote.remote_head import RemoteHead, neighbourhood_of, swapped
from frazil.catalog.remote.remote_http import CA_FILE, Requests
from frazil.catalog.remote.remote_namespaces import RemoteNamespaces, RemoteViews
from frazil.catalog.remote.remote_wire import Document, name_document
from frazil.catalog.storages import Storages
from frazil.commit.head import Draft, Landed, Lost, Outcome, ReadOnly, State, Superseded, Unknown
from frazil.credentials import ConnectionProperties
from frazil.errors import CommitUnknown, FrazilError, InvalidInput, Unsupported
from frazil.format.metadata.metadata import History, TableMetadata
from frazil.storage import Storage

OFFERED = "POST /v1/frazil/load-table"
"""The endpoint by which a server shows that it speaks Frazil's own API."""


class RemoteCatalog:
    """Namespaces and tables of a catalog that `frazil serve` holds."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        properties: Mapping[str, str] | None = None,
        requests: Requests | None = None,
    ) -> None:
        connection_properties = ConnectionProperties(properties or {})
        self._requests = requests or Requests(
            address, token=token, ca_file=connection_properties.get(CA_FILE)
        )
        self._own = connection_properties
        config = self._requests.config()
        if not isinstance(config, dict) or OFFERED not in config.get("endpoints", ()):
            raise Unsupported(
                f"{self._requests.address} is a REST catalog without Frazil's own API; run frazil "
                "serve of this version there, connect to the bucket if its catalog is in one, or "
                "read its tables with open_iceberg",
                feature="connecting to another REST catalog",
            )
        defaults = {key: str(value) for key, value in config.get("defaults", {}).items()}
        about = self._requests.read("about")
        self.name: str = about["name"]
        self.warehouse: str | None = about["warehouse"]
        self._storages = Storages({**defaults, **connection_properties})
        self.namespaces = RemoteNamespaces(self._requests)
        self.views = RemoteViews(self._requests)
        self._notes = MemoryNotes()

    def __repr__(self) -> str:
        return f"RemoteCatalog({self._requests.address!r})"

    def __reduce__(self) -> tuple[Any, tuple[Requests, ConnectionProperties]]:
        return (_opened, (self._requests, self._own))

    @property
    def notes(self) -> Notes:
        return self._notes

    def storage(self, location: str) -> Storage:
        return self._storages(location)

    def close(self) -> None:
        self._requests.close()

    # Tables

    def location_for(self, identifier: TableName) -> str:
        return str(self._requests.read("location-for", _named(identifier))["location"])

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        document = {**_named(name), "table": remote_wire.metadata_document(metadata, history)}
        try:
            answer = self._requests.change("create-table", document)
        except CommitUnknown as lost:
            head = self._created(name, metadata)
            if head is None:
                raise lost
            return head
        return self._head(name, answer)

    def _created(self, identifier: Identifier, metadata: TableMetadata) -> TableHead | None:
        """The table that a request with a lost answer made, if it did."""
        try:
            head = self.load(identifier)
        except FrazilError:
            return None
        return head if head.state.metadata.table_uuid == metadata.table_uuid else None

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        document = {**_named(name), "metadata-location": metadata_location, "location": location}
        return self._head(name, self._requests.change("register", document))

    def load(self, identifier: TableName) -> TableHead:
        name = Identifier.parse(identifier)
        return self._head(name, self._requests.read("load-table", _named(name)))

    def table_exists(self, identifier: TableName) -> bool:
        return bool(self._requests.read("table-exists", _named(identifier))["exists"])

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        parts = namespace_of(namespace)
        answer = self._requests.read("list-tables", {"namespace": list(parts)})["names"]
        return [Identifier(namespace=parts, name=name) for name in answer]

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        answer = self._requests.read("pulses", {"since-ms": since_ms})["pulses"]
        return [
            TableVersion(
                identifier=Identifier.parse(name), version=version, committed_ms=tuple(times)
            )
            for name, version, times in answer
        ]

    def neighbourhood(self) -> OtherTables:
        """Every table of the catalog, for tables that the server does not hold a head of."""
        return neighbourhood_of(self._requests.read("neighbourhood", {}), self.load)

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        name = Identifier.parse(identifier)
        if base.metadata_location is None:
            raise InvalidInput(f"{name}: expected v4 metadata made from a v1-v3 table as loaded")
        document = {
            **_named(name),
            "metadata-location": base.metadata_location,
            "table": remote_wire.metadata_document(metadata),
        }
        try:
            answer = self._requests.change("upgrade", document)
        except CommitUnknown as lost:
            return Unknown(cause=lost)
        if answer["landed"] is None:
            return Lost()
        return Landed(states=(self._head(name, answer["landed"]).state,))

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
        ours = [(_ours(head), base, draft) for head, base, draft in swaps]
        return swapped(self._requests, ours)

    def rename(self, identifier: TableName, to: TableName) -> None:
        document = {**_named(identifier), "to": name_document(Identifier.parse(to))}
        self._requests.change("rename", document)

    def drop(self, identifier: TableName) -> None:
        self._requests.change("drop", _named(identifier))

    def purge(self, identifier: TableName) -> Purged:
        name = Identifier.parse(identifier)
        answer = self._requests.change("purge", _named(name))
        legacy = answer.get("legacy")
        if legacy is not None:
            head = self._legacy(name, legacy)
            return Purged(
                identifier=name,
                metadata=head.state.metadata,
                history=head.history(),
                metadata_location=legacy,
            )
        metadata, history = remote_wire.whole_metadata(answer["table"])
        return Purged(
            identifier=name,
            metadata=metadata,
            history=history,
            metadata_location=answer["metadata-location"],
        )

    def _head(self, identifier: Identifier, answer: Document) -> TableHead:
        legacy = answer.get("legacy")
        if legacy is not None:
            return self._legacy(identifier, legacy)
        return RemoteHead(self._requests, identifier, answer, open=self.load)

    def _legacy(self, identifier: Identifier, location: str) -> JsonHead:
        return JsonHead(
            identifier,
            location,
            locate=partial(self._locate, identifier),
            storage=self._storages,
            catalog=self,
        )

    def _locate(self, identifier: Identifier) -> str:
        answer = self._requests.read("load-table", _named(identifier))
        if "legacy" not in answer:
            raise Superseded(
                f"{identifier}: was upgraded to format-version 4; load it again",
                partial(self.load, identifier),
            )
        return str(answer["legacy"])


def _opened(requests: Requests, properties: dict[str, str]) -> RemoteCatalog:
    return RemoteCatalog(requests.address, properties=properties, requests=requests)


def _named(identifier: TableName) -> Document:
    return {"name": name_document(Identifier.parse(identifier))}


def _ours(head: TableHead) -> RemoteHead:
    if isinstance(head, RemoteHead):
        return head
    if isinstance(head, ReadOnly):
        raise head.refusal()
    raise InvalidInput(f"{head.identifier}: is not a table of this catalog")


__all__ = ["OFFERED", "RemoteCatalog"]
