"""A vendor's runtime is answered by the simulated one however a program asks for it, and nothing else is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.simulator.conftest import Compile

from quiesce.simulator.runtime.build import build_audit
from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.loads import Load, Loaded

pytestmark = pytest.mark.usefixtures("library")

SHARED = ("-shared", "-fPIC")
REAL_ANSWER = 100  # cudaErrorNoDevice, as a vendor's runtime has it on a machine without a GPU
OPEN = """
import ctypes, sys
for path in sys.argv[1:]:
    try:
        print(ctypes.CDLL(path).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(100)))
    except OSError as error:
        print(error)
"""


@dataclass(frozen=True)
class Done:
    """What a run wrote, how many blocks it allocated on the simulated runtime, and what its loaders did."""

    written: str
    blocks: int
    loads: tuple[Load, ...]
    complaints: str = ""

    def paths(self, kind: Loaded) -> list[str]:
        return [str(load.path) for load in self.loads if load.kind is kind]


def real(path: Path, soname: str) -> Path:
    """Make a vendor's runtime."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(write_library(StubLibrary(soname, (StubFunction("cudaMalloc", REAL_ANSWER),))))
    return path


def run(
    *words: object,
    capfd: pytest.CaptureFixture[str],
    flavour: str = "cuda:12",
    environment: Mapping[str, str] = os.environ,
    libraries: bool = False,
) -> Done:
    settings = MachineSettings(parse_flavour(flavour), libraries=libraries)
    with run_program([*map(str, words)], settings, environment) as ended:
        blocks = 0
        for path in ended.ledgers:
            with open_ledger(path) as ledger:
                blocks += ledger.observations
        written = capfd.readouterr()
        return Done(written.out, blocks, ended.loads, written.err)


@pytest.mark.parametrize(
    ("name", "soname"),
    [
        ("libcudart.so.12", "libcudart.so.12"),
        ("libcudart.so", "libcudart.so.12"),
        ("libcudart.so.12.9.79", "libcudart.so.12"),
        ("libcudart-5a077122.so.12.4.127", "libcudart-5a077122.so.12.4.127"),
        ("runtime-of-mine", "libcudart.so.12"),
        ("libcuda.so.550.54.15", "libcuda.so.1"),
    ],
)
def test_a_runtime_that_is_opened_by_its_path_is_the_simulated_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, soname: str
) -> None:
    path = real(tmp_path / name, soname)
    done = run(sys.executable, "-c", OPEN, path, capfd=capfd)
    assert (done.written, done.blocks) == ("0\n", 1)
    assert done.paths(Loaded.ANSWERED)[0] == str(path)
    assert done.paths(Loaded.REAL) == []


@pytest.mark.parametrize("tags", ["--disable-new-dtags", "--enable-new-dtags"])
@pytest.mark.parametrize("name", ["libcudart.so.12", "libcudart-0123abcd.so.12.4.127"])
def test_a_runtime_of_a_programs_own_folder_is_the_simulated_one(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str], name: str, tags: str
) -> None:
    """Through DT_RPATH and DT_RUNPATH; the version that its client names is there, too."""
    versions = tmp_path / "versions"
    versions.write_text("libcudart.so.12 { cudaMalloc; };")
    source = f"int cudaMalloc(void **made, long size) {{ return {REAL_ANSWER}; }}"
    path = compile_c(f"own/{name}", source, *SHARED, f"-Wl,-soname,{name},--version-script,{versions}")
    source = """
int cudaMalloc(void **, long), printf(const char *, ...);
int main(void) { void *made; printf("%d\\n", cudaMalloc(&made, 100)); return 0; }"""
    program = compile_c("program", source, str(path), f"-Wl,{tags},-rpath,{path.parent}")
    assert subprocess.run([program], stdout=subprocess.PIPE, check=False).stdout == b"100\n"
    done = run(program, capfd=capfd)
    assert (done.written, done.blocks) == ("0\n", 1)


def test_one_process_may_use_several_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ("libcudart.so.12", "libcudart-5a077122.so.12.4.127", "libcudart.so.12.4.127")
    paths = [real(tmp_path / name, name) for name in names]
    done = run(sys.executable, "-c", OPEN, *paths, "libcudart.so.12", *paths, capfd=capfd)
    assert done.written == "0\n" * 7
    assert done.paths(Loaded.ANSWERED) == [*map(str, paths)][:3], "each is told once"


@pytest.mark.parametrize(("flavour", "name"), [("cuda:11", "libcudart.so.11.8.89"), ("hip:6", "libamdhip64.so.6.2.4")])
def test_the_other_flavours_are_answered_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flavour: str, name: str
) -> None:
    call = "hipMalloc" if "hip" in name else "cudaMalloc"
    path = real(tmp_path / name, name)
    done = run(sys.executable, "-c", OPEN.replace("cudaMalloc", call), path, capfd=capfd, flavour=flavour)
    assert (done.written, done.blocks) == ("0\n", 1)


