"""How large a file may become in memory: one policy for every decoder.

A few bytes can stand for gigabytes: compressed blocks, runs of a bitmap, counts that nothing backs.
A decoder asks here before it allocates memory. What a file says of its own size is never believed
beyond
`Limits`; going past them is a `FormatError`, and no memory of that size is asked for. The limits
are options of `connect`, and travel with the storage that read the file.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from frazil.errors import FormatError, InvalidInput, Unsupported

MAX_BYTES: Final = "read.decode.max-bytes"
MAX_RATIO: Final = "read.decode.max-ratio"
CODECS: Final = ("bzip2", "deflate", "gzip", "lz4", "null", "snappy", "xz", "zstandard")

_SMALL: Final = 64 << 20
"""Up to this size, the compression ratio is not checked."""
_WINDOW: Final = 128 << 20
"""What a decompressor may keep for itself."""
_POSITION_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one metadata file, block or deletion vector may become."""

    max_bytes: int = 1 << 30
    max_ratio: int = 500

    @staticmethod
    def of(properties: Mapping[str, str]) -> Limits:
        """The limits that properties ask for."""
        given: dict[str, int] = {}
        for name, key in (("max_bytes", MAX_BYTES), ("max_ratio", MAX_RATIO)):
            text = properties.get(key)
            if text is None:
                continue
            if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text)):
                raise InvalidInput(f"{key} is {text!r}; expected a whole number above 0")
            given[name] = int(text)
        return Limits(**given)

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
                f"connect with a larger {MAX_BYTES} if that is intended"
            )

    def refusal(self, decoded: int | None, *, stored: int, path: str | None = None) -> FormatError:
        """The error that says what a file would have become."""
        allowed = self.allowed(stored)
        size = f"more than {allowed:,}" if decoded is None else f"{decoded:,}"
        key = MAX_BYTES if allowed == self.max_bytes else MAX_RATIO
        return FormatError(
            f"{stored:,} bytes would become {size} in memory, more than a file may take; "
            f"connect with a larger {key} if that is intended",
            path=path,
        )


DEFAULT: Final = Limits()


def decompress(
    data: bytes, codec: str, *, limits: Limits = DEFAULT, path: str | None = None
) -> bytes:
    """The bytes that were compressed; refused when they are more than the limits allow."""
    most = limits.allowed(len(data))
    try:
        plain = _decompressed(data, codec, most)
    except (ValueError, OSError, EOFError, IndexError, zlib.error, lzma.LZMAError) as error:
        raise _broken(codec, error, path) from error
    if plain is None:
        raise limits.refusal(None, stored=len(data), path=path)
    return plain


def _decompressed(data: bytes, codec: str, most: int) -> bytes | None:
    """The plain bytes, or None when they are more than `most`."""
    match codec:
        case "null":
            return data
        case "deflate":
            return _streamed(zlib.decompressobj(-15), data, most)
        case "gzip":
            return _gzip(data, most)
        case "bzip2":
            return _streamed(bz2.BZ2Decompressor(), data, most)
        case "xz":
            return _streamed(lzma.LZMADecompressor(memlimit=_WINDOW), data, most)
        case "zstandard":
            return _zstandard(data, most)
        case "snappy":
            return _snappy(data, most)
        case "lz4":
            return _lz4(data, most)
    raise Unsupported(
        f"codec {codec!r} is not known; expected one of {', '.join(CODECS)}", feature="codec"
    )


def _streamed(
    machine: zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes, most: int
) -> bytes | None:
    plain = machine.decompress(data, most + 1)
    if len(plain) > most:
        return None
    if not machine.eof:
        raise EOFError("it is cut short")
    return plain


def _gzip(data: bytes, most: int) -> bytes | None:
    parts: list[bytes] = []
    while data:
        machine = zlib.decompressobj(31)
        plain = _streamed(machine, data, most)
        if plain is None:
            return None
        parts.append(plain)
        most -= len(plain)
        data = machine.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _zstandard(data: bytes, most: int) -> bytes | None:
    import zstandard

    try:
        machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        parts: list[bytes] = []
        with machine.stream_reader(data, read_across_frames=True) as stream:
            while part := stream.read(min(most + 1, 1 << 20)):
                parts.append(part)
                most -= len(part)
                if most < 0:
                    return None
    except zstandard.ZstdError as error:
        raise ValueError(error) from error
    return b"".join(parts)


def _snappy(data: bytes, most: int) -> bytes | None:
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
    if size > most:
        return None
    try:
        return bytes(pa.Codec("snappy").decompress(data, size, asbytes=True))
    except pa.ArrowException as error:
        raise ValueError(error) from error


def _lz4(data: bytes, most: int) -> bytes | None:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
            plain = bytes(stream.read(most + 1))
    except pa.ArrowException as error:
        raise ValueError(error) from error
    return None if len(plain) > most else plain


def _broken(codec: str, error: Exception, path: str | None) -> FormatError:
    return FormatError(f"its {codec} data is cut short or corrupt: {error}", path=path)
