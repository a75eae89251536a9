"""What a catalog looked like at a mark, so that a page can ask what changed since."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

from frazil.catalog.backend import TableVersion
from frazil.catalog.names import Identifier

_KEPT = 64


class Watch:
    """Remembers the versions of tables under the marks that were given out last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Mapping[Identifier, str]] = OrderedDict()
        self._lock = Lock()

    def mark(self, pulses: Sequence[TableVersion]) -> str:
        """A mark for what is there now; the same while nothing changes."""
        versions = {version.identifier: version.version for version in pulses}
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
        self, mark: str, pulses: Sequence[TableVersion]
    ) -> tuple[list[Identifier], list[Identifier]] | None:
        """Tables that are new or changed, and those that are gone; None for a mark of long ago."""
        with self._lock:
            before = self._seen.get(mark)
        if before is None:
            return None
        now = {version.identifier: version.version for version in pulses}
        changed = [name for name, version in now.items() if before.get(name) != version]
        return changed, [name for name in before if name not in now]