@pytest.mark.parametrize(
    ("flavour", "name"),
    [("cuda:12", "libcudart.so.11.0"), ("cuda:12", "libamdhip64.so.6"), ("hip:6", "libcudart.so.12")],
)
def test_a_runtime_that_the_flavour_is_not_is_left_alone_and_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flavour: str, name: str
) -> None:
    path = real(tmp_path / name, name)
    done = run(sys.executable, "-c", OPEN, path, capfd=capfd, flavour=flavour)
    assert (done.written, done.blocks) == (f"{REAL_ANSWER}\n", 0)
    assert done.paths(Loaded.REAL) == [str(path)]
    (load,) = [load for load in done.loads if load.kind is Loaded.REAL]
    assert "_ctypes" in load.client.name


@pytest.mark.parametrize("tags", ["--disable-new-dtags", "--enable-new-dtags"])
def test_another_runtime_that_a_program_needs_is_ours_although_it_is_installed(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str], tags: str
) -> None:
    path = real(tmp_path / "own" / "libcudart.so.13", "libcudart.so.13")
    source = """
int cudaMalloc(void **, long), printf(const char *, ...);
int main(void) { void *made; printf("%d\\n", cudaMalloc(&made, 100)); return 0; }"""
    program = compile_c("program", source, str(path), f"-Wl,{tags},-rpath,{path.parent}")
    done = run(program, capfd=capfd)
    assert (done.written, done.blocks) == ("0\n", 1)
    assert (done.paths(Loaded.OTHER), done.paths(Loaded.REAL)) == (["libcudart.so.13"], [])


def test_a_runtime_that_is_left_alone_is_told_what_it_is(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    source = """
#include <dlfcn.h>
int cudaMalloc(void **made, long size) {
    int (*ask)(void **, void *) = (int (*)(void **, void *))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetExportTable");
    int status = ask(made, made);
    return status + !size;
}"""
    for name, told in (("libcudart.so.11.0", "name its version with --flavour"), ("libown.so", "is linked statically")):
        path = compile_c(name, source, *SHARED, f"-Wl,-soname,{name}")
        assert told in run(sys.executable, "-c", OPEN, path, capfd=capfd).complaints


@pytest.mark.parametrize(
    "name", ["libcudart_shim.so.12", "libcudart-tools.so.12", "libcudart.so.12.backup", "libmine.so"]
)
def test_other_libraries_are_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    done = run(sys.executable, "-c", OPEN, real(tmp_path / name, name), capfd=capfd)
    assert (done.written, done.blocks) == (f"{REAL_ANSWER}\n", 0)
    assert [load.kind for load in done.loads] == [Loaded.STARTED]


def test_a_path_that_leads_nowhere_fails_as_it_would(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = run(sys.executable, "-c", OPEN, tmp_path / "libcudart.so.12", capfd=capfd)
    assert "cannot open shared object file" in done.written


def test_what_is_no_elf_file_fails_as_it_would(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module.so"
    for content in (b"", b"INPUT(x)", b"\x7fELF", b"\x7fELF\x02\x01".ljust(64, b"\xff")):
        path.write_bytes(content)
        assert str(path) in run(sys.executable, "-c", OPEN, path, capfd=capfd).written


def test_children_and_their_own_library_path_change_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = real(tmp_path / "libcudart.so.12", "libcudart.so.12")
    command = f"LD_LIBRARY_PATH={tmp_path} {sys.executable} -c '{OPEN}' libcudart.so.12 {path}; true"
    done = run(shutil.which("sh"), "-c", command, capfd=capfd)
    assert (done.written, done.blocks) == ("0\n0\n", 2)
    assert len(done.paths(Loaded.STARTED)) == 2


def test_a_real_library_that_another_client_brings_along_is_found(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    """As cuBLAS of faiss's package, for CuPy, which takes it to be installed; it has needs of its own."""
    inner = compile_c("real/libcublasLt.so.12", "int inner(void) { return 3; }", *SHARED)
    source = "int inner(void), cublasTell(void); int cublasTell(void) { return inner(); }"
    own = ("-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN")
    cublas = compile_c("real/libcublas.so.12", source, *SHARED, *own, "-Lreal", f"-l:{inner.name}")
    source = "int cublasTell(void); int client(void) { return cublasTell(); }"
    compile_c("finds.so", source, *SHARED, f"{own[1]}/real", "-Lreal", f"-l:{cublas.name}")
    loose = compile_c("loose.so", source, *SHARED, "-Lreal", f"-l:{cublas.name}")
    tell = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).client())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert run(sys.executable, "-c", tell, loose, capfd=capfd, environment=environment).written == "3\n"


@pytest.mark.parametrize("computes", [True, False])
def test_a_library_that_computes_is_ours_although_it_is_installed(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str], computes: bool
) -> None:
    """By its path, as JAX opens it, and as what a module needs that finds it by a path of its own."""
    pytest.importorskip("scipy", reason="functions of libraries compute with quiesce[libraries]")
    source = f"int cublasCreate_v2(void **made) {{ return {REAL_ANSWER}; }}"
    path = compile_c("real/libcublas.so.12", source, *SHARED, "-Wl,-soname,libcublas.so.12")
    source = "int cublasCreate_v2(void **); int create(void **made) { return cublasCreate_v2(made); }"
    client = compile_c("client.so", source, *SHARED, f"-Wl,-rpath,{path.parent}", str(path))
    create = """
import ctypes, sys
made = ctypes.c_void_p()
print(ctypes.CDLL(sys.argv[1]).create(ctypes.byref(made)), ctypes.CDLL(sys.argv[2]).cublasCreate_v2(ctypes.byref(made)))
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = (sys.executable, "-c", create, client, path)
    done = run(*words, capfd=capfd, environment=environment, libraries=computes)
    assert done.written == ("0 0\n" if computes else f"{REAL_ANSWER} {REAL_ANSWER}\n")


def test_a_users_own_module_is_asked_first(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    source = """
#include <stdio.h>
#include <string.h>
#include <stdint.h>
unsigned la_version(unsigned version) { return version; }
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
    if (flag == 1 && strstr(name, "cudart")) { printf("%s\\n", name); fflush(stdout); }
    return (char *)name;
}"""
    own = compile_c("own.so", source, *SHARED)
    path = real(tmp_path / "libcudart.so.12", "libcudart.so.12")
    environment = {**os.environ, "LD_AUDIT": str(own)}
    done = run(sys.executable, "-c", OPEN, path, capfd=capfd, environment=environment)
    assert (done.written, done.blocks) == (f"{path}\n0\n", 1)


def test_outside_of_a_run_the_module_does_nothing(tmp_path: Path) -> None:
    path = real(tmp_path / "libcudart.so.12", "libcudart.so.12")
    environment = {**os.environ, "LD_AUDIT": str(build_audit())}
    done = subprocess.run([sys.executable, "-c", OPEN, path], env=environment, capture_output=True, check=True)
    assert done.stdout == b"100\n"


STORAGE = """
__thread char storage[BYTES] __attribute__((tls_model("initial-exec")));
char *place(void) { return storage; }"""


@pytest.mark.parametrize(("size_bytes", "kinds"), [(3000, {"started"}), (100_000, {"started", "unheard"})])
def test_a_library_with_static_thread_local_storage_can_be_loaded(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str], size_bytes: int, kinds: set[str]
) -> None:
    """With more of it than a loader with a module has room for, the program begins again without: as it was called."""
    own = compile_c("libown.so", STORAGE, *SHARED, f"-DBYTES={size_bytes}")
    source = """
