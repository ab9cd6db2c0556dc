"""A library written from nothing is one that the loader, the linker and the debugging tools take for real."""

from __future__ import annotations

import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from tests.simulator.conftest import Compile, Run

from quiesce.simulator.runtime.elf_reading import SymbolKind, read_dependencies, read_symbols
from quiesce.simulator.runtime.elf_writing import Forward, StubFunction, StubLibrary, StubObject, write_library

LIBRARY = StubLibrary(
    "librocblas.so.4",
    (
        StubFunction("rocblas_dgemm", 2),
        StubFunction("roctxRangePushA", -1),
        StubFunction("rocblas_status_to_string", "not simulated"),
        StubFunction("rocblas_layout"),
        StubFunction("_Z22hipCreateSurfaceObjectPyPK15hipResourceDesc"),
    ),
    (StubObject("rocblas_table", 1000), StubObject("rocblas_flag", 1)),
    ("libm.so.6",),
    ("rocblas_4.0", "rocblas_4.1"),
)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / LIBRARY.soname
    path.write_bytes(write_library(LIBRARY))
    return path


def test_what_is_written_is_read_back(library: Path) -> None:
    dependencies = read_dependencies(library)
    assert dependencies.soname == "librocblas.so.4"
    assert dependencies.needed == ("libm.so.6", "libc.so.6")
    defined = {symbol.name: symbol for symbol in read_symbols(library) if symbol.defined}
    assert set(defined) == {each.name for each in LIBRARY.functions} | {each.name for each in LIBRARY.objects}
    assert {defined[each.name].kind for each in LIBRARY.functions} == {SymbolKind.FUNCTION}
    assert [(defined[each.name].kind, defined[each.name].size_bytes) for each in LIBRARY.objects] == [
        (SymbolKind.OBJECT, 1000),
        (SymbolKind.OBJECT, 1),
    ]


def test_writing_twice_gives_the_same_bytes() -> None:
    assert write_library(LIBRARY) == write_library(LIBRARY)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (StubLibrary(""), "'' can't be a name"),
        (StubLibrary("a.so", (StubFunction("f\0g"),)), r"'f\\x00g' can't be a name"),
        (StubLibrary("a.so", (StubFunction("f"),), (StubObject("f", 1),)), "'f' is defined twice"),
    ],
)
def test_names_that_no_file_can_hold_are_refused(wrong: StubLibrary, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        write_library(wrong)


CALL = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1], mode=getattr(os, sys.argv[2]))
print(library.rocblas_dgemm(1, ctypes.c_double(2.5), b"x"), library.rocblas_dgemm(), library.roctxRangePushA(b"range"))
library.rocblas_status_to_string.restype = ctypes.c_char_p
print(library.rocblas_status_to_string(3).decode(), flush=True)
"""


@pytest.mark.parametrize("mode", ["RTLD_NOW", "RTLD_LAZY"])
def test_a_called_function_fails_by_name_and_answers(library: Path, run_python: Run, mode: str) -> None:
    done = run_python(CALL, library, mode)
    assert (done.returncode, done.stdout) == (0, "2 2 -1\nnot simulated\n")
    beginnings = [line.partition(":")[2].partition(";")[0] for line in done.stderr.splitlines()]
    assert beginnings == [  # once each, although one was called twice
        " rocblas_dgemm (librocblas.so.4) is not simulated: it returns 2",
        " roctxRangePushA (librocblas.so.4) is not simulated: it returns -1",
        " rocblas_status_to_string (librocblas.so.4) is not simulated: it returns a text that says so",
    ]


@pytest.mark.parametrize("function", ["rocblas_layout", "_Z22hipCreateSurfaceObjectPyPK15hipResourceDesc"])
def test_where_no_answer_is_known_the_program_ends(library: Path, run_python: Run, function: str) -> None:
    done = run_python(
        "import ctypes, sys; ctypes.CDLL(sys.argv[1])[sys.argv[2]](); print('went on')", library, function
    )
    assert done.returncode == -signal.SIGABRT
    assert done.stdout == ""
    assert f"quiesce: {function} (librocblas.so.4) is not simulated: what it returns is not known" in done.stderr


def test_objects_are_there_and_do_not_meet(library: Path, run_python: Run) -> None:
    done = run_python(
        """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
