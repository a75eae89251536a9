"""What the endpoints work on: the catalog, the facade, and the server's settings."""

from __future__ import annotations

from threading import Lock
from typing import cast

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
from frazil.serve.single_flight import SingleFlight
from frazil.serve.table_versions import Watch
from frazil.serve.view.kept_files import KeptFiles
from frazil.serve.view.published_view import Facade, ShownVersion
from frazil.serve.view.replay import Replay
from frazil.table import Catalog, Table


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
        self.queries = Lane(
            "query",
            threads=settings.max_queries,
            max_waiting=limits.MAX_QUERIES_WAITING,
            max_per_principal=settings.max_queries_per_principal,
        )
        self.statements = Lane(
            "SQL",
            threads=max(1, settings.max_queries // 2),
            max_waiting=limits.MAX_QUERIES_WAITING,
            max_per_principal=settings.max_queries_per_principal,
        )
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
        self.publications: SingleFlight[ShownVersion] = SingleFlight()
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
            return self.catalog._pointers.list_namespaces(above)
        except NotFound:
            if above:
                raise
            return []

    def need_namespace(self, namespace: Namespace) -> None:
        """404 when it does not exist."""
        if not self.catalog._pointers.namespace_exists(namespace):
            raise no_namespace(namespace)

    def table(self, identifier: Identifier) -> Table:
        """The table as it is now, for one request; 404 when it does not exist."""
        try:
            table = self.catalog.load_table(identifier)._as_loaded()
        except NotFound as error:
            raise no_table(identifier) from error
        self.kept_files.restore(table._handle)
        return table
