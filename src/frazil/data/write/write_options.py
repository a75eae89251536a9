"""How data files are written, from table properties with Iceberg's names and defaults.

A value that cannot be used is refused here, before any file is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from frazil.arrow_parquet import accepts
from frazil.errors import InvalidInput, Unsupported
from frazil.properties.registry import (
    BLOOM_ENABLED,
    BLOOM_FPP,
    BLOOM_NDV,
    COMPRESSION,
    COMPRESSION_LEVEL,
    DATA_PATH,
    DICTIONARY_BYTES,
    FILE_FORMAT,
    PAGE_BYTES,
    PAGE_ROWS,
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    TARGET_FILE_SIZE,
)
from frazil.value_classes import dataclass, field

_MB: Final = 1 << 20
_LEVELS: Final = ("gzip", "brotli", "zstd")
_SMALL_BYTES: Final = 1 << 16
"""Of values in memory. Up to here, to set zstd up for every page takes longer than all the rest,
for writers and for readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Settings of one write."""

    target_file_bytes: int = TARGET_FILE_SIZE.default
    row_group_bytes: int = ROW_GROUP_BYTES.default
    row_group_rows: int = ROW_GROUP_ROWS.default
    page_bytes: int = PAGE_BYTES.default
    page_rows: int = PAGE_ROWS.default
    dictionary_bytes: int = DICTIONARY_BYTES.default
    codec: str | None = COMPRESSION.default
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
        if not FILE_FORMAT.accepts(properties.get(FILE_FORMAT.key, FILE_FORMAT.default)):
            file_format = properties[FILE_FORMAT.key].lower()
            raise Unsupported(
                f"{FILE_FORMAT.key} is '{file_format}'; data files are written as parquet only.",
                feature=f"writing {file_format}",
            )
        codec = _codec(properties)
        level = COMPRESSION_LEVEL.of(properties)
        return WriteOptions(
            target_file_bytes=target_file_bytes or TARGET_FILE_SIZE.of(properties),
            row_group_bytes=ROW_GROUP_BYTES.of(properties),
            row_group_rows=ROW_GROUP_ROWS.of(properties),
            page_bytes=PAGE_BYTES.of(properties),
            page_rows=PAGE_ROWS.of(properties),
            dictionary_bytes=DICTIONARY_BYTES.of(properties),
            codec=codec,
            level=level if codec is None or codec in _LEVELS else None,
            bloom_filters=_bloom_filters(properties),
            data_path=DATA_PATH.of(properties),
        )

    def writer_arguments(self, first_bytes: int) -> dict[str, Any]:
        """Arguments for pyarrow's ParquetWriter, for a file whose first rows have so many bytes."""
        arguments: dict[str, Any] = {
            "compression": self._codec_of(first_bytes),
            "compression_level": self.level,
            "data_page_size": self.page_bytes,
            "dictionary_pagesize_limit": self.dictionary_bytes,
            "store_schema": False,
            "store_decimal_as_integer": True,
            "write_page_index": True,
            "write_page_checksum": True,
        }
        if accepts("max_rows_per_page"):  # older ones end pages by their bytes alone
            arguments["max_rows_per_page"] = self.page_rows
        if self.bloom_filters and not accepts("bloom_filter_options"):
            raise Unsupported(
                f"pyarrow {pa.__version__} cannot write bloom filters; install a newer one or "
                f"remove the properties {BLOOM_ENABLED.key}…",
                feature="bloom filters",
            )
        if self.bloom_filters:
            arguments["bloom_filter_options"] = {
                name: dict(options) for name, options in self.bloom_filters.items()
            }
        return arguments

    def _codec_of(self, first_bytes: int) -> str:
        if self.codec is not None:
            return self.codec
        return "zstd" if self.level is not None or first_bytes > _SMALL_BYTES else "snappy"


def _codec(properties: Mapping[str, str]) -> str | None:
    codec = COMPRESSION.of(properties)
    if codec is None:
        return None
    if codec == "uncompressed":
        return "none"
    if not pa.Codec.is_available(codec):
        raise InvalidInput(f"{COMPRESSION.key} is {codec!r}; this pyarrow was built without it")
    return codec


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    filters: dict[str, dict[str, Any]] = {}
    for column in BLOOM_ENABLED.columns(properties):
        if not BLOOM_ENABLED.for_column(column).lenient(properties, otherwise=False):
            continue
        ndv = BLOOM_NDV.for_column(column).of(properties)
        fpp = BLOOM_FPP.for_column(column).of(properties)
        filters[column] = {"fpp": fpp} if ndv is None else {"ndv": ndv, "fpp": fpp}
    return filters
