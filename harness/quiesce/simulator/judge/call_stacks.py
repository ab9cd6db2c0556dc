"""Call stacks for readers: which frames they look for, whose plumbing the others are, and who made something.

A maker is a few words: the line of the program, and its callers where two would look alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from quiesce.model.findings import INSTALLED, SHUTDOWN, Frame, is_installed
from quiesce.simulator.runtime import INTERPRETER, CallStack

CALLERS_MAX: Final = 8
"""How many callers a line names; those between the first ones and the one that differs are left out."""


def place_of(frames: tuple[Frame, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is the same of all stacks of one place: compilers write one call several times, as in a loop."""
    return tuple(
        (frame.function, frame.place if frame.line or not frame.function else frame.module)
        for frame in frames
        if not frame.folded
    )


def calls_of(frames: tuple[Frame, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is the same of all stacks of the same calls: where no line tells two calls apart, offsets do."""
    return tuple((frame.function, frame.place) for frame in frames if not frame.folded)


def made_at(stacks: Sequence[tuple[Frame, ...]]) -> list[str]:
    """Return ``at train.py:8`` for each stack, the program's own innermost frame; the innermost where none is its own.

    Where several begin with the same frame, callers follow until the texts differ: ``at train.py:8 in load, called at
    train.py:20 in main``. Of a frame without a line it is ``by function (module)``, and empty where there is no frame.
    """
    chains = [_chain(frames) for frames in stacks]
    innermost = [_place(chain[0]) if chain else "" for chain in chains]
    named = [tuple(map(_caller, chain)) for chain in chains]
    alike: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for place, names in zip(innermost, named, strict=True):
        alike[place].add(names)
    return [_text(place, names, alike[place]) for place, names in zip(innermost, named, strict=True)]


def _chain(frames: tuple[Frame, ...]) -> list[Frame]:
    shown = [frame for frame in frames if not frame.folded] or list(frames)
    return [frame for frame in shown if frame.is_own] or shown


def _place(frame: Frame) -> str:
    return f"at {frame.shown_place}" if frame.line else f"by {frame}"


def _caller(frame: Frame) -> str:
    return f"{_place(frame)} in {frame.function}" if frame.line and frame.function else _place(frame)


def _text(place: str, names: tuple[str, ...], alike: set[tuple[str, ...]]) -> str:
    if len(alike) == 1:
        return place
    shared = max(_shared(names, other) for other in alike if other != names)
    callers = [f"called {name}" for name in names[1 : shared + 1]]
    if len(callers) > CALLERS_MAX:
        callers = [*callers[: CALLERS_MAX - 1], "…", callers[-1]]
    return ", ".join([names[0], *callers])


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many innermost frames two stacks have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_OUTERMOST: Final = frozenset({"main", "main()", "main(int, char**)", "start_thread", "_start"})
"""Where every program and thread begins: nothing is learnt from what is around these."""
_WORKERS: Final = "execnet"
"""What starts the workers of pytest-xdist, with a script of its own that has no file."""
_PACKAGES: Final = {
    "_pytest": "pytest",
    "pytest": "pytest",
    "pluggy": "pluggy",
    "xdist": "pytest-xdist",
    "execnet": _WORKERS,
}
"""Packages that call tests, by the names of their folders."""
_OWN_FOLDER: Final = str(Path(__file__).parents[2]) + "/"
_STANDARD_LIBRARY: Final = re.compile(r"(?:^|/)lib(?:64)?/python3\.\d+t?/")
_EVALUATION: Final = re.compile(r"_PyEval_|PyEval_|_PyObject_|PyObject_|_PyFunction_|_PyVectorcall_|PyVectorcall_|Py_")
"""Functions that run Python code: an interpreter may be linked into a program of another name."""
_ENDING: Final = re.compile(r"_?Py_Finalize")
"""Functions that end an interpreter."""
_EXIT_FUNCTIONS: Final = frozenset({"finalize._exitfunc"})
"""Functions of the standard library that Python calls when the program has ended: ``weakref`` has one."""
_THE_INTERPRETER: Final = "the interpreter"
_STANDARD_LIBRARY_NAME: Final = "the standard library"
_HEADERS: Final = (
    (
        "CUDA's headers",
        re.compile(
            r"/include/(?:crt/\w+|cuda_runtime(?:_api)?|cooperative_groups(?:/[\w/]+)?)\.h$|\.cudafe1\.(?:stub\.c|cpp)$"
        ),
    ),
    ("HIP's headers", re.compile(r"/include/hip/(?:amd_detail/\w+|hip_runtime(?:_api)?)\.h$")),
)
"""Whose functions lead to the runtime, and code that nvcc writes for them."""
_STUB: Final = "__device_stub__"
"""How the name of the function begins that calls the runtime to launch a kernel."""
_FOREIGN_CALLS: Final = re.compile(r"_ctypes|_cffi_backend|libffi")


def frames_of(stack: CallStack) -> tuple[Frame, ...]:
    """Return the frames of a stack, the innermost first, each marked where it is plumbing.

    Where there is Python code its frames are the stack. Native code stands before them where Python called an extension
    module; what the interpreter does in between is left out.
    """
    native = tuple(_folded_launches(stack.native))
    if not stack.python:
        return tuple(_folded_interpreter(list(_up_to_main(native))))
    inner = takewhile(lambda frame: not _EVALUATION.match(frame.function), native)
    return (*map(_folded_native, inner), *_folded_scripts(stack.python))


def scripts_of(stack: CallStack) -> tuple[Frame, ...]:
    """Return the frames of Python code alone, for which no tool has to look into files; all where there are none."""
    return tuple(_folded_scripts(stack.python)) or frames_of(stack)


def _folded_launches(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Fold what stands between a call of the runtime and the line of the program, as for ``kernel<<<...>>>()``.

    For that compilers write a function, and another one with the name and the line of the kernel, which calls it.
    """
    was_stub = False
    for frame in frames:
        around = next((name for name, files in _HEADERS if files.search(frame.file)), "")
        is_stub = frame.function.startswith(_STUB)
        if is_stub or was_stub:
            around = around or "the launch of a kernel"
        was_stub = is_stub
        yield replace(frame, folded=around) if around else frame


def _up_to_main(frames: Iterable[Frame]) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        if frame.function in _OUTERMOST or frame.function.startswith("main(") or _is_main_in_rust(frame):
            return


def _is_main_in_rust(frame: Frame) -> bool:
    return frame.file.endswith(".rs") and frame.function.endswith("::main")


def _folded_interpreter(frames: list[Frame]) -> Iterator[Frame]:
    """Fold the interpreter's frames in a stack without Python code, and what started it: no code of Python runs there.

    That is so when Python shuts down and when a thread of a library asks it for something.
    """
    is_python = [bool(INTERPRETER.match(PurePosixPath(frame.module).name)) for frame in frames]
    first = is_python.index(True) if any(is_python) else len(frames)
    ends = any(_ENDING.match(frame.function) for frame in frames[first:])
    yield from frames[:first]
    for frame, is_pythons in zip(frames[first:], is_python[first:], strict=True):
        is_folded = not frame.folded and (is_pythons or not frame.is_own)
        yield replace(frame, folded=SHUTDOWN if ends else _THE_INTERPRETER) if is_folded else frame


def _folded_native(frame: Frame) -> Frame:
    """Fold what nobody here can read: code of an installed package or of the system, without its source."""
    name = PurePosixPath(frame.module).name
    if foreign := _FOREIGN_CALLS.match(name):
        return replace(frame, folded="cffi" if "cffi" in foreign[0] else "ctypes")
    installed = INSTALLED.search(frame.module)
    is_system = not frame.module or is_installed(frame.module)
    if not (installed or is_system) or (frame.line and Path(frame.file).is_file()):
        return frame
    return replace(frame, folded=installed[1] if installed else name or "code without a file")


def _folded_scripts(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Mark Python frames; a module's own frame in a script of a package that is folded, such as ``bin/pytest``, too."""
    around = ""
    for frame in frames:
        package = _package(frame.file)
        if package == _WORKERS:
            around = _WORKERS
        is_last = package == _STANDARD_LIBRARY_NAME and frame.function in _EXIT_FUNCTIONS
        yield replace(frame, folded=SHUTDOWN if is_last else package or around)


def _package(file: str) -> str:
    if file.startswith("<frozen "):
        return _THE_INTERPRETER
    if file.startswith(_OWN_FOLDER):
        return "quiesce"
    installed = INSTALLED.search(file)
    if installed:
        return _PACKAGES.get(installed[1], "")
    path = PurePosixPath(file)
    if path.parent.name == "bin" and path.name in ("pytest", "py.test"):
        return "pytest"
    return _STANDARD_LIBRARY_NAME if _STANDARD_LIBRARY.search(file) else ""
