"""What the endpoints work on: the catalog, the facade, and the server's settings.

Work that several requests want at the same time is done once. The first request does it on its
thread; the others get its result, and wait for it without one.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar, cast

from frazil.catalog.backend import TableVersion
from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import NotFound
from frazil.serve import limits
from frazil.serve.access.admission import Bodies, Lane
from frazil.serve.access.allowed_paths import ServedCatalog
from frazil.serve.access.guard import Guard
from frazil.serve.access.principals import Access
from frazil.serve.plan.planning import Cancelled
from frazil.serve.rest_errors import no_namespace, no_table
from frazil.serve.settings import Settings
from frazil.serve.view.kept_files import KeptFiles
from frazil.serve.view.published_view import Facade, PublishedVersion
from frazil.serve.view.replay import Replay
from frazil.table import Catalog, Table

_KEPT = 64


class Watch:
    """Remembers the versions of tables under the marks that were given out last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Mapping[Identifier, str]] = OrderedDict()
        self._lock = Lock()

    def mark(self, tables: Sequence[TableVersion]) -> str:
        """A mark for what is there now; the same while nothing changes."""
        versions = {version.identifier: version.version for version in tables}
        digest = hashlib.sha256()
        for name, version in versions.items():
            digest.update(f"{name}\x00{version}\x00".encode("utf-8", "surrogatepass"))
        mark = digest.hexdigest()[:24]
        with self._lock:
            self._seen[mark] = versions
            self._seen.move_to_end(mark)
            while len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
        return mark

    def since(
        self, mark: str, tables: Sequence[TableVersion]
    ) -> tuple[list[Identifier], list[Identifier]] | None:
        """Tables that are new or changed, and those that are gone; None for a mark of long ago."""
        with self._lock:
            before = self._seen.get(mark)
        if before is None:
            return None
        now = {version.identifier: version.version for version in tables}
        changed = [name for name, version in now.items() if before.get(name) != version]
        return changed, [name for name in before if name not in now]


Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Work under way, by what it is about."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Future[Result]] = {}
        self._lock = Lock()

    def run(self, about: Hashable, work: Callable[[], Result]) -> Future[Result]:
        """The result of the work: done now, on this thread, unless another thread is at it."""
        with self._lock:
            other = self._under_way.get(about)
            if other is not None:
                return other
            future = self._under_way[about] = Future[Result]()
        try:
            result = work()
        except BaseException as error:
            self._leave(about)
            future.set_exception(error)
        else:
            self._leave(about)
            future.set_result(result)
        return future

    def _leave(self, about: Hashable) -> None:
        with self._lock:
            del self._under_way[about]


class Service:
    """One catalog, served."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings | None = None,
        access: Access | None = None,
    ) -> None:
        self.access = access
        self.settings = settings = settings or Settings()
        self.quick = Lane(
            "catalog",
            threads=limits.QUICK_THREADS,
            max_waiting=limits.MAX_QUICK_WAITING,
            max_per_principal=limits.MAX_QUICK_PER_PRINCIPAL,
        )
        self.queries = _query_lane("query", settings.max_queries, settings)
        self.statements = _query_lane("SQL", max(1, settings.max_queries // 2), settings)
        self.sign_ins = Lane(
            "sign-in",
            threads=limits.SIGN_IN_THREADS,
            max_waiting=limits.MAX_SIGN_IN_WAITING,
        )
        self.bodies = Bodies(max(limits.MAX_BODIES_BYTES, 2 * settings.max_request_bytes))
        self.catalog = ServedCatalog(catalog, self.settings, access)
        self.unfenced = self.catalog.unfenced
        self.replay = Replay(catalog._pointers.notes)
        self.guard = Guard()
        self.cancelled_plans = Cancelled()
        self.watch = Watch()
        self.root_sizes: dict[str, int] = {}
        self.publications: SingleFlight[PublishedVersion] = SingleFlight()
        self.facade = Facade(allow_client_gc=self.settings.allow_client_gc)
        self.kept_files = KeptFiles()
        self.lock = Lock()
        self.native: object | None = None
        """What `native_tables` keeps for Frazil's own clients, from the first of them on."""

    @property
    def pointers(self) -> SqlCatalog:
        """The catalog's own rows: what is served is a catalog in a database."""
        return cast(SqlCatalog, self.catalog._pointers)

    @property
    def has_native_api(self) -> bool:
        """Whether Frazil's own clients are served: they name tables by keys of a database. Those of
        a catalog in a bucket connect to the bucket."""
        return hasattr(self.catalog._pointers, "load_key")

    def namespaces(self, above: Namespace) -> list[Namespace]:
        """The namespaces in another one, or at the top; none before the warehouse is made."""
        try:
            return self.catalog._pointers.namespaces.children(above)
        except NotFound:
            if above:
                raise
            return []

    def need_namespace(self, namespace: Namespace) -> None:
        """404 when it does not exist."""
        if not self.catalog._pointers.namespaces.exists(namespace):
            raise no_namespace(namespace)

    def table(self, identifier: Identifier) -> Table:
        """The table as it is now, for one request; 404 when it does not exist."""
        try:
            table = self.catalog.load_table(identifier)._as_loaded()
        except NotFound as error:
            raise no_table(identifier) from error
        self.kept_files.restore(table._handle)
        return table


def _query_lane(name: str, threads: int, settings: Settings) -> Lane:
    return Lane(
        name,
        threads=threads,
        max_waiting=limits.MAX_QUERIES_WAITING,
        max_per_principal=settings.max_queries_per_principal,
    )
