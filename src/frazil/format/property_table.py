"""The table properties that Frazil reads, with the values each may have. One list for all of them:
`check_values` refuses a bad value when it is set, by name.

Properties that are not here are kept as they are; other engines may know them. Values that were
stored before are judged by what reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from frazil.errors import InvalidInput

_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueKind:
    """What a value may be, in words and as a test."""

    expected: str
    fits: Callable[[str], bool]


def _whole(least: int, most: int = _LARGEST) -> ValueKind:
    def fits(text: str) -> bool:
        is_number = text.isascii() and text.isdigit() and len(text) <= 19
        return is_number and least <= int(text) <= most

    if most != _LARGEST:
        return ValueKind(expected=f"a whole number from {least} to {most}", fits=fits)
    return ValueKind(expected=f"a whole number, {least} or more", fits=fits)


def _between(low: float, high: float, *, closed: bool) -> ValueKind:
    def fits(text: str) -> bool:
        try:
            value = float(text)
        except ValueError:
            return False
        return low < value < high or (closed and value == high)

    most = "at most" if closed else "below"
    return ValueKind(expected=f"a number above {low:g} and {most} {high:g}", fits=fits)


def _choice(*allowed: str) -> ValueKind:
    words = ", ".join(allowed[:-1]) + f" or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
    return ValueKind(expected=words, fits=lambda text: text.lower() in allowed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


_COUNT: Final = _whole(0)
_SIZE: Final = _whole(1)
_BOOLEAN: Final = _choice("true", "false")
_ISOLATION: Final = _choice("serializable", "snapshot")
_MODE: Final = _choice("copy-on-write", "merge-on-read")
_METRICS: Final = ValueKind(
    expected="none, counts, full or truncate(n)",
    fits=lambda text: bool(re.fullmatch(r"(?i)none|counts|full|truncate\([1-9]\d{0,9}\)", text)),
)
_LEVEL: Final = ValueKind(
    expected="a whole number", fits=lambda text: bool(re.fullmatch(r"-?\d{1,3}", text))
)

PROPERTIES: Final[Mapping[str, ValueKind]] = {
    "write.root.max-data-entries": _SIZE,
    "write.root.max-delete-entries": _SIZE,
    "write.root.target-bytes": _SIZE,
    "write.leaf.target-entries": _whole(1, (1 << 31) - 1),
    "write.leaf.max-dead-ratio": _between(0, 1, closed=True),
    "write.format-revision": _choice("2026-10", "1.12"),
    "write.metadata.compression-codec": _choice(
        "zstd", "snappy", "lz4", "gzip", "none", "uncompressed"
    ),
    "write.metadata.metrics.default": _METRICS,
    "write.metadata.metrics.column.": _METRICS,
    "write.metadata.metrics.max-inferred-column-defaults": _COUNT,
    "write.format.default": _choice("parquet"),
    "write.target-file-size-bytes": _SIZE,
    "write.delete.target-file-size-bytes": _SIZE,
    "write.parquet.compression-codec": _choice(
        "zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"
    ),
    "write.parquet.compression-level": _LEVEL,
    "write.parquet.row-group-size-bytes": _SIZE,
    "write.parquet.row-group-limit": _SIZE,
    "write.parquet.page-size-bytes": _SIZE,
    "write.parquet.page-row-limit": _SIZE,
    "write.parquet.dict-size-bytes": _SIZE,
    "write.parquet.bloom-filter-enabled.column.": _BOOLEAN,
    "write.parquet.bloom-filter-fpp.column.": _between(0, 1, closed=False),
    "write.parquet.bloom-filter-ndv.column.": _SIZE,
    "write.distribution-mode": _choice("none", "hash", "range"),
    "write.equality-deletes.enabled": _BOOLEAN,
    "read.parquet.verify-checksums": _BOOLEAN,
    "schema.name-mapping.default": ValueKind(expected="a name mapping as JSON", fits=_is_json),
    "commit.group": _BOOLEAN,
    "commit.retry.num-retries": _COUNT,
    "commit.retry.min-wait-ms": _COUNT,
    "commit.retry.max-wait-ms": _COUNT,
    "commit.retry.total-timeout-ms": _COUNT,
    "write.delete.isolation-level": _ISOLATION,
    "write.update.isolation-level": _ISOLATION,
    "write.merge.isolation-level": _ISOLATION,
    "write.overwrite.isolation-level": _ISOLATION,
    "history.expire.max-snapshot-age-ms": _COUNT,
    "history.expire.min-snapshots-to-keep": _SIZE,
    "history.expire.max-ref-age-ms": _COUNT,
    "write.metadata.json-every": _COUNT,
    "write.metadata.previous-versions-max": _COUNT,
    "write.metadata.delete-after-commit.enabled": _BOOLEAN,
    "publish.format-version": _choice("2", "3"),
    "serve.format-version": _choice("1", "2", "3"),
    "write.delete.mode": _MODE,
    "write.update.mode": _MODE,
    "write.merge.mode": _MODE,
    "write.spark.accept-any-schema": _BOOLEAN,
    "commit.manifest-merge.enabled": _BOOLEAN,
    "gc.enabled": _BOOLEAN,
}
"""By name; a name that ends with a dot stands for one property per column."""


def kind_of(name: str) -> ValueKind | None:
    """What the values of a property may be; None for properties that Frazil does not read."""
    found = PROPERTIES.get(name)
    if found is not None or ".column." not in name:
        return found
    start, dot, _ = name.partition(".column.")
    return PROPERTIES.get(start + dot)


def check_values(properties: Mapping[str, str]) -> None:
    """Reject invalid property values; all of them in one error."""
    problems = [
        f"property {name} is {value!r}; expected {kind.expected}"
        for name, value in properties.items()
        if (kind := kind_of(name)) is not None and not kind.fits(value)
    ]
    if problems:
        raise InvalidInput("\n".join(problems))
