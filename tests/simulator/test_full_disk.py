"""A full disk ends no program: what the record has until then is judged, and what is missing is named."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.simulator.runtime.build import SOURCES, find_compiler

MIB = 1 << 20
FILL = """
    int full(void);
    return full();
}
#include <fcntl.h>
static void fill(void) {
    static char page[4096];
    char path[4096];
    snprintf(path, sizeof path, "%s/filler", getenv("TMPDIR"));
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    while (write(file, page, sizeof page) == sizeof page) continue;
}
static int pair_at(int way, int length) {
    void *p;
    if (length) return way & 1 ? pair_at(way >> 1, length - 1) + 1 : pair_at(way >> 1, length - 1) + 2;
    cudaMalloc(&p, 8);
    return cudaFree(p);
}
int full(void) {
    void *p;
    (void)p, (void)pair_at;
"""
PAIRS = """
    void *p;
    cudaMalloc(&p, 1000);
    cudaFree(p);
    {again}
    for (int i = 0; i < 30000; i++) {{ cudaMalloc(&p, 256); cudaFree(p); }}
    puts("the end");
    return 0;
"""
RESERVED = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "machine/disk.h"
int main(int count, char **words) {
    int file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 1 << 20)) return 1;
    char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int first = disk_reserve(words[1], map, 100, 60000);
    for (int i = 0; i < 60000; i++) map[100 + i] = 1;
    printf("%d %d\\n", first, disk_reserve(words[1], map, 1 << 17, 1 << 19));
}
"""


@pytest.fixture
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system with as many bytes as the parameter says."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "quiesce-test", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no program that mounts a file system")
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run_in(folder: Path, program: Path, *options: str) -> int:
    """Run a program with this temporary folder; pytest keeps what it captures in the usual one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(folder))
        patched.setattr(tempfile, "tempdir", str(folder))
        return main(["exec", *options, "--", str(program)])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("small", [3 * MIB], indirect=True)
def test_a_program_goes_on_and_is_judged_until_then(
    small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = compile_client(tmp_path, PAIRS.format(again=""))
    assert run_in(small, program) == ExitCode.COULD_NOT_RUN
    told = capfd.readouterr()
    assert "the end\n" in told.out
    assert "inconclusive on 'cuda:12': the folder of the run is full: the record ends after " in told.out
    assert f"Set TMPDIR to a folder with more room than {small}" in told.out
    assert "SIGBUS" not in told.out + told.err


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("small", [3 * MIB], indirect=True)
def test_findings_until_then_are_shown(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, PAIRS.format(again="cudaFree(p);"))
    assert run_in(small, program) == ExitCode.FINDINGS
    told = capfd.readouterr()
    assert "call 2 on 'cuda:12': cudaFree" in told.out
    assert "the end\n" in told.out
    assert "the folder of the run is full: the record ends after " in told.err
    assert not list(small.iterdir())


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("small", [3 * MIB], indirect=True)
def test_more_blocks_than_there_is_room_for(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = 'void *p; for (int i = 0; i < 20000; i++) cudaMalloc(&p, 256); puts("the end"); return 0;'
    assert run_in(small, compile_client(tmp_path, body), "--no-stacks") == ExitCode.COULD_NOT_RUN
    told = capfd.readouterr()
    assert "the end\n" in told.out
    assert f"than {small}" in told.out


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("body", "missing", "options"),
    [
        (
            "pair_at(0, 0); fill(); for (int way = 0; way < 1024; way++) pair_at(way, 10); return 0;",
            "the folder of the run is full: call stacks are missing",
            [],
        ),
        (
            "pair_at(0, 0); fill(); cudaMalloc(&p, 1ull << 60); return 0;",
            "the folder of the run is full: calls that failed are missing",
            ["--no-stacks"],
        ),
        (
            "for (int n = 0; n < 9000; n++) n == 2050 ? fill() : (void)pair_at(0, 0); return 0;",
            "calls was overwritten, for it found no room on the disk; set TMPDIR",
            ["--no-stacks", "--ring", "4096", "--disk", "1GiB"],
        ),
    ],
)
@pytest.mark.parametrize("small", [8 * MIB], indirect=True)
def test_what_is_missing_is_named(
    small: Path, body: str, missing: str, options: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_in(small, compile_client(tmp_path, FILL + body), *options)
    told = capfd.readouterr()
    assert missing in told.out + told.err
    assert (small / "filler").exists()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("small", [8 * MIB], indirect=True)
def test_no_room_for_the_first_call(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, FILL + "fill(); return pair_at(0, 0);")
    assert run_in(small, program) == ExitCode.COULD_NOT_RUN
    said = (
        f"its ledger can't be made in {small}/quiesce-\\w+: No space left on device; set TMPDIR to a folder with more"
    )
    assert re.search(said, capfd.readouterr().err)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("small", [256 << 10], indirect=True)
def test_no_room_to_start(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); cudaFree(p); return 0;")
    assert run_in(small, program) == ExitCode.COULD_NOT_RUN
    said = "quiesce: the folder of the run can't be written: No space left on device; set TMPDIR to a folder with more"
    assert capfd.readouterr().err.startswith(said)
    assert not list(small.iterdir())


@pytest.mark.usefixtures("library")
def test_files_may_not_be_as_long(tmp_path: Path) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); cudaFree(p); return 0;")
    words = f'ulimit -f 100000; exec {sys.executable} -m quiesce exec -- "$0"'
    ended = subprocess.run(["bash", "-c", words, str(program)], capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.COULD_NOT_RUN
    assert "File too large; raise the limit of the size of files (ulimit -f)" in ended.stderr
    assert "SIGXFSZ" not in ended.stderr + ended.stdout


@pytest.mark.parametrize("named", ["file", "nowhere"], ids=["allocated", "populated"])
@pytest.mark.parametrize("small", [256 << 10], indirect=True)
def test_pages_are_reserved_or_there_is_no_room(small: Path, named: str, tmp_path: Path) -> None:
    source, program = tmp_path / "reserved.c", tmp_path / "reserved"
    source.write_text(RESERVED, encoding="utf-8")
    command = [*find_compiler(), "-D_GNU_SOURCE", f"-I{SOURCES}", str(source), str(SOURCES / "machine/disk.c")]
    subprocess.run([*command, "-o", str(program)], check=True)
    shown = subprocess.run(
        [str(program), str(small / named), str(small / "file")], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "1 0\n"
