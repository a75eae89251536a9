"""How a server behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frazil.catalog.names import Identifier
from frazil.entrance import is_text, is_whole, shown
from frazil.errors import InvalidInput

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server behaves.

    `properties` are told to every client (for example where an object store is). `allowed` are
    locations outside the warehouse where clients may keep table metadata that the server reads.
    `clients_collect` lets clients delete files (expire snapshots, remove orphans, purge): they see
    only what was published, so it is for tables that nothing but clients of this server write.
    `plans_scans` asks clients to let the server plan their scans; None asks them when the server is
    read-only. Rows that a client rewrites from such a scan lose their last change's number, so it
    is not for writers.

    The rest is for the explorer: `sql_writes` lets its SQL box change tables, `names` are names
    under which a server without tokens may be opened, and `start` is the table shown first.
    """

    is_read_only: bool = False
    clients_collect: bool = False
    plans_scans: bool | None = None
    max_request_bytes: int = 64 * MIB
    request_timeout_s: float = 600
    properties: Mapping[str, str] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    sql_writes: bool = False
    names: tuple[str, ...] = ()
    start: Identifier | None = None

    def __post_init__(self) -> None:
        for name in ("is_read_only", "clients_collect", "plans_scans", "sql_writes"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "plans_scans" and value is None):
                raise InvalidInput(f"{name} is {shown(value)}; expected True or False")
        if not is_whole(self.max_request_bytes) or self.max_request_bytes < 1:
            found = shown(self.max_request_bytes)
            raise InvalidInput(f"max_request_bytes is {found}; expected a positive whole number")
        timeout = self.request_timeout_s
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise InvalidInput(f"request_timeout_s is {shown(timeout)}; expected a positive number")
        for name in ("allowed", "names"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(map(is_text, value)):
                raise InvalidInput(f"{name} is {shown(value)}; expected a tuple of texts")
        if not isinstance(self.properties, Mapping) or not all(
            is_text(key) and is_text(value) for key, value in self.properties.items()
        ):
            raise InvalidInput("properties is not a dictionary of texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """PEM files with which a server proves who it is; the key may be in the same file."""

    file: str
    key: str | None = None
