"""Textures for kernels of tests: an array of NumPy, and how it is read. The runtime's own code fetches from them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from tests.kernels import executor

WRAP, CLAMP, MIRROR, BORDER = range(4)
_KINDS: Final = {"i": 0, "u": 1, "f": 2}


class _Image(ctypes.Structure):
    _fields_ = (
        ("hidden_address", ctypes.c_uint64),
        ("memory", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("slice", ctypes.c_size_t),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("layers", ctypes.c_uint32),
        ("channels", ctypes.c_uint),
        ("channel_bytes", ctypes.c_uint),
        ("kind", ctypes.c_int),
        ("is_linear", ctypes.c_bool),
    )


class _Sampler(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_int * 3),
        ("filters", ctypes.c_bool),
        ("scales", ctypes.c_bool),
        ("is_srgb", ctypes.c_bool),
        ("normalized", ctypes.c_bool),
        ("border", ctypes.c_float * 4),
    )


@dataclass(frozen=True)
class Texture:
    """One texture. The last axis of the content has the channels, the one before it is the width."""

    content: np.ndarray[Any, Any]
    address: int = CLAMP
    filters: bool = False
    scales: bool = False
    is_srgb: bool = False
    normalized: bool = False
    border: tuple[float, float, float, float] = (0, 0, 0, 0)
    layered: bool = False
    linear: bool = False

    @property
    def handle(self) -> int:
        """Return a number that a kernel of a test names it by."""
        _known[id(self)] = self
        return id(self)

    def image(self) -> _Image:
        """Return where its texels lie."""
        content = self.content
        sizes = [1] * (4 - content.ndim) + list(content.shape[:-1])
        pitch = sizes[2] * content.shape[-1] * content.itemsize
        return _Image(
            hidden_address=~content.ctypes.data & (1 << 64) - 1,
            pitch=pitch,
            slice=pitch * sizes[1],
            width=sizes[2],
            height=sizes[1],
            depth=1 if self.layered else sizes[0],
            layers=sizes[0] if self.layered else 0,
            channels=content.shape[-1],
            channel_bytes=content.itemsize,
            kind=_KINDS[content.dtype.kind],
            is_linear=self.linear,
        )

    def sampler(self) -> _Sampler:
        """Return how they are read."""
        switches = (self.filters, self.scales, self.is_srgb, self.normalized)
        return _Sampler((ctypes.c_int * 3)(*[self.address] * 3), *switches, (ctypes.c_float * 4)(*self.border))


_known: Final[dict[int, Texture]] = {}
surface_calls: Final[list[tuple[int, bytes, int]]] = []
"""What kernels asked of surfaces: the handle, the area with coordinates and content, and the word of the operation."""


def _place(judge: int, address: int, bytes_: int, writes: bool) -> int:
    return address


def _fetch(context: int, handle: int, area: int, word: int, site: int, thread: int) -> None:
    texture = _known[handle]
    judge = ctypes.c_void_p(ctypes.cast(_JUDGE, ctypes.c_void_p).value)
    image, sampler = texture.image(), texture.sampler()
    executor.find_function("texture_sample")(
        ctypes.byref(image), ctypes.byref(sampler), word, ctypes.c_void_p(area), ctypes.byref(judge)
    )


def _surface(context: int, handle: int, area: int, word: int, site: int, thread: int) -> None:
    surface_calls.append((handle, ctypes.string_at(area, 64), word))
    ctypes.memmove(area + 32, bytes(range(1, 33)), 32)


def _query(context: int, handle: int, answer: int, query: int, site: int, thread: int) -> None:
    ctypes.c_uint32.from_address(answer).value = 100 + query


def _kind(handle: int) -> int:
    return int(handle in _known)


_JUDGE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_bool)(
    _place
)
_USE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, *[ctypes.c_uint32] * 3)
executor.add_functions(
    {
        "quiesce_kernel_texture": _USE(_fetch),
        "quiesce_kernel_surface": _USE(_surface),
        "quiesce_kernel_texture_query": _USE(_query),
        "quiesce_kernel_texture_kind": ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64)(_kind),
    }
)
