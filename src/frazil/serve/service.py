"""What the endpoints work on: the catalog, the facade, and the server's settings."""

from __future__ import annotations

from frazil.catalog.names import Identifier, Namespace
from frazil.errors import NotFound
from frazil.serve.access import Access
from frazil.serve.facade import Facade
from frazil.serve.guard import Guard
from frazil.serve.planning import Cancelled
from frazil.serve.replay import Replay
from frazil.serve.rest_errors import no_namespace, no_table
from frazil.serve.settings import Settings
from frazil.serve.watch import Watch
from frazil.table import Catalog, Table


class Service:
    """One catalog, served."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings | None = None,
        access: Access | None = None,
    ) -> None:
        self.catalog = catalog
        self.access = access
        self.settings = settings or Settings()
        self.replay = Replay(catalog._pointers.notes)
        self.guard = Guard()
        self.cancelled_plans = Cancelled()
        self.watch = Watch()
        self.root_sizes: dict[str, int] = {}
        self.facade = Facade(clients_collect=self.settings.clients_collect)
        self.native: object | None = None
        """What `native_tables` keeps for Frazil's own clients, from the first of them on."""

    def need_namespace(self, namespace: Namespace) -> None:
        """404 when it does not exist."""
        if not self.catalog._pointers.namespace_exists(namespace):
            raise no_namespace(namespace)

    def table(self, identifier: Identifier) -> Table:
        """The table, loaded; 404 when it does not exist."""
        try:
            return self.catalog.load_table(identifier)
        except NotFound as error:
            raise no_table(identifier) from error
