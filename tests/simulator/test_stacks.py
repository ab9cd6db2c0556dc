"""Call stacks of live blocks and of wrong calls: native and Python frames, kept only where they were asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime import record_log
from quiesce.simulator.runtime import stacks as reader
from quiesce.simulator.runtime.build import SOURCES, find_compiler
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import LiveThing, Record, Seen, open_ledger
from quiesce.simulator.runtime.stacks import CallStack, CallStacks, open_stacks

pytestmark = pytest.mark.usefixtures("library")

SETTINGS: Final = MachineSettings(parse_flavour("cuda:12"), options={"stacks": 1})


def run(*words: object, settings: MachineSettings = SETTINGS) -> list[tuple[LiveThing | Record, CallStack | None]]:
    """Run a program; return what lives at its end and the observations, each with its stack."""
    with run_program(list(map(str, words)), settings, os.environ) as ended:
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as stacks:
            seen: list[LiveThing | Record] = [*ledger.live(), *ledger.records()]
            return [(each, stacks.stack(each.stack) if stacks else None) for each in seen]


def functions(stack: CallStack | None) -> list[str]:
    assert stack is not None
    return [frame.function for frame in stack.native]


def test_native_frames_have_the_names_of_the_file_also_of_local_functions(tmp_path: Path) -> None:
    body = """
    __attribute__((noinline)) void inner(void **p) { cudaMalloc(p, 100); __asm__ volatile(""); }
    __attribute__((noinline)) void outer(void **p) { inner(p); __asm__ volatile(""); }
    void *p; outer(&p); return 0;"""
    (live, stack), (seen, same) = run(compile_client(tmp_path, body))
    names = [name.partition(".")[0] for name in functions(stack)]
    assert names[:3] == ["inner", "outer", "main"]
    assert isinstance(live, LiveThing)
    assert isinstance(seen, Record)
    assert same == stack
    assert stack is not None
    assert stack.python == ()


def test_nothing_is_kept_where_it_was_not_asked_for(tmp_path: Path) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 100); return 0;")
    found = run(program, settings=MachineSettings(parse_flavour("cuda:12")))
    assert [(each.stack, stack) for each, stack in found] == [(0, None), (0, None)]


def test_one_stack_is_kept_once_and_another_is_another(start: Any) -> None:
    client = start(stacks=1)
    for _ in range(3):
        client.make("Malloc", 10)
    client.make("StreamCreate")
    first, second, third, stream = (thing.stack for thing in client.machine.ledger.live())
    assert 0 != first == second == third != stream != 0


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (lambda client, freed: client.call("Free", freed), Seen.FREED_TWICE),
        (lambda client, _: client.call("Free", 64), Seen.FREED_FOREIGN),
        (lambda client, freed: client.call("Memset", freed, 0, 8), Seen.USED_AFTER_FREE),
        (lambda client, _: client.call("Memset", client.make("Malloc", 8), 0, 9), Seen.OUT_OF_BOUNDS),
    ],
)
def test_wrong_calls_say_where_they_were_made(start: Any, wrong: Any, seen: Seen) -> None:
    client = start(stacks=1, recycle="never")
    freed = client.make("Malloc", 100)
    client.ok("Free", freed)
    wrong(client, freed)
    (record,) = client.seen(seen)
    stack = client.machine.stacks.stack(record.stack)
    assert any(frame.file == __file__ for frame in stack.python)


PROGRAM: Final = """
import ctypes, os, sys, threading
library = ctypes.{loader}("libcudart.so.12")
def innermost(size):
    made = ctypes.c_void_p()
    assert library.cudaMalloc(ctypes.byref(made), size) == 0
    frame, told = sys._getframe(), []
    while frame:
        told.append((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    told[0] = (*told[0][:2], told[0][2] - 3)
    print(repr((size, told)), flush=True)
def generator(): yield innermost(2)
class Ä:
    def __del__(self): innermost(3)
    def method(self): return sorted([1], key=lambda _: innermost(1) or 0)
async def coroutine(): innermost(5)
Ä().method()
next(generator())
thread = threading.Thread(target=innermost, args=(4,))
thread.start(), thread.join()
try: coroutine().send(None)
except StopIteration: pass
def deep(left): return deep(left - 1) if left else innermost(6)
deep(100)
os._exit(0)
"""


def interpreters() -> list[str]:
    """Return one interpreter of each release that is there and that the reader knows."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for release in ("3.11", "3.12", "3.13"):
        text = "import sys; print(sys.executable)"
        try:
            done = subprocess.run([f"python{release}", "-c", text], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            found.setdefault(release, done.stdout.strip())
    return [path for release, path in found.items() if release in ("3.11", "3.12", "3.13")]


@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"], ids=["without the lock", "with the lock"])
@pytest.mark.parametrize("interpreter", interpreters())
def test_python_frames_are_those_that_the_interpreter_tells(
    interpreter: str, loader: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "skript_ü.py"
    script.write_text(PROGRAM.replace("{loader}", loader), encoding="utf-8")
    found = run(interpreter, script)
    told = dict(map(eval, capfd.readouterr().out.splitlines()))
    kept = {each.size_bytes: stack for each, stack in found if isinstance(each, LiveThing)}
    assert sorted(kept) == sorted(told) == [1, 2, 3, 4, 5, 6]
    for size, stack in kept.items():
        assert stack is not None
        shown = [(frame.file, frame.function, frame.line) for frame in stack.python]
        assert shown == [tuple(frame) for frame in told[size]][: len(shown)]
        assert len(shown) == min(len(told[size]), 48)


GENERATED: Final = """
import ctypes, os
library = ctypes.CDLL("libcudart.so.12")
def allocate(size): library.cudaMalloc(ctypes.byref(ctypes.c_void_p()), size)
for again in range(3):
    for line in range(1, 200):
        names = {"allocate": allocate}
        exec(compile("\\n" * line + "def made(n): allocate(n)", "generated.py", "exec"), names)
        names["made"](1000 * again + line)
os._exit(0)
"""


@pytest.mark.parametrize("interpreter", interpreters())
def test_functions_that_are_compiled_to_the_same_place_are_told_apart(interpreter: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(GENERATED, encoding="utf-8")
    found = [(each.size_bytes, stack) for each, stack in run(interpreter, script) if isinstance(each, LiveThing)]
    assert len(found) == 3 * 199
    for size, stack in found:
        assert stack is not None
        assert (stack.python[1].file, stack.python[1].line) == ("generated.py", size % 1000 + 1)


def test_finalisation_of_an_interpreter_takes_stacks_without_crashing(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes, threading, sys\n"
        "library = ctypes.CDLL('libcudart.so.12')\n"
        "def allocate(size):\n"
        "    made = ctypes.c_void_p()\n"
        "    library.cudaMalloc(ctypes.byref(made), size)\n"
        "class Late:\n"
        "    def __del__(self, allocate=allocate): allocate(7)\n"
        "allocate(5)\n"
        "sys.late = late = Late()\n"
        "def spin():\n"
        "    while True: allocate(1)\n"
        "threading.Thread(target=spin, daemon=True).start()\n",
        encoding="utf-8",
    )
    with run_program([sys.executable, str(script)], SETTINGS, os.environ) as ended:
        assert ended.status == 0
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as stacks:
            assert stacks is not None
            kept = {thing.size_bytes: stacks.stack(thing.stack) for thing in ledger.live()}
    assert kept[5] is not None
    assert [frame.function for frame in kept[5].python] == ["allocate", "<module>"]


def test_layouts_are_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    names = ("record_header", "record_head", "python_frame")
    shown = ", ".join(f"sizeof(struct {name})" for name in names)
    main = f'int main(void) {{ printf("%zu %zu %zu %d", {shown}, STACKS_LAYOUT); }}'
    source.write_text(f'#include <stdio.h>\n#include "ledger/stack_log.h"\n{main}\n', encoding="utf-8")
    subprocess.run([*find_compiler(), f"-I{SOURCES}", str(source), "-o", str(program)], check=True)
    sizes = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert list(map(int, sizes)) == [
        record_log.HEADER.size,
        record_log.RECORD.size,
        reader.PYTHON_FRAME.size,
        reader.LAYOUT,
    ]
    found = re.search(r"LOG_BYTES \(1ull << (\d+)\)", (SOURCES / "ledger/record_log.h").read_text(encoding="utf-8"))
    assert found
    assert 1 << int(found[1]) == record_log.LOG_BYTES
    text = (SOURCES / "ledger/stack_log.c").read_text(encoding="utf-8")
    assert f"{reader.MAGIC:x}" in text.lower()


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 4096])
def test_what_is_no_log_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(QuiesceError, match="no log of call stacks"):
        CallStacks(memoryview(content))
