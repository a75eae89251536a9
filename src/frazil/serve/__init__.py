"""An Iceberg REST catalog through which unmodified clients read and write Frazil tables.

>>> from frazil import serve
>>> server = serve.start(catalog)                                         # doctest: +SKIP
>>> server.uri                                                            # doctest: +SKIP
'http://127.0.0.1:43121'
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from frazil.argument_checks import checked
from frazil.errors import Unsupported
from frazil.value_classes import replace

log = logging.getLogger("frazil.serve")

if TYPE_CHECKING:
    from frazil.serve.access.principals import Access
    from frazil.serve.running import Running
    from frazil.serve.settings import Certificate, Settings
    from frazil.table import Catalog


@checked
def start(
    catalog: Catalog,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    settings: Settings | None = None,
    access: Access | None = None,
    certificate: Certificate | None = None,
) -> Running:
    """Serve a catalog from this process until `close` is called; port 0 takes a free one. With a
    certificate it is served over TLS."""
    need_installed()
    from frazil.serve.app import build
    from frazil.serve.running import Running
    from frazil.serve.service import Service
    from frazil.serve.settings import Settings

    settings = settings or Settings()
    # Whoever starts it under a name means that name.
    settings = replace(settings, names=(*settings.names, host))
    service = Service(catalog, settings, access)
    for name in service.pointers.exposed_trees():
        log.warning(
            "%s: its clients see a location that holds its metadata, and engines that remove "
            "orphans there delete it. Set the property serve.location to clients",
            name,
        )
    return Running(
        build(service),
        host=host,
        port=port,
        certificate=certificate,
        max_connections=service.settings.max_connections,
    )


@checked
def run(
    catalog: Catalog,
    *,
    host: str = "127.0.0.1",
    port: int = 8181,
    settings: Settings | None = None,
    access: Access | None = None,
    certificate: Certificate | None = None,
    ready: Callable[[str], None] = lambda uri: None,
) -> None:
    """Serve a catalog until the process is stopped; `ready` is called with the address."""
    with start(
        catalog,
        host=host,
        port=port,
        settings=settings,
        access=access,
        certificate=certificate,
    ) as server:
        # What is there now stays: a collector that walks it each time costs every request a bit.
        gc.collect()
        gc.freeze()
        ready(server.uri)
        server.wait()


def need_installed() -> None:
    """Unsupported, with how to install it, when the server is not installed."""
    try:
        import httptools  # noqa: F401
        import msgspec  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise Unsupported(
            f"{error.name} is not installed; install the server with: pip install 'frazil[serve]'",
            feature="serving a catalog",
        ) from error


__all__ = ["run", "start"]
