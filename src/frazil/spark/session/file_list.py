"""A list of files that Spark's Parquet reader takes as it is: no listing, no request per file.

The list has the form of the log that Spark's streaming file sink keeps (`_spark_metadata`), which
Spark reads instead of listing a folder. Its `modificationTime` is ours to choose: every file gets a
number that comes back with each of its rows.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from frazil.storage import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

UNREADABLE_NAME = r"(^|/)[_.][^/]*$|:"
"""What `is_readable_name` refuses in a path below a folder."""
_BLOCK_BYTES = 128 * 1024 * 1024
_READ_OPTIONS = {
    "recursiveFileLookup": "true",  # without it the log is read and no file is
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


def read_files(
    spark: SparkSession,
    schema: StructType,
    *,
    paths: Sequence[str],
    sizes: Sequence[int],
    numbers: Sequence[int],
) -> DataFrame:
    """A frame over exactly these Parquet files, each with its size in bytes and its number."""
    folder = tempfile.mkdtemp(prefix="frazil-files-")
    try:
        _write(folder, _lines(addresses(spark, paths), sizes, numbers))
        frame = spark.read.schema(schema).options(**_READ_OPTIONS).parquet(f"file:{quote(folder)}")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if is_connect(spark):
        # A frame of Spark Connect is analysed again whenever it is used.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return frame


def is_readable_name(path: str) -> bool:
    """Whether Spark reads a file of this name: it skips hidden ones, and trips over colons."""
    name = path.rsplit("/", 1)[-1]
    return not name.startswith(("_", ".")) and ":" not in urlsplit(path).path


def _write(folder: str, lines: Iterable[str]) -> None:
    os.mkdir(os.path.join(folder, "_spark_metadata"))
    with open(os.path.join(folder, "_spark_metadata", "0"), "w", encoding="utf-8") as log:
        log.write("v1\n")
        log.writelines(lines)


def _lines(addresses: Iterable[str], sizes: Sequence[int], numbers: Sequence[int]) -> Iterable[str]:
    for address, size, number in zip(addresses, sizes, numbers, strict=True):
        yield (
            f'{{"path":{json.dumps(address)},"size":{size},"isDir":false,'
            f'"modificationTime":{number},"blockReplication":1,"blockSize":{_BLOCK_BYTES},'
            '"action":"add"}\n'
        )


def addresses(spark: SparkSession, paths: Iterable[str]) -> Iterable[str]:
    """Paths as Hadoop's URIs; `s3:` goes by the name Hadoop's own client has."""
    renames_s3 = spark.conf.get("spark.hadoop.fs.s3.impl", None) is None
    for path in paths:
        scheme, separator, rest = path.partition("://")
        if not separator or scheme == "file":
            yield f"file:{quote(local_path(path))}"
            continue
        if renames_s3 and scheme in ("s3", "s3n"):
            scheme = "s3a"
        yield f"{scheme}://{quote(rest)}"


def can_read(spark: SparkSession, path: str) -> bool:
    """Whether Spark's virtual machine has a client for the store of a path. A client of Spark
    Connect cannot know, and takes it for granted."""
    scheme = urlsplit(path).scheme
    if scheme in ("", "file") or is_connect(spark):
        return True
    hadoop = spark._jvm.org.apache.hadoop.fs.FileSystem
    address = next(iter(addresses(spark, [path])))
    try:
        hadoop.getFileSystemClass(urlsplit(address).scheme, spark._jsc.hadoopConfiguration())
    except Exception as error:
        if type(error).__name__ != "Py4JJavaError":
            raise
        return False
    return True


def is_connect(spark: Any) -> bool:
    """Whether the session is a client of Spark Connect, without a virtual machine at hand."""
    return ".connect." in type(spark).__module__
