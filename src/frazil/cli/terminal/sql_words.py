"""Words that may come next in a line of SQL: tables, their columns, procedures, words of SQL."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from frazil.errors import FrazilError
from frazil.sql.run.procedures import PROCEDURES
from frazil.sql.session import Session

_KEYWORDS: Final = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON USING WITH AS UNION ALL DISTINCT "
    "INSERT INTO OVERWRITE VALUES UPDATE SET DELETE MERGE MATCHED CREATE TABLE VIEW NAMESPACE "
    "REPLACE DROP ALTER ADD COLUMN RENAME TO PARTITIONED PARTITION FIELD WRITE ORDERED BRANCH TAG "
    "SHOW TABLES VIEWS NAMESPACES DESCRIBE HISTORY EXPLAIN ANALYZE CALL USE BEGIN COMMIT ROLLBACK "
    "FOR VERSION TIMESTAMP OF AND OR NOT NULL IN BETWEEN LIKE IS EXISTS CASE WHEN THEN ELSE END"
)
_NAME: Final = re.compile(r"[\w.]+")


class Words:
    """What a session's catalog has names for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def matching(self, begun: str, line: str = "") -> list[str]:
        """Words that begin as this one does: names first, words of SQL if no name does. Columns
        are those of tables that the line names."""
        names = {f"system.{name}" for name in PROCEDURES}
        with suppress(FrazilError):
            names |= self._names(begun, line)
        words = sorted(name for name in names if name.lower().startswith(begun.lower()))
        if begun and not words:
            words = [word for word in _KEYWORDS.split() if word.startswith(begun.upper())]
        return words

    def views(self) -> list[str]:
        """The names of the catalog's views; none where they cannot be listed."""
        with suppress(FrazilError):
            return self._session.catalog.list_views()
        return []

    def _names(self, begun: str, line: str) -> set[str]:
        catalog = self._session.catalog
        tables = catalog.list_tables()
        namespace = ".".join(self._session.names.namespace)
        short = {name.removeprefix(f"{namespace}."): name for name in tables} if namespace else {}
        known = {**{name: name for name in tables}, **short}
        names = {*known, *self.views(), *catalog.list_namespaces()}
        within = begun.rpartition(".")[0]
        for word in {within, *_NAME.findall(line)} & known.keys():
            columns = [field.name for field in catalog.load_table(known[word]).schema.fields]
            is_qualified = word == within
            names |= {f"{word}.{column}" if is_qualified else column for column in columns}
        return names