table = (ctypes.c_ubyte * 1000).in_dll(library, "rocblas_table")
flag = ctypes.c_ubyte.in_dll(library, "rocblas_flag")
table[:] = [255] * 1000
print(flag.value, library.rocblas_dgemm(), sum(table) == 255000)
""",
        library,
    )
    assert done.stdout == "0 2 True\n"
    assert "rocblas_dgemm" in done.stderr


def test_each_function_of_thousands_answers_for_itself(tmp_path: Path, run_python: Run) -> None:
    path = tmp_path / "libmany.so"
    path.write_bytes(write_library(StubLibrary("libmany.so", tuple(StubFunction(f"f{n}", n) for n in range(7000)))))
    done = run_python(
        """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1], mode=2)
print(all(library[f"f{number}"]() == number for number in range(0, 7000, 7)))
""",
        path,
    )
    assert done.stdout == "True\n"
    assert done.stderr.splitlines()[-1].startswith("quiesce: f6993 (libmany.so) is not simulated: it returns 6993;")


def test_a_function_goes_on_in_a_needed_library(
    tmp_path: Path, library: Path, compile_c: Compile, run_python: Run
) -> None:
    target = compile_c("libtarget.so", "double sum(int a, double b) { return a + b; }", "-shared", "-fPIC")
    forwards = tuple(Forward(f"renamed{number}", "sum") for number in range(3))
    made = StubLibrary(
        "libfront.so", (StubFunction("stub", 5),), (StubObject("table", 8),), (str(target),), (), forwards
    )
    front = tmp_path / made.soname
    front.write_bytes(write_library(made))
    names = {"stub", "table", *(forward.name for forward in forwards)}
    assert {symbol.name for symbol in read_symbols(front) if symbol.defined} == names
    done = run_python(CALL_FORWARDS, front)
    assert (done.returncode, done.stdout) == (0, "3.5 3.5 3.5 5 0\n"), done.stderr
    assert "renamed" not in done.stderr, "nothing is said of what is there"


CALL_FORWARDS = """
import ctypes, sys
front = ctypes.CDLL(sys.argv[1])
for number in range(3):
    function = getattr(front, f"renamed{number}")
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_int, ctypes.c_double)
    print(function(1, 2.5), end=" ")
print(front.stub(), ctypes.c_int64.in_dll(front, "table").value)
"""


def test_threads_that_call_at_once_print_one_line(library: Path, run_python: Run) -> None:
    done = run_python(
        """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
barrier = threading.Barrier(8)
def call():
    barrier.wait()
    for _ in range(200):
        library.rocblas_dgemm()
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        library,
    )
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1


def test_no_page_is_writable_and_executable(library: Path) -> None:
    content = library.read_bytes()
    (count,) = struct.unpack_from("<H", content, 56)
    segments = [struct.unpack_from("<IIQQQQQQ", content, 64 + 56 * index) for index in range(count)]
    loads = [segment for segment in segments if segment[0] == 1]
    assert [flags for _, flags, *_ in loads] == [4, 5, 6]
    assert all(offset % 4096 == address % 4096 for _, _, offset, address, *_ in loads)
    assert [flags for kind, flags, *_ in segments if kind == 0x6474E551] == [6]  # the stack


TABLE = """
#include <stdio.h>
#include <execinfo.h>
void quiesce_not_simulated(const char *function) {
    void *frames[8];
    int count = backtrace(frames, 8);
    printf("%s\\n", function);
    fflush(stdout);
    backtrace_symbols_fd(frames, count, 1);
}
int rocblas_dgemm(void);
int client(void) { return rocblas_dgemm() + rocblas_dgemm(); }
int main(void) { return client() == 4 ? 0 : 1; }
"""


