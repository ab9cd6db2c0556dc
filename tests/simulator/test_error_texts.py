"""Names and texts of errors are those that the vendors' libraries answer.

CUDA's runtime answers without a GPU: where a wheel of it is installed (``nvidia-cuda-runtime``,
``nvidia-cuda-runtime-cu12``, ``-cu11``), or QUIESCE_VENDOR_LIBRARIES names its file, all of them are compared.
"""

from __future__ import annotations

import ctypes
import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.build import build_library

LAST: Final = 10_000
UNRECOGNIZED: Final = b"unrecognized error code"
REWORDED_IN_CUDA_12: Final = 27


class Texts:
    """A library's functions for the names and texts of errors."""

    def __init__(self, path: Path | str, prefix: str) -> None:
        library = ctypes.CDLL(str(path))
        self.name, self.text = (getattr(library, f"{prefix}GetError{what}") for what in ("Name", "String"))
        self.name.restype = self.text.restype = ctypes.c_char_p


def installed() -> Iterator[Path]:
    yield from map(Path, filter(None, os.environ.get("QUIESCE_VENDOR_LIBRARIES", "").split(":")))
    yield from (Path(sysconfig.get_paths()["purelib"]) / "nvidia").glob("*/lib/libcudart.so.*")


def test_cudas_are_those_of_its_library(library: str) -> None:
    found = list(installed())
    if not found:
        pytest.skip("no CUDA runtime is installed: pip install nvidia-cuda-runtime, or set QUIESCE_VENDOR_LIBRARIES")
    ours = Texts(library, "cuda")
    for path in found:
        theirs, old = Texts(path, "cuda"), path.name == "libcudart.so.11.0"
        known = [number for number in range(-1, LAST + 1) if theirs.name(number) != UNRECOGNIZED]
        assert len(known) >= 125, path
        assert {number: ours.name(number) for number in known} == {number: theirs.name(number) for number in known}
        known = [number for number in known if not (old and number == REWORDED_IN_CUDA_12)]
        assert {number: ours.text(number) for number in known} == {number: theirs.text(number) for number in known}
        assert theirs.text(123456) == ours.text(123456) == UNRECOGNIZED


@pytest.mark.usefixtures("library")
def test_each_number_has_its_own_name() -> None:
    for prefix, count in (("cuda", 139), ("hip", 74)):
        texts = Texts(build_library(), prefix)
        named = {number: texts.name(number) for number in range(-1, LAST + 1)}
        known = {n: name for n, name in named.items() if name not in (UNRECOGNIZED, b"hipErrorUnknown") or n == 999}
        assert (len(known), len(set(known.values()))) == (count, count)
        assert all(
            re.fullmatch(rf"{prefix}(Success|Error\w+|ApiFailureBase)", name.decode()) for name in known.values()
        )
        assert all(texts.text(number) not in (None, b"", UNRECOGNIZED) for number in known)


@pytest.mark.parametrize(
    ("number", "name", "text"),
    [
        (1, b"hipErrorInvalidValue", b"invalid argument"),
        (100, b"hipErrorNoDevice", b"no ROCm-capable device is detected"),
        (1052, b"hipErrorRuntimeMemory", b"runtime memory call returned error"),
        (716, b"hipErrorUnknown", b"unknown error"),
        (123456, b"hipErrorUnknown", b"unknown error"),
    ],
)
def test_hips_are_those_of_its_source(library: str, number: int, name: bytes, text: bytes) -> None:
    """``hip_error.cpp`` of ROCm/clr, which takes what it does not know for the unknown error."""
    texts = Texts(library, "hip")
    assert (texts.name(number), texts.text(number)) == (name, text)


def test_the_driver_names_the_errors_that_it_knows(library: str) -> None:
    driver, runtime = ctypes.CDLL(library), Texts(library, "cuda")
    known, place = {}, ctypes.c_char_p()
    for number in range(LAST):
        if driver.cuGetErrorName(number, ctypes.byref(place)) == 0:
            name = place.value or b""
            assert re.fullmatch(rb"CUDA_(SUCCESS|ERROR_\w+)", name)
            assert driver.cuGetErrorString(number, ctypes.byref(place)) == 0
            known[number] = name, place.value
        else:
            assert place.value is None
            assert driver.cuGetErrorString(number, ctypes.byref(place)) == 1
    assert (len(known), len({name for name, _ in known.values()})) == (106, 106)
    assert known[201] == (b"CUDA_ERROR_INVALID_CONTEXT", b"invalid device context")
    alone = {number for number, (_, text) in known.items() if text != runtime.text(number)}
    assert alone == {47, 202, 916}, "of which the runtime has none"
