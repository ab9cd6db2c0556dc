"""Names and lines of native code in C++ and Rust: inlined, static, position independent or not, apart or stripped."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from quiesce.simulator.runtime import stacks
from quiesce.simulator.runtime.elf_reading import Symbols
from quiesce.simulator.runtime.stacks import TOOLS, CodePlaces

CPP = """
#include <cstdlib>
namespace pool {
template <class T> struct Holder {
    __attribute__((noinline)) static T *make(int n) { T *p = (T *)malloc(n); __asm__ volatile("nop"); return p; }
    static inline __attribute__((always_inline)) T *inlined(int n) {
        T *p = make(n); __asm__ volatile("nop"); return p;
    }
};
}
static __attribute__((noinline)) int *helper(int n) {
    int *p = pool::Holder<int>::inlined(n); __asm__ volatile("nop"); return p;
}
int main(int n, char **) { return helper(n) == nullptr; }
"""
RUST = """
mod pool { #[inline(never)] pub fn make(n: usize) -> Vec<u8> { std::hint::black_box(vec![0; n]) } }
fn main() { println!("{}", pool::make(std::env::args().count()).len()); }
"""


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(stacks, "TOOLS", {name: TOOLS[name]})
    return name


def compiled(folder: Path, *options: str, compiler: str = "g++", text: str = CPP, suffix: str = ".cpp") -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source, program = folder / f"source{suffix}", folder / "program"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [compiler, *options, str(source), "-o", str(program)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"{compiler} compiles nothing here: {done.stderr[-200:]}")
    return program


def calls_of(program: Path, function: str) -> list[int]:
    """Return the offsets in the file of what each call in a function comes back to, less 1, as a stack has them."""
    symbols = Symbols(program)
    lines = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(program)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.endswith(">:") and function in line)
    found = []
    for line, following in zip(lines[begin + 1 :], lines[begin + 2 :], strict=False):
        if not line.strip():
            break
        if "call" in line:
            found.append(int(following.split(":")[0], 16) - 1)
    segments = symbols._segments
    return [next(at - start + begin for begin, size, start in segments if 0 <= at - start < size) for at in found]


@pytest.mark.parametrize("options", [("-fpie", "-pie"), ("-fno-pie", "-no-pie")], ids=["pie", "no pie"])
@pytest.mark.usefixtures("tool")
def test_inlined_and_static_functions_have_their_names_and_lines(options: tuple[str, ...], tmp_path: Path) -> None:
    program = compiled(tmp_path, "-g", "-O2", *options)
    (offset,) = calls_of(program, "helper")
    inlined, around = CodePlaces().at(str(program), offset)
    assert inlined.function == "pool::Holder<int>::inlined(int)"
    assert (inlined.file, inlined.line) == (str(tmp_path / "source.cpp"), 7)
    assert around.function.startswith("helper")
    assert "constprop" not in around.function
    assert around.line == 12


@pytest.mark.usefixtures("tool")
def test_debug_information_in_a_file_of_its_own_is_found(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-g", "-O0")
    (offset, *_) = calls_of(program, "main")
    for command in (
        ["objcopy", "--only-keep-debug", "program", "program.debug"],
        ["strip", "--strip-all", "program"],
        ["objcopy", "--add-gnu-debuglink=program.debug", "program"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    (frame,) = CodePlaces().at(str(program), offset)
    assert (frame.function, frame.line) == ("main", 14)


@pytest.mark.usefixtures("tool")
def test_without_debug_information_there_is_a_name_and_an_offset(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-O2")
    (offset,) = calls_of(program, "helper")
    (frame,) = CodePlaces().at(str(program), offset)
    assert frame.function.startswith("helper(int)")
    assert (frame.file, frame.line, frame.module, frame.offset) == ("", 0, str(program), offset)
    subprocess.run(["strip", "--strip-all", str(program)], check=True)
    (frame,) = CodePlaces().at(str(program), offset)
    assert str(frame) == f"program+{offset:#x}"


@pytest.mark.parametrize("options", [(), ("-C", "symbol-mangling-version=v0")], ids=["usual", "v0"])
@pytest.mark.usefixtures("tool")
def test_names_of_rust_are_readable(options: tuple[str, ...], tmp_path: Path) -> None:
    program = compiled(tmp_path, "-g", *options, compiler="rustc", text=RUST, suffix=".rs")
    (offset, *_) = calls_of(program, "4pool4make")
    frames = CodePlaces().at(str(program), offset)
    assert (frames[-1].function.rpartition("::")[2], frames[-1].line) == ("make", 2)
    assert "::h" not in frames[-1].function


def test_without_a_tool_names_remain_and_it_is_said_once_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled(tmp_path, "-g", "-O0")
    (offset, *_) = calls_of(program, "main")
    monkeypatch.setattr(stacks, "TOOLS", {})
    places = CodePlaces()
    assert places.note() == ""
    (frame,) = places.at(str(program), offset)
    assert (frame.function, frame.line) == ("main", 0)
    assert "apt install binutils" in places.note()


def test_what_is_no_file_has_neither_names_nor_lines() -> None:
    for module in ("", "[vdso]", "/no/such/file", "/proc/self/status"):
        (frame,) = CodePlaces().at(module, 16)
        assert (frame.function, frame.line) == ("", 0)
