"""Which frames of a stack are shown: the program's own, and not those of what called it."""

from __future__ import annotations

import pytest

import quiesce
from quiesce.model.findings import SHUTDOWN, Frame
from quiesce.simulator.judge.call_stacks import frames_of, made_at, scripts_of
from quiesce.simulator.runtime.stacks import CallStack, CodePlaces

SITE = "/venv/lib/python3.11/site-packages"


class Known(CodePlaces):
    """Native code whose places are given: each is asked for by the number of its frame."""

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        super().__init__()
        self._frames = frames

    def at(self, module: str, offset: int) -> tuple[Frame, ...]:
        return (self._frames[offset],)


def stack(python: tuple[Frame, ...] = (), native: tuple[Frame, ...] = ()) -> CallStack:
    return CallStack(python, tuple(("", number) for number in range(len(native))), Known(native))


def test_what_calls_main_is_left_out() -> None:
    native = (
        Frame("work", module="/lib/x.so", offset=16),
        Frame("main", module="/bin/z"),
        Frame("_start", module="c.so"),
    )
    assert [frame.function for frame in frames_of(stack(native=native))] == ["work", "main"]


@pytest.mark.parametrize(
    ("inner", "folded"),
    [
        (
            (
                Frame("__cudaLaunchKernel_helper", "/usr/local/cuda/include/crt/device_functions.h", 2963),
                Frame("__device_stub__Z3addPi(int*)", "/scratch/add.cudafe1.stub.c", 17),
                Frame("add(int*)", "add.cu", 3),
            ),
            ["CUDA's headers", "CUDA's headers", "the launch of a kernel"],
        ),
        ((Frame("cudaMalloc<int>", "/usr/local/cuda/include/cuda_runtime.h", 700),), ["CUDA's headers"]),
        (
            (
                Frame("hipLaunchKernel<int>", "/opt/rocm/include/hip/amd_detail/amd_hip_runtime.h", 9),
                Frame("__device_stub__add(int*)", "add.hip", 3),
                Frame("add(int*)", "add.hip", 3),
            ),
            ["HIP's headers", "the launch of a kernel", "the launch of a kernel"],
        ),
    ],
)
def test_a_launch_is_at_the_line_of_the_program(inner: tuple[Frame, ...], folded: list[str]) -> None:
    own = (Frame("step", "src/include/hip/step.h", 40), Frame("main", "src/main.cu", 9))
    frames = frames_of(stack(native=(*inner, *own)))
    assert [frame.folded for frame in frames] == [*folded, "", ""]
    assert made_at([frames]) == ["at src/include/hip/step.h:40"]


def test_crates_are_packages_and_what_calls_main_in_rust_is_left_out() -> None:
    crates = "/cargo/registry/src/index.example-1949cf8c6b5b557f"
    module = "/srv/target/debug/client"
    native = (
        Frame("alloc", f"{crates}/cudarc-0.19.10/src/core.rs", 1636, module),
        Frame("look", f"{crates}/serde-json-1.0.9/src/lib.rs", 3, module),
        Frame("client::main", "src/main.rs", 6, module),
        Frame("std::rt::lang_start", "/rustc/5980/library/std/src/rt.rs", 205, module),
    )
    frames = frames_of(stack(native=native))
    assert [(frame.owner, frame.is_own) for frame in frames] == [
        ("cudarc", False),
        ("serde-json", False),
        ("client", True),
    ]


@pytest.mark.parametrize(
    ("file", "folded"),
    [
        ("train.py", ""),
        ("/srv/lib/train.py", ""),
        (f"{SITE}/cupy/_creation/basic.py", ""),
        (f"{SITE}/_pytest/python.py", "pytest"),
        (f"{SITE}/pluggy/_callers.py", "pluggy"),
        ("/venv/bin/pytest", "pytest"),
        ("/venv/bin/train", ""),
        (quiesce.__file__, "quiesce"),
        ("/usr/lib/python3.11/threading.py", "the standard library"),
        ("/usr/lib/python3/dist-packages/mine/a.py", ""),
        ("/opt/python/lib/python3.13t/contextlib.py", "the standard library"),
        ("<frozen runpy>", "the interpreter"),
        ("<string>", ""),
    ],
)
def test_plumbing_of_python_is_folded_and_named(file: str, folded: str) -> None:
    (frame,) = frames_of(stack((Frame("f", file, 1),)))
    assert frame.folded == folded