#include <stdio.h>
#include <stdlib.h>
char *place(void);
int main(int count, char **words) {
    *place() = 1;
    for (int each = 0; each < count; each++) printf("%s|", words[each]);
    printf("%s\\n", getenv("OWN"));
}"""
    program = compile_c("program", source, str(own), f"-Wl,-rpath,{tmp_path}")
    done = run(program, "a b", "", "c", capfd=capfd, environment={**os.environ, "OWN": "an own\nline"})
    assert done.written == f"{program}|a b||c|an own\nline\n"
    assert {load.kind.value for load in done.loads} == kinds


def test_a_user_who_sets_the_room_for_it_keeps_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tell = "import os; print(os.environ['GLIBC_TUNABLES'])"
    for own, told in (
        ("glibc.malloc.check=1", "glibc.malloc.check=1:glibc.rtld.optional_static_tls=4096\n"),
        ("glibc.rtld.optional_static_tls=2048", "glibc.rtld.optional_static_tls=2048\n"),
    ):
        environment = {**os.environ, "GLIBC_TUNABLES": own}
        assert run(sys.executable, "-c", tell, capfd=capfd, environment=environment).written == told


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_programs_that_look_for_a_file_of_the_device_find_it(
    capfd: pytest.CaptureFixture[str], compile_c: Compile, flavour: str
) -> None:
    """As JAX does; a program in C has the functions that Python's does not call."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver of NVIDIA's")
    program = """
import os, stat
for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia7", "/dev/null"):
    found = os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode) and os.access(path, os.R_OK)
    print(int(found), int(os.path.lexists(path)), end=" ")
"""
    is_there = flavour.startswith("cuda")
    expected = "1 1 1 1 0 0 1 1 " if is_there else "0 0 0 0 0 0 1 1 "
    assert run(sys.executable, "-c", program, capfd=capfd, flavour=flavour).written == expected
    source = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    struct stat found;
    struct statx more = {0};
    const char *path = "/dev/nvidia0";
    printf("%d ", fstatat(AT_FDCWD, path, &found, 0) == 0 && S_ISCHR(found.st_mode));
    printf("%d ", statx(AT_FDCWD, path, 0, STATX_TYPE, &more) == 0 && S_ISCHR(more.stx_mode));
    printf("%d ", faccessat(AT_FDCWD, path, F_OK, 0) == 0);
    return 0;
}"""
    expected = "1 1 1 " if is_there else "0 0 0 "
    assert run(compile_c("looks", source), capfd=capfd, flavour=flavour).written == expected
