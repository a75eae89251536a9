"""How large a file may become in memory: one policy for every decoder.

A few bytes can stand for gigabytes: compressed blocks, runs of a bitmap, counts that nothing backs.
A decoder asks here before it allocates memory. What a file says of its own size is never believed
beyond `Limits`; going past them is a `FormatError`, and no memory of that size is asked for. The
limits are options of `connect`, and travel with the storage that read the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from frazil.errors import FormatError, Unsupported
from frazil.properties.registry import DECODE_MAX_BYTES, DECODE_MAX_RATIO
from frazil.value_classes import frozen

if TYPE_CHECKING:
    import bz2
    import lzma
    import zlib

CODECS: Final = ("bzip2", "deflate", "gzip", "lz4", "null", "snappy", "xz", "zstandard")

_SMALL: Final = 64 << 20
"""Up to this size, the compression ratio is not checked."""
_WINDOW: Final = 128 << 20
"""What a decompressor may keep for itself."""
_POSITION_BYTES: Final = 8


@frozen
class Limits:
    """What one metadata file, block or deletion vector may become."""

    max_bytes: int = DECODE_MAX_BYTES.default
    max_ratio: int = DECODE_MAX_RATIO.default

    @staticmethod
    def of(properties: Mapping[str, str]) -> Limits:
        """The limits that properties ask for."""
        return Limits(
            max_bytes=DECODE_MAX_BYTES.of(properties), max_ratio=DECODE_MAX_RATIO.of(properties)
        )

    def allowed(self, stored: int) -> int:
        """How many bytes may come out of `stored` ones."""
        return min(self.max_bytes, max(_SMALL, stored * self.max_ratio))

    def check(self, decoded: int, *, stored: int, path: str | None = None) -> None:
        """Refuse bytes in memory that are more than `stored` ones may become."""
        if decoded > self.allowed(stored):
            raise self.refusal(decoded, stored=stored, path=path)

    def check_positions(self, count: int) -> None:
        """Refuse more positions than fit. Runs are dense by nature: no ratio is asked for."""
        if count * _POSITION_BYTES > self.max_bytes:
            raise FormatError(
                f"holds {count:,} positions, more than {self.max_bytes:,} bytes of them; "
                f"connect with a larger {DECODE_MAX_BYTES.key} if that is intended"
            )

    def refusal(self, decoded: int | None, *, stored: int, path: str | None = None) -> FormatError:
        """The error that says what a file would have become."""
        allowed = self.allowed(stored)
        size = f"more than {allowed:,}" if decoded is None else f"{decoded:,}"
        limit = DECODE_MAX_BYTES if allowed == self.max_bytes else DECODE_MAX_RATIO
        return FormatError(
            f"{stored:,} bytes would become {size} in memory, more than a file may take; "
            f"connect with a larger {limit.key} if that is intended",
            path=path,
        )


DEFAULT: Final = Limits()


def decompress(
    data: bytes, codec: str, *, limits: Limits = DEFAULT, path: str | None = None
) -> bytes:
    """The bytes that were compressed; refused when they are more than the limits allow."""
    import lzma
    import zlib

    max_bytes = limits.allowed(len(data))
    try:
        decompressed = _decompressed(data, codec, max_bytes)
    except (ValueError, OSError, EOFError, IndexError, zlib.error, lzma.LZMAError) as error:
        raise _broken(codec, error, path) from error
    if decompressed is None:
        raise limits.refusal(None, stored=len(data), path=path)
    return decompressed


def _decompressed(data: bytes, codec: str, max_bytes: int) -> bytes | None:
    """The plain bytes, or None when they are more than `max_bytes`."""
    import bz2
    import lzma
    import zlib

    match codec:
        case "null":
            return data
        case "deflate":
            return _streamed(zlib.decompressobj(-15), data, max_bytes)
        case "gzip":
            return _gzip(data, max_bytes)
        case "bzip2":
            return _streamed(bz2.BZ2Decompressor(), data, max_bytes)
        case "xz":
            return _streamed(lzma.LZMADecompressor(memlimit=_WINDOW), data, max_bytes)
        case "zstandard":
            return _zstandard(data, max_bytes)
        case "snappy":
            return _snappy(data, max_bytes)
        case "lz4":
            return _lz4(data, max_bytes)
    raise Unsupported(
        f"unknown codec {codec!r}; expected one of {', '.join(CODECS)}", feature="codec"
    )


def _streamed(
    machine: zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor,
    data: bytes,
    max_bytes: int,
) -> bytes | None:
    decompressed = machine.decompress(data, max_bytes + 1)
    if len(decompressed) > max_bytes:
        return None
    if not machine.eof:
        raise EOFError("it is cut short")
    return decompressed


def _gzip(data: bytes, max_bytes: int) -> bytes | None:
    parts: list[bytes] = []
    import zlib

    while data:
        machine = zlib.decompressobj(31)
        decompressed = _streamed(machine, data, max_bytes)
        if decompressed is None:
            return None
        parts.append(decompressed)
        max_bytes -= len(decompressed)
        data = machine.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _zstandard(data: bytes, max_bytes: int) -> bytes | None:
    import zstandard

    try:
        machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        parts: list[bytes] = []
        with machine.stream_reader(data, read_across_frames=True) as stream:
            while part := stream.read(min(max_bytes + 1, 1 << 20)):
                parts.append(part)
                max_bytes -= len(part)
                if max_bytes < 0:
                    return None
    except zstandard.ZstdError as error:
        raise ValueError(error) from error
    return b"".join(parts)


def _snappy(data: bytes, max_bytes: int) -> bytes | None:
    """Snappy says first how much it holds: that much is asked for only when it is allowed."""
    import pyarrow as pa

    size = shift = at = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
        if shift > 28:
            raise ValueError("its length takes more than five bytes")
    if size > max_bytes:
        return None
    try:
        return bytes(pa.Codec("snappy").decompress(data, size, asbytes=True))
    except pa.ArrowException as error:
        raise ValueError(error) from error


def _lz4(data: bytes, max_bytes: int) -> bytes | None:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
            decompressed = bytes(stream.read(max_bytes + 1))
    except pa.ArrowException as error:
        raise ValueError(error) from error
    return None if len(decompressed) > max_bytes else decompressed


def _broken(codec: str, error: Exception, path: str | None) -> FormatError:
    return FormatError(f"its {codec} data is cut short or corrupt: {error}", path=path)