def test_native_code_that_python_called_stands_first_and_the_interpreter_nowhere() -> None:
    here = __file__  # a source that can be read
    native = (
        Frame("Pool::take(int)", here, 40, f"{SITE}/mine/_pool.so"),
        Frame("runtime_malloc", "/build/cupy/runtime.cpp", 9191, f"{SITE}/cupy_backends/cuda/runtime.so"),
        Frame("take", module="/srv/_pool.so"),
        Frame("pybind11::dispatch", module=f"{SITE}/other/core.so"),
        Frame("ffi_call", module="/usr/lib/x86_64-linux-gnu/libffi.so.8"),
        Frame("_call", module="/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311.so"),
        Frame("_PyEval_EvalFrameDefault", module="/opt/app/frozen"),
        Frame("main", module="/opt/app/frozen"),
    )
    frames = frames_of(stack((Frame("step", "train.py", 8),), native))
    assert [(frame.function, frame.folded) for frame in frames] == [
        ("Pool::take(int)", ""),
        ("runtime_malloc", "cupy_backends"),
        ("take", ""),
        ("pybind11::dispatch", "other"),
        ("ffi_call", "ctypes"),
        ("_call", "ctypes"),
        ("step", ""),
    ]


def test_the_place_is_the_innermost_of_the_program_itself() -> None:
    library, own = Frame("empty", f"{SITE}/cupy/basic.py", 22), Frame("step", "train.py", 8)
    assert [library.is_own, own.is_own] == [False, True]
    native = (Frame("make", module="/srv/client"), Frame("main", "a.c", 3))
    assert made_at([(library, own)]) == ["at train.py:8"]
    assert made_at([(library,), native, ()]) == [f"at {SITE}/cupy/basic.py:22", "by make (client+0x0)", ""]


def test_what_is_around_a_worker_of_xdist_is_its_plumbing() -> None:
    python = (
        Frame("test_it", "test_it.py", 5),
        Frame("run", f"{SITE}/execnet/gateway_base.py", 341),
        Frame("<module>", "<string>", 8),
    )
    assert [frame.folded for frame in frames_of(stack(python))] == ["", "execnet", "execnet"]
    assert [frame.folded for frame in frames_of(stack(python[::2]))] == ["", ""], "a program of python -c"


def test_scripts_need_no_tool() -> None:
    python = (Frame("train", "train.py", 5), Frame("run", f"{SITE}/_pytest/python.py", 187))
    native = (Frame("alloc", module="/lib/x.so"),)
    assert [frame.function for frame in scripts_of(stack(python, native))] == ["train", "run"]
    assert scripts_of(stack(native=native)) == frames_of(stack(native=native)) != ()


SHUTTING_DOWN = (
    Frame("free(long, int)", "/build/runtime.cpp", 11331, f"{SITE}/cupy_backends/cuda/runtime.so"),
    Frame("free_keys_object", "/build/Objects/dictobject.c", 664, "/opt/python/bin/python3.11"),
    Frame("Py_FinalizeEx", "/build/Python/pylifecycle.c", 1833, "/opt/python/lib/libpython3.11.so.1.0"),
    Frame("__libc_start_main", "csu/libc-start.c", 360, "/usr/lib/x86_64-linux-gnu/libc.so.6"),
)


def test_what_python_does_at_its_end_is_folded_as_that() -> None:
    folded = [frame.folded for frame in frames_of(stack(native=SHUTTING_DOWN))]
    assert folded == ["", SHUTDOWN, SHUTDOWN, SHUTDOWN]
    exit_function = Frame("finalize._exitfunc", "/usr/lib/python3.11/weakref.py", 667)
    python = (Frame("close", "train.py", 3), exit_function)
    assert [frame.folded for frame in frames_of(stack(python))] == ["", SHUTDOWN]


def test_an_interpreter_that_goes_on_is_named_as_such() -> None:
    native = (SHUTTING_DOWN[0], SHUTTING_DOWN[1], Frame("main", "main.cpp", 8, "/srv/client"))
    assert [frame.folded for frame in frames_of(stack(native=native))] == ["", "the interpreter", ""]
