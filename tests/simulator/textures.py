"""Arrays with content, and textures and surfaces of them, on a machine whose kernels compute."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, Final

from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import TO_DEVICE, TO_HOST
from tests.simulator.test_arrays import FLOATS, Extent, Format

ARRAY, LINEAR, PITCHED = 0, 2, 3
SURFACE: Final = 2
"""A flag of arrays whose texels kernels write."""
WORDS: Final = Format((32, 0, 0, 0), 1)
_SIZE: Final = ctypes.c_size_t


def array(given: Checked, rows: Sequence[Sequence[float]], format_: Format = FLOATS, flags: int = SURFACE) -> int:
    """Return an array with rows of floats or words."""
    width, height = len(rows[0]), len(rows)
    bits = sum(format_.bits) // 8
    made = int(given.client.make("MallocArray", ctypes.byref(format_), _SIZE(width * 4 // bits), _SIZE(height), flags))
    letter = "f" if format_.kind == FLOATS.kind else "I"
    content = struct.pack(f"<{width * height}{letter}", *(each for row in rows for each in row))
    sizes = (_SIZE(4 * width), _SIZE(4 * width), _SIZE(height))
    given.client.ok("Memcpy2DToArray", made, _SIZE(0), _SIZE(0), content, *sizes, TO_DEVICE)
    return made


def rows_of(given: Checked, array_: int, width: int, height: int) -> list[tuple[int, ...]]:
    """Return the words of an array."""
    back = ctypes.create_string_buffer(4 * width * height)
    sizes = (_SIZE(0), _SIZE(0), _SIZE(4 * width), _SIZE(height))
    given.client.ok("Memcpy2DFromArray", back, _SIZE(4 * width), array_, *sizes, TO_HOST)
    return [struct.unpack_from(f"<{width}I", back.raw, 4 * width * row) for row in range(height)]


def layered(given: Checked, layers: Sequence[float], flags: int) -> int:
    """Return an array with a texel in each layer."""
    extent = Extent(1, 1, len(layers))
    made = int(given.client.make("Malloc3DArray", ctypes.byref(FLOATS), extent, flags | SURFACE))
    address = ctypes.c_uint64(made)
    content = struct.pack(f"<{len(layers)}f", *layers)
    given.client.ok("Memcpy", address, content, len(content), TO_DEVICE)
    return made


def resource(kind: int, named: int, format_: Format = FLOATS, sizes: Sequence[int] = (0, 0, 0)) -> Any:
    """Return what names an array or memory: in bytes, or by width, height and pitch."""
    packed = struct.pack("<iiQ5iiQQQ", kind, 0, named, *format_.bits, format_.kind, 0, *sizes)
    return ctypes.create_string_buffer(packed, 64)


def view(format_: int, first_layer: int = 0, last_layer: int = 0) -> Any:
    """Return what reads texels in another format."""
    return ctypes.create_string_buffer(struct.pack("<iiQQQ4I", format_, 0, 1, 1, 0, 0, 0, first_layer, last_layer), 128)


def texture(
    given: Checked, named: Any, address: int = 1, filters: int = 0, read: int = 0, normalized: int = 0, seen: Any = None
) -> int:
    """Return a texture object."""
    description = struct.pack("<6i4fi", *[address] * 3, filters, read, 0, 0, 0, 0, 0, normalized)
    made = given.client.make("CreateTextureObject", named, ctypes.create_string_buffer(description, 72), seen)
    return int(made)


def surface(given: Checked, array_: int) -> int:
    """Return a surface object of an array."""
    return int(given.client.make("CreateSurfaceObject", resource(ARRAY, array_)))
