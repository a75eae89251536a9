"""Connections to PostgreSQL, kept by SQLAlchemy. Loaded only for catalogs that need it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from frazil.credentials import is_credential
from frazil.errors import CatalogError, InvalidInput
from frazil.extras import missing

_TIMEOUT_S = 60


class PostgresPool:
    """Connections to one database. Safe to share between threads."""

    kind = "postgresql"
    path: str | None = None
    is_read_only = False

    def __init__(self, uri: str) -> None:
        url = _url(uri)
        self.uri = _redacted_uri(url)
        self.secrets = _secrets(url)
        try:
            self._engine = sa.create_engine(
                url,
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                pool_reset_on_return=None,
                max_overflow=-1,
            )
        except ImportError as error:
            raise missing(error.name or url.drivername, f"the catalog {self.uri}") from error
        except SQLAlchemyError as error:
            raise CatalogError(f"{self.uri}: cannot use this database: {error}") from error
        event.listen(self._engine, "connect", _prepare)
        driver: Any = self._engine.dialect.dbapi
        self.driver = driver
        self.errors = (SQLAlchemyError, driver.Error)
        self._inherited: list[Any] = []

    def raw_connection(self) -> Any:
        """A connection for exclusive use."""
        return self._engine.raw_connection()

    def dispose(self) -> None:
        """Close the connections that are not in use."""
        self._engine.dispose()

    def leave(self) -> None:
        """Leave the connections to the process that made them."""
        self._inherited.append(self._engine.pool)
        self._engine.dispose(close=False)

    def is_disconnect(self, error: Exception, connection: Any) -> bool:
        """Whether a connection had gone before."""
        return self._engine.dialect.is_disconnect(error, connection, None)  # type: ignore[arg-type]


def _url(uri: str) -> URL:
    try:
        url = sa.make_url(uri)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError) as error:
        raise InvalidInput("the catalog's address is not a database URI") from error
    if backend not in ("postgresql", "postgres"):
        raise InvalidInput(f"{_redacted_uri(url)}: expected a sqlite or postgresql database")
    url = url.set(drivername="postgresql+psycopg")
    try:
        url.get_dialect()
    except (NoSuchModuleError, ImportError) as error:
        raise InvalidInput(f"{_redacted_uri(url)}: the database driver is not installed") from error
    return url


def _secrets(url: URL) -> tuple[str, ...]:
    hidden = [str(url.password)] if url.password else []
    for key, value in url.query.items():
        if is_credential(key) or "password" in key:
            hidden += [value] if isinstance(value, str) else list(value)
    return tuple(secret for secret in hidden if secret)


def _redacted_uri(url: URL) -> str:
    """The address fit to be shown."""
    query = {k: "***" if is_credential(k) or "password" in k else v for k, v in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def _prepare(connection: Any, _record: object) -> None:
    """A client that hangs in the middle of a commit must not stop the others for long."""
    connection.autocommit = True
    connection.execute(
        f"SET idle_in_transaction_session_timeout = '{_TIMEOUT_S}s'; "
        f"SET lock_timeout = '{_TIMEOUT_S}s'"
    )
