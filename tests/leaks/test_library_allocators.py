"""Gauges of PyTorch, RMM and JAX: read where the tested code uses the library, and nothing is begun by reading.

The libraries are large, so stand-ins have the functions that are called.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from quiesce.leaks.meters.libraries import JAX_BYTES, RMM_BYTES, JaxMeter, RmmMeter, TorchMeter


class Cuda(ModuleType):
    """What is called of ``torch.cuda``."""

    def __init__(self) -> None:
        super().__init__("torch.cuda")
        self.begun = False
        self.captures = False
        self.allocated = {0: 0, 1: 0}
        self.reserved = {0: 0, 1: 0}
        self.called: list[str] = []

    def is_initialized(self) -> bool:
        return self.begun

    def device_count(self) -> int:
        return len(self.reserved)

    def memory_allocated(self, device: int) -> int:
        return self.allocated[device]

    def memory_reserved(self, device: int) -> int:
        return self.reserved[device]

    def is_current_stream_capturing(self) -> bool:
        return self.captures

    def synchronize(self, device: int) -> None:
        self.called.append(f"synchronize {device}")

    def empty_cache(self) -> None:
        self.called.append("empty_cache")
        self.reserved = dict(self.allocated)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setitem(sys.modules, "torch.cuda", made)
    return made


def test_torch_is_not_begun_by_reading(cuda: Cuda) -> None:
    meter = TorchMeter()
    assert meter.absent() == "PyTorch uses no GPU"
    meter.settle()
    assert meter.read() == {}
    assert cuda.called == []


def test_torch_is_read_on_the_devices_that_it_uses(cuda: Cuda) -> None:
    meter = TorchMeter()
    cuda.begun, cuda.reserved, cuda.allocated = True, {0: 0, 1: 4096}, {0: 0, 1: 512}
    assert meter.absent() == ""
    read = {quantity.name: value for quantity, value in meter.read().items()}
    assert read == {"memory allocated by PyTorch on device 1": 512}
    meter.settle()
    assert cuda.called == ["synchronize 1", "empty_cache"]
    cuda.reserved = cuda.allocated = {0: 0, 1: 0}
    assert list(meter.read().values()) == [0], "a device that was used is read on"


def test_a_capture_is_left_alone(cuda: Cuda) -> None:
    cuda.begun = cuda.captures = True
    TorchMeter().settle()
    assert cuda.called == []


def test_rmm_is_read_once_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = RmmMeter()
    assert meter.absent() == "RMM is not loaded"
    monkeypatch.setitem(sys.modules, "rmm", ModuleType("rmm"))
    assert "rmm.statistics.enable_statistics()" in meter.absent()
    statistics = ModuleType("rmm.statistics")
    monkeypatch.setitem(sys.modules, "rmm.statistics", statistics)
    vars(statistics)["get_statistics"] = lambda: None
    assert meter.read() == {}
    vars(statistics)["get_statistics"] = lambda: SimpleNamespace(current_bytes=256)
    assert meter.absent() == ""
    assert meter.read() == {RMM_BYTES: 256}


def test_jax_is_not_begun_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = JaxMeter()
    jax, bridge = ModuleType("jax"), ModuleType("jax._src.xla_bridge")
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    vars(bridge)["backends_are_initialized"] = lambda: False
    vars(jax)["live_arrays"] = lambda: [SimpleNamespace(nbytes=4000), SimpleNamespace(nbytes=96)]
    assert meter.absent() == "JAX has not begun to compute"
    assert meter.read() == {}
    vars(bridge)["backends_are_initialized"] = lambda: True
    assert meter.read() == {JAX_BYTES: 4096}
