"""What is said where CuPy cannot work. Each state of a machine is made up; what is said of it is real."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

from quiesce.backends.cupy import asynchronous_backend, backend, installation, rocm_backend
from quiesce.backends.cupy.installation import find_cupy
from quiesce.model.backend import DeviceProfile
from quiesce.model.errors import BackendUnavailable


@pytest.fixture(autouse=True)
def forget_this_machine() -> Iterator[None]:
    """What is installed is asked once per process: have it asked again, before and after."""
    installation._find.cache_clear()
    yield
    installation._find.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> SimpleNamespace:
        metadata = Message()
        metadata["Name"] = name
        return SimpleNamespace(metadata=metadata)

    monkeypatch.setattr(importlib.metadata, "distributions", lambda: map(distribution, names))


def complaint() -> str:
    with pytest.raises(BackendUnavailable) as caught:
        find_cupy("cupy")
    return str(caught.value)


def test_a_missing_cupy_names_every_distribution_that_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "numpy")
    monkeypatch.setitem(sys.modules, "cupy", None)
    said = complaint()
    for word in ("cupy-cuda12", "cupy-cuda13", "cupy-rocm"):
        assert f"quiesce[{word}]" in said
    assert "\n" not in said


def test_two_distributions_are_refused_before_either_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "cupy-cuda12x", "cupy-cuda13x")
    monkeypatch.setitem(sys.modules, "cupy", None)
    said = complaint()
    assert "2 distributions of CuPy are installed (cupy-cuda12x, cupy-cuda13x)" in said
    assert "pip uninstall cupy-cuda12x cupy-cuda13x" in said


class FakeRuntimeError(RuntimeError):
    pass


def no_driver() -> int:
    raise FakeRuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")


@pytest.mark.parametrize(("count", "reason"), [(lambda: 0, "there is no GPU"), (no_driver, "InsufficientDriver")])
def test_a_machine_without_a_device_says_so(monkeypatch: pytest.MonkeyPatch, count: object, reason: str) -> None:
    install(monkeypatch, "cupy-cuda12x")
    runtime = SimpleNamespace(is_hip=False, getDeviceCount=count, CUDARuntimeError=FakeRuntimeError)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    said = complaint()
    assert reason in said
    assert "CUDA_VISIBLE_DEVICES" in said
    assert "on a machine without a GPU, write 'quiesce exec --' before the command" in said


def test_a_cupy_that_lacks_the_vendors_libraries_runs_under_exec(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "raise ImportError('libamdhip64.so.5: cannot open shared object file')"
    (tmp_path / "cupy.py").write_text(text, encoding="utf-8")
    install(monkeypatch, "cupy-rocm-5-0")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    said = complaint()
    assert "CuPy cannot be imported (libamdhip64.so.5: cannot open shared object file)" in said
    assert "on a machine without a GPU, write 'quiesce exec --' before the command" in said


@pytest.mark.parametrize("make", [backend, rocm_backend, asynchronous_backend])
def test_every_entry_point_is_cheap_and_unavailable_without_cupy(
    monkeypatch: pytest.MonkeyPatch, make: type[object]
) -> None:
    install(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", None)
    made = make()
    with pytest.raises(BackendUnavailable):
        made.describe()  # type: ignore[attr-defined]
    with pytest.raises(BackendUnavailable):
        made.open(DeviceProfile())  # type: ignore[attr-defined]


def test_importing_the_modules_loads_no_vendor_library() -> None:
    program = (
        "import quiesce.backends.cupy as c, quiesce.backends.cupy.probes, sys; c.backend(); "
        "print({'numpy', 'cupy', 'cupy_backends'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
