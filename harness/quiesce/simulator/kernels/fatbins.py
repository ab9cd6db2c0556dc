"""The text of a module out of a fatbin: nvcc compresses it with LZ4, and since CUDA 12.8 with Zstandard where asked."""

from __future__ import annotations

from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.protocol import Packing

_BYTES_MAX: Final = 1 << 28
"""The largest module that was met has 25 MB of text."""
_LZ4_RATIO_MAX: Final = 255
"""A byte of an LZ4 block stands for as many at most (lz4_Block_format.md)."""


def unpack(content: bytes, packing: Packing, plain_bytes: int) -> str:
    """Return the text of a module. Raises RefusedKernel where it can't be unpacked."""
    if packing is not Packing.PLAIN and plain_bytes > _BYTES_MAX:
        raise RefusedKernel(f"its PTX would have {plain_bytes:,} bytes")
    unpacked = {Packing.PLAIN: _plain, Packing.LZ4: _unpack_lz4, Packing.ZSTD: _unpack_zstandard}[packing]
    return unpacked(content, plain_bytes).rstrip(b"\0").decode("latin-1")


def _plain(content: bytes, _: int) -> bytes:
    return content


def _unpack_lz4(content: bytes, plain_bytes: int) -> bytes:
    try:
        from lz4 import block
    except ImportError:
        raise RefusedKernel("its PTX is compressed; run pip install lz4") from None
    if plain_bytes > _LZ4_RATIO_MAX * len(content):
        raise RefusedKernel("its compressed PTX is damaged")
    try:
        return bytes(block.decompress(content, uncompressed_size=plain_bytes))
    except block.LZ4BlockError:
        raise RefusedKernel("its compressed PTX is damaged") from None


def _unpack_zstandard(content: bytes, plain_bytes: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise RefusedKernel("its PTX is compressed; run pip install zstandard") from None
    try:
        with zstandard.ZstdDecompressor(max_window_size=_BYTES_MAX).stream_reader(content) as reader:
            plain = reader.read(plain_bytes + 1)  # a frame may say that it is longer, or not say it
    except zstandard.ZstdError:
        raise RefusedKernel("its compressed PTX is damaged") from None
    if len(plain) != plain_bytes:
        raise RefusedKernel("its compressed PTX is damaged")
    return plain