def test_a_call_is_handed_to_the_simulator_with_its_stack(library: Path, compile_c: Compile) -> None:
    program = compile_c("client", TABLE, "-rdynamic", "-O0", str(library), "-Wl,-rpath,$ORIGIN")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    frames = [match[1] for match in re.finditer(r"\(([A-Za-z_]*)\+", done.stdout)]
    assert done.stdout.count("rocblas_dgemm\n") == 2  # every call, although one line only is printed
    assert frames[:4] == ["quiesce_not_simulated", "", "rocblas_dgemm", "client"]
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("binding", ["-Wl,-z,lazy", "-Wl,-z,now"])
@pytest.mark.parametrize("sanitizer", ["", "-fsanitize=address"])
def test_programs_link_and_load_it(library: Path, compile_c: Compile, binding: str, sanitizer: str) -> None:
    source = "int rocblas_dgemm(void); extern char rocblas_table[1000]; " + (
        "int main(void) { return rocblas_table[999] + rocblas_dgemm(); }"
    )
    flags = [flag for flag in (binding, sanitizer) if flag]
    program = compile_c("linked", source, *flags, str(library), "-Wl,-rpath,$ORIGIN")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("offered", [("rocblas_4.0", "rocblas_4.1"), ()])
def test_a_versioned_reference_is_satisfied(
    tmp_path: Path, compile_c: Compile, run_python: Run, offered: tuple[str, ...]
) -> None:
    """A client that was linked against a library with versions loads one that knows them, and one that has none."""
    (tmp_path / "versions").write_text(
        "rocblas_4.0 { global: rocblas_other; }; rocblas_4.1 { global: rocblas_dgemm; };"
    )
    source = "int rocblas_dgemm(void) { return 0; } int rocblas_other(void) { return 0; }"
    flags = ("-shared", "-fPIC", "-Wl,--version-script=versions", "-Wl,-soname,librocblas.so.4")
    real = compile_c("real/librocblas.so.4", source, *flags)
    client = compile_c(
        "client.so",
        "int rocblas_dgemm(void); int client(void) { return rocblas_dgemm(); }",
        *("-shared", "-fPIC", str(real), "-Wl,-rpath,$ORIGIN"),
    )
    wanted = [(symbol.name, symbol.version, symbol.version_file) for symbol in read_symbols(client) if symbol.version]
    assert ("rocblas_dgemm", "rocblas_4.1", "librocblas.so.4") in wanted
    stub = StubLibrary("librocblas.so.4", (StubFunction("rocblas_dgemm", 2),), versions=offered)
    (tmp_path / "librocblas.so.4").write_bytes(write_library(stub))
    done = run_python("import ctypes, sys; print(ctypes.CDLL(sys.argv[1], mode=2).client())", client)
    assert (done.returncode, done.stdout) == (0 if offered else 1, "2\n" if offered else "")
    assert offered or "version `rocblas_4.1' not found" in done.stderr


@pytest.mark.parametrize(
    "command", [["readelf", "-a", "-W"], ["eu-elflint", "--gnu-ld"], ["objdump", "-d", "-x"], ["nm", "-D"]],
    ids=lambda command: command[0],
)  # fmt: skip
@pytest.mark.parametrize("functions", [0, 1, 300])
def test_tools_find_nothing_wrong_with_it(tmp_path: Path, command: list[str], functions: int) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    path = tmp_path / "libtool.so"
    made = StubLibrary("libtool.so", tuple(StubFunction(f"tool{n}") for n in range(functions)), versions=("tool_1",))
    path.write_bytes(write_library(made))
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning" not in done.stdout.lower()
    if command[0] == "eu-elflint":
        assert done.stdout == "No errors\n"
