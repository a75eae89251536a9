"""How data files are written, from table properties with Iceberg's names and defaults.

A value that cannot be used is refused here, before any file is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import pyarrow as pa

from frazil.errors import InvalidInput, Unsupported

TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
DELETE_TARGET_FILE_SIZE: Final = "write.delete.target-file-size-bytes"
DATA_PATH: Final = "write.data.path"
FORMAT: Final = "write.format.default"
COMPRESSION: Final = "write.parquet.compression-codec"
COMPRESSION_LEVEL: Final = "write.parquet.compression-level"
ROW_GROUP_BYTES: Final = "write.parquet.row-group-size-bytes"
ROW_GROUP_ROWS: Final = "write.parquet.row-group-limit"
PAGE_BYTES: Final = "write.parquet.page-size-bytes"
PAGE_ROWS: Final = "write.parquet.page-row-limit"
DICTIONARY_BYTES: Final = "write.parquet.dict-size-bytes"
BLOOM_ENABLED: Final = "write.parquet.bloom-filter-enabled.column."
BLOOM_FPP: Final = "write.parquet.bloom-filter-fpp.column."
BLOOM_NDV: Final = "write.parquet.bloom-filter-ndv.column."

_MB: Final = 1 << 20
_LEVELS: Final = ("gzip", "brotli", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Settings of one write."""

    target_file_bytes: int = 512 * _MB
    row_group_bytes: int = 128 * _MB
    row_group_rows: int = 1 << 20
    page_bytes: int = _MB
    page_rows: int = 20_000
    dictionary_bytes: int = 2 * _MB
    codec: str = "zstd"
    level: int | None = None
    bloom_filters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data_path: str | None = None
    buffer_bytes: int = 512 * _MB
    """Rows held in memory over all partitions; beyond it the largest one is written early."""
    max_open_files: int = 100

    @staticmethod
    def from_properties(
        properties: Mapping[str, str], *, target_file_bytes: int | None = None
    ) -> WriteOptions:
        """What the table properties ask for."""
        file_format = properties.get(FORMAT, "parquet").lower()
        if file_format != "parquet":
            raise Unsupported(
                f"{FORMAT} is '{file_format}'; data files are written as parquet only.",
                feature=f"writing {file_format}",
            )
        codec = _codec(properties)
        level = _number(properties, COMPRESSION_LEVEL, None, least=None)
        return WriteOptions(
            target_file_bytes=target_file_bytes or _whole(properties, TARGET_FILE_SIZE, 512 * _MB),
            row_group_bytes=_whole(properties, ROW_GROUP_BYTES, 128 * _MB),
            row_group_rows=_whole(properties, ROW_GROUP_ROWS, 1 << 20),
            page_bytes=_whole(properties, PAGE_BYTES, _MB),
            page_rows=_whole(properties, PAGE_ROWS, 20_000),
            dictionary_bytes=_whole(properties, DICTIONARY_BYTES, 2 * _MB),
            codec=codec,
            level=level if codec in _LEVELS else None,
            bloom_filters=_bloom_filters(properties),
            data_path=properties.get(DATA_PATH),
        )

    def writer_arguments(self) -> dict[str, Any]:
        """Arguments for pyarrow's ParquetWriter."""
        arguments: dict[str, Any] = {
            "compression": self.codec,
            "compression_level": self.level,
            "data_page_size": self.page_bytes,
            "dictionary_pagesize_limit": self.dictionary_bytes,
            "store_schema": False,
            "store_decimal_as_integer": True,
            "write_page_index": True,
            "write_page_checksum": True,
        }
        known = _known_arguments()
        if "max_rows_per_page" in known:  # older ones end pages by their bytes alone
            arguments["max_rows_per_page"] = self.page_rows
        if self.bloom_filters and "bloom_filter_options" not in known:
            raise Unsupported(
                f"pyarrow {pa.__version__} cannot write bloom filters; install a newer one or "
                f"remove the properties {BLOOM_ENABLED}…",
                feature="bloom filters",
            )
        if self.bloom_filters:
            arguments["bloom_filter_options"] = {
                name: dict(options) for name, options in self.bloom_filters.items()
            }
        return arguments


@cache
def _known_arguments() -> frozenset[str]:
    """What the installed pyarrow's Parquet writer can be told."""
    import inspect

    import pyarrow.parquet as pq

    return frozenset(inspect.signature(pq.write_table).parameters)


def _codec(properties: Mapping[str, str]) -> str:
    asked = properties.get(COMPRESSION, "zstd").lower()
    codec = "none" if asked == "uncompressed" else asked
    if codec != "none" and (codec not in _CODECS or not pa.Codec.is_available(codec)):
        known = ", ".join(["uncompressed", *_CODECS])
        raise InvalidInput(f"{COMPRESSION} is '{asked}'; expected one of {known}.")
    return codec


_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli")


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    filters: dict[str, dict[str, Any]] = {}
    for key, value in properties.items():
        if not key.startswith(BLOOM_ENABLED) or value.lower() != "true":
            continue
        column = key.removeprefix(BLOOM_ENABLED)
        options: dict[str, Any] = {}
        ndv = _number(properties, f"{BLOOM_NDV}{column}", None, least=1)
        if ndv is not None:
            options["ndv"] = ndv
        fpp = properties.get(f"{BLOOM_FPP}{column}")
        options["fpp"] = 0.01 if fpp is None else _probability(f"{BLOOM_FPP}{column}", fpp)
        filters[column] = options
    return filters


def _probability(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise InvalidInput(f"{key} is '{text}'; expected a number between 0 and 1.")
    return value


def _whole(properties: Mapping[str, str], key: str, default: int) -> int:
    found = _number(properties, key, default, least=1)
    return default if found is None else found


def _number(
    properties: Mapping[str, str], key: str, default: int | None, *, least: int | None
) -> int | None:
    text = properties.get(key)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or (least is not None and value < least):
        raise InvalidInput(f"{key} is '{text}'; expected a whole number.")
    return value
