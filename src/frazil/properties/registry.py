"""Every property that Frazil reads: its key, how its value is parsed, its default, its text.

The one list from which come the checks of values when they are set (`check_values`), the reading of
values everywhere (`Property.of`), completion on the command line, the explorer's list and the page
docs/reference/properties.md. Properties that are not here are kept as they are; other engines may
know them. A value that another engine stored is judged where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from frazil.errors import InvalidInput
from frazil.properties.property import (
    BOOLEAN,
    COUNT,
    FOLDER,
    LEVEL,
    MAPPING,
    METRICS,
    PER_COLUMN,
    SIZE,
    TEXT,
    Property,
    between,
    choice,
    optional,
    version,
    whole,
)

MAX_LEAF_ENTRIES: Final = 1 << 21
"""As many positions as a bitmap holds; `frazil.format.vectors.bitmap` itself would load numpy."""
FOREVER_MS: Final = (1 << 63) - 1
_MB: Final = 1 << 20
_ISOLATION: Final = choice("serializable", "snapshot")
_ROW_CHANGE_MODE: Final = choice("copy-on-write", "merge-on-read")

# The tree

ROOT_MAX_DATA_ENTRIES: Final = Property(
    "write.root.max-data-entries",
    SIZE,
    32,
    "number of data files in the root above which they move to a leaf; a commit that adds more "
    "writes them to leaves directly",
)
ROOT_MAX_DELETE_ENTRIES: Final = Property(
    "write.root.max-delete-entries", SIZE, 100, "the same for equality delete files"
)
ROOT_TARGET_BYTES: Final = Property(
    "write.root.target-bytes",
    SIZE,
    512 * 1024,
    "estimated size of the root's entries above which they move to a leaf",
)
LEAF_TARGET_ENTRIES: Final = Property(
    "write.leaf.target-entries",
    whole(1, MAX_LEAF_ENTRIES),
    20_000,
    "entries per leaf. Unless it is set, leaves that large commits and `rewrite_manifests` write "
    "have up to 320,000 in tables of more than 10 million files. See [Scale](../scale.md)",
)
LEAF_MAX_DEAD_RATIO: Final = Property(
    "write.leaf.max-dead-ratio",
    between(0, 1, closed=True),
    0.5,
    "share of dead entries above which a commit rewrites a leaf",
)
FORMAT_REVISION: Final = Property(
    "write.format-revision",
    choice("2026-10", "1.12"),
    "2026-10",
    "shape of the manifests written from now on: `2026-10`, or `1.12` for readers of Iceberg "
    "Java 1.12.0. See [the format](../format.md)",
)
METADATA_COMPRESSION: Final = Property(
    "write.metadata.compression-codec",
    optional(choice("zstd", "snappy", "lz4", "gzip", "none", "uncompressed")),
    None,
    "of roots and leaves: `zstd`, `snappy`, `lz4`, `gzip`, `none`; with `none`, long JSON is not "
    "compressed either",
    default_text="`zstd`; small roots `lz4`",
)

# Statistics

METRICS_DEFAULT: Final = Property(
    "write.metadata.metrics.default",
    optional(METRICS),
    None,
    "`none`, `counts`, `truncate(n)` or `full`",
    default_text="`truncate(16)`",
)
METRICS_COLUMN: Final = Property(
    "write.metadata.metrics.column.",
    optional(METRICS),
    None,
    "the same for one column",
    default_text="the default",
)
METRICS_MAX_INFERRED: Final = Property(
    "write.metadata.metrics.max-inferred-column-defaults",
    COUNT,
    100,
    "number of columns that get the default mode",
)

# Data files

FILE_FORMAT: Final = Property(
    "write.format.default", choice("parquet"), "parquet", "the only format that is written"
)
TARGET_FILE_SIZE: Final = Property(
    "write.target-file-size-bytes", SIZE, 512 * _MB, "size at which a new file begins"
)
DELETE_TARGET_FILE_SIZE: Final = Property(
    "write.delete.target-file-size-bytes", SIZE, 64 * _MB, "the same for equality delete files"
)
DATA_PATH: Final = Property(
    "write.data.path",
    optional(FOLDER),
    None,
    "folder of data files",
    default_text="`data` below the table",
)
FOLDER_STORAGE_PATH: Final = Property(
    "write.folder-storage.path",
    optional(FOLDER),
    None,
    "legacy data folder set by other writers; orphan removal treats it as part of the table",
)
OBJECT_STORAGE_PATH: Final = Property(
    "write.object-storage.path", optional(FOLDER), None, "the same"
)
COMPRESSION: Final = Property(
    "write.parquet.compression-codec",
    optional(choice("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")),
    None,
    "`zstd`, `snappy`, `gzip`, `lz4`, `brotli`, `uncompressed`",
    default_text="`zstd`; files of up to 64 kB of values `snappy`",
)
COMPRESSION_LEVEL: Final = Property(
    "write.parquet.compression-level",
    optional(LEVEL),
    None,
    "for `zstd`, `gzip` and `brotli`",
    default_text="the codec's",
)
ROW_GROUP_BYTES: Final = Property(
    "write.parquet.row-group-size-bytes",
    SIZE,
    128 * _MB,
    "bytes in memory at which a row group ends",
)
ROW_GROUP_ROWS: Final = Property(
    "write.parquet.row-group-limit", SIZE, 1 << 19, "rows at which a row group ends"
)
PAGE_BYTES: Final = Property(
    "write.parquet.page-size-bytes", SIZE, _MB, "bytes at which a page ends"
)
PAGE_ROWS: Final = Property(
    "write.parquet.page-row-limit", SIZE, 20_000, "rows at which a page ends"
)
DICTIONARY_BYTES: Final = Property(
    "write.parquet.dict-size-bytes",
    SIZE,
    2 * _MB,
    "size of a dictionary above which values are stored plainly",
)
BLOOM_ENABLED: Final = Property(
    "write.parquet.bloom-filter-enabled.column.",
    BOOLEAN,
    False,
    "write a Bloom filter for a column",
)
BLOOM_FPP: Final = Property(
    "write.parquet.bloom-filter-fpp.column.",
    between(0, 1, closed=False),
    0.01,
    "its rate of false positives",
)
BLOOM_NDV: Final = Property(
    "write.parquet.bloom-filter-ndv.column.",
    optional(SIZE),
    None,
    "its number of distinct values",
    default_text="estimated",
)
DISTRIBUTION_MODE: Final = Property(
    "write.distribution-mode",
    optional(choice("none", "hash", "range")),
    None,
    "how Spark places rows before writing: `none`, `hash`, `range`",
    default_text="`hash` if partitioned, else `none`",
)
DATA_PLANNING_MODE: Final = Property(
    "read.data-planning-mode",
    choice("auto", "local", "distributed"),
    "auto",
    "where Spark SQL reads the leaves of a plan: `local`, on the driver; `distributed`, on the "
    "executors; `auto`, on executors that have more cores than the driver when 128 MB of leaves "
    "or more come to each core of the driver",
)
ACCEPT_ANY_SCHEMA: Final = Property(
    "write.spark.accept-any-schema",
    BOOLEAN,
    False,
    "`true` lets Spark hand over any columns: they are matched by name, and `mergeSchema` may "
    "add some",
)
EQUALITY_DELETES_ENABLED: Final = Property(
    "write.equality-deletes.enabled",
    BOOLEAN,
    False,
    "deprecated; `true`: `add_equality_deletes` writes equality delete files, which the v4 text "
    "does not allow; `false`: it finds the rows and writes deletion vectors",
)
VERIFY_CHECKSUMS: Final = Property(
    "read.parquet.verify-checksums",
    BOOLEAN,
    True,
    "verify the checksums of data files when reading; a damaged file is an error instead of "
    "wrong rows. Files that DuckDB reads for SQL and row changes are verified as a whole "
    "beforehand, once per process: local files only, and up to 256 MB of a table per query "
    "unless its rows are written",
)
NAME_MAPPING: Final = Property(
    "schema.name-mapping.default",
    optional(MAPPING),
    None,
    "names for files without field ids; `add_files` sets it when needed",
)

# Commits

GROUP_COMMITS: Final = Property(
    "commit.group",
    BOOLEAN,
    True,
    "appends that reach a server together, or wait for one another in PostgreSQL, share a "
    "snapshot; `false` gives each its own; see [serve](../guides/serve.md#frazil-as-a-client)",
)
WAP_ENABLED: Final = Property(
    "write.wap.enabled",
    BOOLEAN,
    False,
    "writes of a Spark session with `spark.wap.branch` or `spark.wap.id` go to that branch, or "
    "are staged; see [Spark](../guides/spark.md)",
)
NUM_RETRIES: Final = Property("commit.retry.num-retries", COUNT, 100, "attempts after the first")
RETRY_MIN_WAIT_MS: Final = Property(
    "commit.retry.min-wait-ms",
    COUNT,
    2,
    "shortest wait before a retry without a place in the queue",
)
RETRY_MAX_WAIT_MS: Final = Property(
    "commit.retry.max-wait-ms",
    COUNT,
    20,
    "longest such wait; the wait is random and does not grow with the number of attempts",
)
RETRY_TOTAL_TIMEOUT_MS: Final = Property(
    "commit.retry.total-timeout-ms", COUNT, 1_800_000, "no further attempt starts after this time"
)
DELETE_ISOLATION: Final = Property(
    "write.delete.isolation-level",
    _ISOLATION,
    "serializable",
    "or `snapshot`; see [concurrency](../guides/concurrency.md#isolation)",
)
UPDATE_ISOLATION: Final = Property(
    "write.update.isolation-level", _ISOLATION, "serializable", "the same for updates"
)
MERGE_ISOLATION: Final = Property(
    "write.merge.isolation-level", _ISOLATION, "serializable", "the same for upserts and merges"
)
COLUMN_UPDATE_MODE: Final = Property(
    "write.column-update.mode",
    choice("rows", "columns", "auto"),
    "rows",
    "how updates write: new `rows`, `columns` in column files, or by file what is less (`auto`); "
    "see [Backfill a column](../guides/backfill.md)",
)
OVERWRITE_ISOLATION: Final = Property(
    "write.overwrite.isolation-level", _ISOLATION, "serializable", "the same for overwrites"
)

# History

MAX_SNAPSHOT_AGE_MS: Final = Property(
    "history.expire.max-snapshot-age-ms",
    COUNT,
    5 * 24 * 3600 * 1000,
    "five days; younger snapshots are kept",
)
MIN_SNAPSHOTS_TO_KEEP: Final = Property(
    "history.expire.min-snapshots-to-keep", SIZE, 1, "per branch"
)
MAX_REF_AGE_MS: Final = Property(
    "history.expire.max-ref-age-ms",
    COUNT,
    FOREVER_MS,
    "age at which branches (except `main`) and tags are removed",
    default_text="forever",
)
GC_ENABLED: Final = Property(
    "gc.enabled",
    BOOLEAN,
    True,
    "`false`: others use the files. Expiry deletes metadata only; orphan removal and purge are "
    "refused. Set on adopted tables",
)

# Metadata JSON

JSON_EVERY: Final = Property(
    "write.metadata.json-every",
    COUNT,
    100,
    "commits between two files; 1 writes one per commit, 0 none",
    default_text="100, or half of the history if that is more",
)
METADATA_PATH: Final = Property(
    "write.metadata.path",
    optional(FOLDER),
    None,
    "folder of the files",
    default_text="`metadata` below the table",
)
PREVIOUS_VERSIONS_MAX: Final = Property(
    "write.metadata.previous-versions-max", COUNT, 100, "earlier files listed in the metadata log"
)
DELETE_AFTER_COMMIT: Final = Property(
    "write.metadata.delete-after-commit.enabled",
    BOOLEAN,
    False,
    "delete files that are no longer in the log",
)

# Publishing

PUBLISH_FORMAT_VERSION: Final = Property(
    "publish.format-version",
    optional(version(2, 3)),
    None,
    "2 or 3: publish every commit on `main` in that version",
    default_text="off",
)
SERVE_FORMAT_VERSION: Final = Property(
    "serve.format-version",
    version(1, 2, 3),
    3,
    "1, 2 or 3: the format version that clients of `frazil serve` see",
)
MERGE_COLUMN_FILES: Final = Property(
    "serve.merge-column-files",
    BOOLEAN,
    False,
    "whether `frazil serve` merges column files into their data files, as its own commit, when a "
    "client loads the table; otherwise it refuses: format versions 1 to 3 have none",
)
DELETE_MODE: Final = Property(
    "write.delete.mode",
    _ROW_CHANGE_MODE,
    "merge-on-read",
    "how clients of `frazil serve` delete rows; Frazil itself always merges on read",
)
UPDATE_MODE: Final = Property(
    "write.update.mode", _ROW_CHANGE_MODE, "merge-on-read", "the same for updates"
)
MERGE_MODE: Final = Property(
    "write.merge.mode", _ROW_CHANGE_MODE, "merge-on-read", "the same for merges"
)
MANIFEST_MERGE_ENABLED: Final = Property(
    "commit.manifest-merge.enabled",
    BOOLEAN,
    False,
    "always `false` for clients of `frazil serve`: manifests stand for leaves",
)
SERVE_LOCATION: Final = Property(
    "serve.location",
    optional(FOLDER),
    None,
    "what clients of `frazil serve` see as the location, where they write new files; a folder "
    "that does not hold the table's metadata, as engines delete files there that they do not know",
    default_text="`clients`",
)

# Of a catalog

DECODE_MAX_BYTES: Final = Property(
    "read.decode.max-bytes",
    SIZE,
    1 << 30,
    "memory that one metadata file or deletion vector may take when decoded",
)
DECODE_MAX_RATIO: Final = Property(
    "read.decode.max-ratio",
    SIZE,
    500,
    "maximum ratio of decoded to stored size, checked above 64 MiB",
)
CACHE_MANIFEST_BYTES: Final = Property(
    "cache.manifest-bytes",
    COUNT,
    256 * _MB,
    "memory for decoded manifests, shared by the catalog's tables",
)
TLS_CA_FILE: Final = Property(
    "tls.ca-file",
    optional(TEXT),
    None,
    "file with the certificate of the authority that signed the one of `frazil serve`",
)

DATA_PATHS: Final = (DATA_PATH, FOLDER_STORAGE_PATH, OBJECT_STORAGE_PATH)
FOLDERS: Final = (METADATA_PATH, *DATA_PATHS)

SECTIONS: Final[Mapping[str, tuple[Property[Any], ...]]] = {
    "The tree": (
        ROOT_MAX_DATA_ENTRIES,
        ROOT_MAX_DELETE_ENTRIES,
        ROOT_TARGET_BYTES,
        LEAF_TARGET_ENTRIES,
        LEAF_MAX_DEAD_RATIO,
        FORMAT_REVISION,
        METADATA_COMPRESSION,
    ),
    "Statistics": (METRICS_DEFAULT, METRICS_COLUMN, METRICS_MAX_INFERRED),
    "Data files": (
        FILE_FORMAT,
        TARGET_FILE_SIZE,
        DELETE_TARGET_FILE_SIZE,
        *DATA_PATHS,
        COMPRESSION,
        COMPRESSION_LEVEL,
        ROW_GROUP_BYTES,
        ROW_GROUP_ROWS,
        PAGE_BYTES,
        PAGE_ROWS,
        DICTIONARY_BYTES,
        BLOOM_ENABLED,
        BLOOM_FPP,
        BLOOM_NDV,
        DISTRIBUTION_MODE,
        ACCEPT_ANY_SCHEMA,
        EQUALITY_DELETES_ENABLED,
        DATA_PLANNING_MODE,
        VERIFY_CHECKSUMS,
        NAME_MAPPING,
    ),
    "Commits": (
        GROUP_COMMITS,
        WAP_ENABLED,
        NUM_RETRIES,
        RETRY_MIN_WAIT_MS,
        RETRY_MAX_WAIT_MS,
        RETRY_TOTAL_TIMEOUT_MS,
        DELETE_ISOLATION,
        UPDATE_ISOLATION,
        COLUMN_UPDATE_MODE,
        MERGE_ISOLATION,
        OVERWRITE_ISOLATION,
    ),
    "History": (MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP, MAX_REF_AGE_MS, GC_ENABLED),
    "Metadata JSON": (JSON_EVERY, METADATA_PATH, PREVIOUS_VERSIONS_MAX, DELETE_AFTER_COMMIT),
    "Publishing": (
        PUBLISH_FORMAT_VERSION,
        SERVE_FORMAT_VERSION,
        MERGE_COLUMN_FILES,
        DELETE_MODE,
        UPDATE_MODE,
        MERGE_MODE,
        MANIFEST_MERGE_ENABLED,
        SERVE_LOCATION,
    ),
}
"""Properties of tables, by section of the reference page."""

OF_CATALOGS: Final[tuple[Property[Any], ...]] = (
    DECODE_MAX_BYTES,
    DECODE_MAX_RATIO,
    CACHE_MANIFEST_BYTES,
    TLS_CA_FILE,
)

OF_TABLES: Final[Mapping[str, Property[Any]]] = {
    setting.key: setting for section in SECTIONS.values() for setting in section
}


def table_property(key: str) -> Property[Any] | None:
    """The property of a key; None for keys that Frazil does not read."""
    start, dot, column = key.partition(PER_COLUMN)
    family = OF_TABLES.get(start + dot) if column else None
    return OF_TABLES.get(key) if family is None else family.for_column(column)


def without_empty(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties but those whose value is empty and cannot be: clients such as Trino send one for
    what was not given."""
    declared = {key: table_property(key) for key, value in properties.items() if not value}
    empty = {
        key
        for key, declaration in declared.items()
        if declaration is not None and not declaration.accepts("")
    }
    return {key: value for key, value in properties.items() if key not in empty}


def near_misses(keys: Iterable[str]) -> tuple[str, ...]:
    """A note for each key that Frazil does not read but whose name is almost one that it does."""
    unknown = [key for key in keys if table_property(key) is None]
    if not unknown:
        return ()
    from difflib import get_close_matches

    near = {key: get_close_matches(key, OF_TABLES, n=1, cutoff=0.9) for key in unknown}
    return tuple(
        f"{key} is not a property that Frazil reads. Did you mean {names[0]}?"
        for key, names in near.items()
        if names
    )


def check_values(properties: Mapping[str, str]) -> None:
    """Reject invalid property values; all of them in one error."""
    problems = [
        setting.problem(value)
        for key, value in properties.items()
        if (setting := table_property(key)) is not None and not setting.accepts(value)
    ]
    if problems:
        raise InvalidInput("\n".join(problems))
