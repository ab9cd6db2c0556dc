"""What the runtime says of a kernel of which it knows nothing but that it would run."""

from __future__ import annotations

import ctypes

from tests.simulator.conftest import Start

INVALID_VALUE = 1


class HipFunctionAttributes(ctypes.Structure):
    """hipFuncAttributes of hip_runtime_api.h, ROCm 5.2."""

    _fields_ = (
        ("binaryVersion", ctypes.c_int),
        ("cacheModeCA", ctypes.c_int),
        ("constSizeBytes", ctypes.c_size_t),
        ("localSizeBytes", ctypes.c_size_t),
        ("maxDynamicSharedSizeBytes", ctypes.c_int),
        ("maxThreadsPerBlock", ctypes.c_int),
        ("numRegs", ctypes.c_int),
        ("preferredShmemCarveout", ctypes.c_int),
        ("ptxVersion", ctypes.c_int),
        ("sharedSizeBytes", ctypes.c_size_t),
    )


def test_hip_tells_the_attributes_of_a_function(start: Start) -> None:
    client = start("hip:5")
    attributes = HipFunctionAttributes(*[-1] * 2, *[99] * 2, *[-1] * 5, 99)
    client.ok("FuncGetAttributes", ctypes.byref(attributes), ctypes.addressof(attributes))
    assert attributes.maxThreadsPerBlock == 1024
    assert attributes.numRegs > 0
    assert (attributes.constSizeBytes, attributes.localSizeBytes, attributes.sharedSizeBytes) == (0, 0, 0)
    assert client.call("FuncGetAttributes", ctypes.byref(attributes), None) == INVALID_VALUE
    assert client.call("FuncGetAttributes", None, ctypes.addressof(attributes)) == INVALID_VALUE
