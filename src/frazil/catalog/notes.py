"""Small texts that a catalog keeps beside a table, by key: what was published of it, for example.

They are a cache that all processes share. Losing them costs work, never data, so they are written
apart from commits. A key that is there is never changed: the first to write it is right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from frazil.catalog.database.database import Database, UncertainCommit
from frazil.errors import CatalogError

_BATCH = 500
_ADD = """
INSERT INTO frazil_notes (table_id, name, value) VALUES (:table_id, :name, :value)
ON CONFLICT (table_id, name) DO NOTHING
"""
_BELOW = """
SELECT name, value FROM frazil_notes
WHERE table_id = :table_id AND name >= :prefix AND name < :until ORDER BY name
"""
_ANY = "SELECT 1 FROM frazil_notes WHERE table_id = :table_id LIMIT 1"
_REMOVE = "DELETE FROM frazil_notes WHERE table_id = :table_id AND name = :name"


class Notes(Protocol):
    """The notes of one table."""

    def is_empty(self) -> bool:
        """Whether there is certainly none."""

    def below(self, prefix: str) -> dict[str, str]:
        """Every note whose key starts so, sorted by key."""

    def get(self, keys: Collection[str]) -> dict[str, str]:
        """Notes by key; those that are not there are left out."""

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        """Keep what is not there yet; returns what is there now under these keys."""

    def remove(self, keys: Iterable[str]) -> None:
        """Forget notes."""

    def claim(self, version: int, by: str) -> str:
        """Claim the right to write a published version of the table: returns whose it is."""


CLAIMS = "publish:"
"""What the keys of claims start with."""


def claim_key(version: int) -> str:
    """The note of a claim."""
    return f"{CLAIMS}{version:012d}"


class MemoryNotes:
    """Notes that end with the process."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    def is_empty(self) -> bool:
        return not self._notes

    def below(self, prefix: str) -> dict[str, str]:
        return {key: self._notes[key] for key in sorted(self._notes) if key.startswith(prefix)}

    def get(self, keys: Collection[str]) -> dict[str, str]:
        return {key: self._notes[key] for key in keys if key in self._notes}

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        return {key: self._notes.setdefault(key, value) for key, value in notes.items()}

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._notes.pop(key, None)

    def claim(self, version: int, by: str) -> str:
        return self.add({claim_key(version): by})[claim_key(version)]


class SqlNotes:
    """Notes as rows of a table of the catalog."""

    def __init__(self, database: Database, table_id: int) -> None:
        self._database = database
        self._table_id = table_id

    def is_empty(self) -> bool:
        return not self._database.rows(_ANY, {"table_id": self._table_id})

    def below(self, prefix: str) -> dict[str, str]:
        until = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        key = {"table_id": self._table_id, "prefix": prefix, "until": until}
        return {str(name): str(value) for name, value in self._database.rows(_BELOW, key)}

    def get(self, keys: Collection[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        asked_keys = list(keys)
        for start in range(0, len(asked_keys), _BATCH):
            names = {f"name_{i}": key for i, key in enumerate(asked_keys[start : start + _BATCH])}
            listed = ", ".join(f":{name}" for name in names)
            rows = self._database.rows(
                "SELECT name, value FROM frazil_notes "
                f"WHERE table_id = :table_id AND name IN ({listed})",
                {"table_id": self._table_id, **names},
            )
            values.update({str(name): str(value) for name, value in rows})
        return values

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        rows = [
            {"table_id": self._table_id, "name": name, "value": value}
            for name, value in notes.items()
        ]
        self._change(_ADD, rows)
        return self.get(notes.keys())

    def remove(self, keys: Iterable[str]) -> None:
        self._change(_REMOVE, [{"table_id": self._table_id, "name": key} for key in keys])

    def claim(self, version: int, by: str) -> str:
        return self.add({claim_key(version): by})[claim_key(version)]

    def _change(self, statement: str, rows: list[dict[str, object]]) -> None:
        if not rows:
            return
        try:
            with self._database.transaction() as transaction:
                transaction.run_each(statement, rows)
        except UncertainCommit as lost:
            raise CatalogError("the connection was lost while notes were written") from lost
