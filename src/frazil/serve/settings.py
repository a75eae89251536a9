"""How a server behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

from frazil.argument_checks import is_text, is_whole, short_repr
from frazil.catalog.names import Identifier
from frazil.errors import InvalidInput
from frazil.serve import limits

_COUNTS = (
    "max_request_bytes",
    "max_connections",
    "max_queries",
    "max_queries_per_principal",
    "max_query_memory",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server behaves.

    `properties` are told to every client (for example where an object store is). `allowed` are
    locations outside the warehouse where clients may keep table metadata that the server reads.
    `allow_client_gc` lets clients delete files (expire snapshots, remove orphans, purge): they see
    only what was published, so it is for tables that nothing but clients of this server write.
    `shows_v4` follows a draft of Iceberg's: tables are loaded as they are from `/v2`, and refused
    on `/v1` unless a prefix or `serve.format-version` asks for an older version.
    `plans_scans` asks clients to let the server plan their scans; None asks them when the server is
    read-only. Rows that a client rewrites from such a scan lose their last change's number, so it
    is not for writers.

    The `max_…` and `…_timeout_s` are limits: bytes of a commit, seconds for an answer, open
    connections, plans and SQL statements worked on at once, those of one principal that are worked
    on or wait, bytes of memory that one statement may use, and seconds for one. `serve.limits` has
    the others.

    The rest is for the explorer: `sql_writes` lets its SQL box change tables, `names` are names
    under which a server without tokens may be opened, and `start` is the table shown first.
    """

    is_read_only: bool = False
    allow_client_gc: bool = False
    shows_v4: bool = False
    plans_scans: bool | None = None
    max_request_bytes: int = limits.MAX_BODY_BYTES
    request_timeout_s: float = limits.REQUEST_TIMEOUT_S
    max_connections: int = limits.MAX_CONNECTIONS
    max_queries: int = limits.MAX_QUERIES
    max_queries_per_principal: int = limits.MAX_QUERIES_PER_PRINCIPAL
    max_query_memory: int = limits.MAX_QUERY_MEMORY
    query_timeout_s: float = limits.QUERY_TIMEOUT_S
    properties: Mapping[str, str] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    sql_writes: bool = False
    names: tuple[str, ...] = ()
    start: Identifier | None = None
    clients_collect: InitVar[bool] = False
    """The name of `allow_client_gc` in version 0.2."""

    def __post_init__(self, clients_collect: bool) -> None:
        if clients_collect:
            object.__setattr__(self, "allow_client_gc", clients_collect)
        for name in ("is_read_only", "allow_client_gc", "shows_v4", "plans_scans", "sql_writes"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "plans_scans" and value is None):
                raise InvalidInput(f"{name} is {short_repr(value)}; expected True or False")
        for name in _COUNTS:
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise InvalidInput(
                    f"{name} is {short_repr(value)}; expected a positive whole number"
                )
        for name in ("request_timeout_s", "query_timeout_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidInput(f"{name} is {short_repr(value)}; expected a positive number")
        for name in ("allowed", "names"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(map(is_text, value)):
                raise InvalidInput(f"{name} is {short_repr(value)}; expected a tuple of str")
        if not isinstance(self.properties, Mapping) or not all(
            is_text(key) and is_text(value) for key, value in self.properties.items()
        ):
            raise InvalidInput("properties must map str to str")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """PEM files with which a server proves who it is; the key may be in the same file."""

    file: str
    key: str | None = None
