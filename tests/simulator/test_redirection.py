"""A CUDA runtime that is linked into a program statically is redirected to the simulated one, before anything runs."""

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
from tests.simulator.linked_runtimes import NEWER, REAL_ANSWER, link, linkers, make_archive
from tests.simulator.linked_runtimes import run as run_tool

from quiesce.simulator.runtime.build import find_compiler
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.loads import Load, Loaded

pytestmark = pytest.mark.usefixtures("library")

SHARED = ("-shared", "-fPIC")
MALLOC = """
int try(void) { void *made = NULL; int answer = cudaMalloc(&made, 100); return answer ? answer : !made; }
"""
ASK_FOR_A_TABLE = """
#include <dlfcn.h>
static int ask_for_a_table(void) {
    const void *table;
    int (*ask)(const void **, const void *) =
        (int (*)(const void **, const void *))dlsym(dlopen("libcuda.so.1", 2), "cuGetExportTable");
    return ask(&table, &table);
}
"""
MAIN = MALLOC + 'int main(void) { printf("%d\\n", try()); return 0; }'
OPEN = """
import ctypes, sys
for path in sys.argv[1:]:
    print(ctypes.CDLL(path).try_())
""".replace("try_()", "__getattr__('try')()")


@dataclass(frozen=True)
class Done:
    """What a run wrote, how many calls it made of the simulated runtime, of which version, and what its loaders did."""

    written: str
    calls: int
    versions: tuple[int, ...]
    loads: tuple[Load, ...]
    complaints: str = ""

    def told(self, kind: Loaded) -> list[tuple[str, str]]:
        return [(load.path.name, load.detail) for load in self.loads if load.kind is kind]


def run(
    *words: object,
    capfd: pytest.CaptureFixture[str],
    environment: Mapping[str, str] = os.environ,
    flavour: str = "cuda:12",
    redirects: bool = True,
    **options: int,
) -> Done:
    settings = MachineSettings(parse_flavour(flavour), options=options, redirects=redirects)
    with run_program([*map(str, words)], settings, environment) as ended:
        calls, versions = 0, []
        for path in ended.ledgers:
            with open_ledger(path) as ledger:
                calls += ledger.observations
                versions.append(ledger.version)
        written = capfd.readouterr()
        return Done(written.out, calls, tuple(versions), ended.loads, written.err)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    find_compiler()
    return make_archive(tmp_path_factory.mktemp("archive"))


@pytest.mark.parametrize("linker", linkers())
@pytest.mark.parametrize("kind", ["-pie", "-no-pie", "-shared"])
def test_its_calls_reach_the_simulated_runtime(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str], linker: str, kind: str
) -> None:
    flags = (f"-fuse-ld={linker}", kind, *(() if kind == "-no-pie" else ("-fPIC",)))
    made = link(tmp_path, "client", MALLOC if kind == "-shared" else MAIN, archive, *flags)
    words = (sys.executable, "-c", OPEN, made) if kind == "-shared" else (made,)
    done = run(*words, capfd=capfd)
    assert (done.written, done.calls) == ("0\n", 1)
    assert done.told(Loaded.REDIRECTED) == [("client", "12090")]
    assert done.told(Loaded.UNREDIRECTED) == []


@pytest.mark.parametrize(("redirects", "told"), [(True, False), (False, True)])
def test_a_compiler_next_to_it_is_no_runtime_that_went_without(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str], redirects: bool, told: bool
) -> None:
    asking = MAIN.replace("int main(void) {", ASK_FOR_A_TABLE + "int main(void) { ask_for_a_table();")
    done = run(link(tmp_path, "client", asking, archive), capfd=capfd, redirects=redirects)
    assert ("cuGetExportTable is not simulated" in done.complaints) == told


def test_without_a_run_it_fails_as_it_would(tmp_path: Path, archive: Path) -> None:
    program = link(tmp_path, "client", MAIN, archive)
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"%d\n" % REAL_ANSWER


def test_a_user_may_refuse_it(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = run(link(tmp_path, "client", MAIN, archive), capfd=capfd, redirects=False)
    assert done.written == f"{REAL_ANSWER}\n"
    assert done.told(Loaded.UNREDIRECTED) == [("client", "as --static-runtime says")]


@pytest.mark.parametrize("flags", [("-Wl,-z,now",), ("-Wl,-z,relro", "-Wl,-z,lazy"), ("-fcf-protection",)])
def test_the_protection_of_a_program_does_not_matter(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    protected = make_archive(tmp_path, flags=[flag for flag in flags if flag.startswith("-f")])
    done = run(link(tmp_path, "client", MAIN, protected, *flags), capfd=capfd)
    assert (done.written, done.calls) == ("0\n", 1)


def test_a_constructor_is_redirected_already(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    early = MALLOC + "static int answer; __attribute__((constructor)) static void early(void) { answer = try(); }"
    program = link(tmp_path, "program", early + 'int main(void) { printf("%d\\n", answer); return 0; }', archive)
    assert run(program, capfd=capfd).written == "0\n"
    early = (
        early.replace("int try", "static int first").replace("= try", "= first") + "int try(void) { return answer; }"
    )
    library = link(tmp_path, "library.so", early, archive, *SHARED)
    assert run(sys.executable, "-c", OPEN, library, capfd=capfd).written == "0\n"
    needed = (str(library), f"-Wl,-rpath,{tmp_path}")
    user = link(
        tmp_path, "user", 'int try(void); int main(void) { printf("%d\\n", try()); return 0; }', library, *needed
    )
    assert run(user, capfd=capfd).written == "0\n", "a library that the program starts with"


def test_it_may_be_closed_and_opened_again(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = link(tmp_path, "library.so", MALLOC, archive, *SHARED)
    again = """
import _ctypes, ctypes, sys
for _ in range(3):
    opened = ctypes.CDLL(sys.argv[1])
    print(getattr(opened, "try")())
    _ctypes.dlclose(opened._handle)
assert sys.argv[1] not in open("/proc/self/maps").read()
"""
    done = run(sys.executable, "-c", again, library, capfd=capfd)
    assert (done.written, done.calls) == ("0\n0\n0\n", 3)


def test_debuggers_find_a_redirected_library_where_it_is(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They take an object's address from where the loader says that its dynamic section is."""
    where = """
#define _GNU_SOURCE
#include <link.h>
extern ElfW(Dyn) _DYNAMIC[];
int main(void) { printf("%d %d\\n", try(), _r_debug.r_map->l_ld == _DYNAMIC); return 0; }"""
    source = where.replace("int main", MALLOC + "int main")
    assert run(link(tmp_path, "client", source, archive), capfd=capfd).written == "0 1\n"


def test_several_in_one_process_share_one_device(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    libraries = [link(tmp_path, f"library{each}.so", MALLOC, archive, *SHARED) for each in range(3)]
    done = run(sys.executable, "-c", OPEN, *libraries, capfd=capfd)
    assert (done.written, done.calls, done.versions) == ("0\n0\n0\n", 3, (12,))
    assert len(done.told(Loaded.REDIRECTED)) == 3


def test_children_are_redirected_too(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = link(tmp_path, "client", MAIN, archive)
    done = run(shutil.which("sh"), "-c", f"{program}; LD_LIBRARY_PATH= {program}", capfd=capfd)
    assert (done.written, done.calls, len(done.versions)) == ("0\n0\n", 2, 2)


def test_a_library_that_cannot_be_loaded_leaves_nothing_behind(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    needed = link(tmp_path, "libneeded.so", "int needed;", archive, *SHARED)
    broken = link(tmp_path, "broken.so", MALLOC, archive, *SHARED, "-Wl,--no-as-needed", str(needed))
    needed.unlink()
    whole = link(tmp_path, "whole.so", MALLOC, archive, *SHARED)
    tries = """
import ctypes, sys
for path in sys.argv[1:]:
    try:
        print(getattr(ctypes.CDLL(path), "try")())
    except OSError as error:
        print("libneeded.so" in str(error))
"""
    done = run(sys.executable, "-c", tries, broken, whole, broken, whole, capfd=capfd)
    assert done.written == "True\n0\nTrue\n0\n"


def test_a_function_that_nobody_simulates_fails_by_name(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = f'int main(void) {{ for (int i = 0; i < 3; i++) printf("%d\\n", {NEWER}()); return 0; }}'
    done = run(link(tmp_path, "client", body, archive), capfd=capfd)
    assert done.written == "801\n801\n801\n"
    assert done.complaints.count(f"{NEWER} is not simulated: it returns 801") == 1
    assert done.calls == 3


def test_a_part_of_a_runtime_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    part = make_archive(tmp_path, least=280)
    done = run(
        link(tmp_path, "client", "int main(void) { return __cudaPopCallConfiguration(0, 0, 0, 0) != 100; }", part),
        capfd=capfd,
    )
    assert done.told(Loaded.REDIRECTED) == []
    assert done.told(Loaded.UNREDIRECTED) == [("client", "only a part of its functions was found")]


def test_a_client_of_a_shared_runtime_is_left_alone(
    tmp_path: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    """It has functions and texts of such names, and opens libraries by itself."""
    own = [f'int cudaOwn{each}(void) {{ return *"cudaOwn{each}"; }}' for each in range(400)]
    source = (
        "\n".join(own)
        + """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int mkfifo(const char *, unsigned);
void *sharing[] = {dlvsym, mkfifo};
int main(void) { printf("%d\\n", !dlsym(dlopen("libcuda.so.1", 1), "none") * cudaOwn1()); return 0; }"""
    )
    done = run(compile_c("client", source, "-rdynamic"), capfd=capfd)
    assert done.written == f"{ord('c')}\n"
    assert (done.told(Loaded.REDIRECTED), done.told(Loaded.UNREDIRECTED)) == ([], [])


@pytest.mark.parametrize(("version", "major"), [(11080, 11), (12040, 12), (13020, 13), (14000, 12)])
def test_the_simulated_runtime_follows_its_version(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], version: int, major: int
) -> None:
    made = make_archive(tmp_path, version=version)
    told = 'int main(void) { void *m; int v; cudaMalloc(&m, 1); cudaRuntimeGetVersion(&v); printf("%d", v); return 0; }'
    program = link(tmp_path, "client", told, made)
    done = run(program, capfd=capfd, follows=1)
    assert (int(done.written) // 1000, done.versions) == (major, (major,))
    assert done.told(Loaded.REDIRECTED) == [("client", str(version))]
    assert run(program, capfd=capfd).versions == (12,), "a flavour that was asked for stays"


def test_a_users_own_module_and_library_are_joined(
    tmp_path: Path, archive: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    module = """
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    if (strstr(map->l_name, "library.so")) { puts("module"); fflush(stdout); }
    *cookie = 7;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
void la_activity(uintptr_t *cookie, unsigned flag) {}
unsigned la_objclose(uintptr_t *cookie) { return 0; }"""
    audit = compile_c("own-audit.so", module, *SHARED)
    preload = compile_c("own-preload.so", "int close_calls; int puts_own(void) { return 5; }", *SHARED)
    library = link(tmp_path, "library.so", MALLOC, archive, *SHARED)
    environment = {**os.environ, "LD_AUDIT": str(audit), "LD_PRELOAD": str(preload)}
    code = OPEN + "print(ctypes.CDLL(None).puts_own())"
    done = run(sys.executable, "-c", code, library, capfd=capfd, environment=environment)
    assert (done.written.replace("module\n", "", 1), done.calls) == ("0\n5\n", 1)
    assert "module" in done.written


def test_a_preloaded_library_is_redirected(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = link(tmp_path, "library.so", MALLOC, archive, *SHARED)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    code = "import ctypes; print(getattr(ctypes.CDLL(None), 'try')())"
    assert run(sys.executable, "-c", code, capfd=capfd, environment=environment).written == "0\n"


def test_code_is_never_writable_and_code_at_once(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = (
        MALLOC
        + """
int main(void) {
    char line[4096], kind[8];
    try();
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%*s %7s", kind) == 1 && !strncmp(kind, "rwx", 3)) puts(line);
    return 0;
}"""
    )
    assert run(link(tmp_path, "client", body, archive), capfd=capfd).written == ""


def test_a_stripped_program_is_redirected(tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = link(tmp_path, "client", MAIN, archive)
    run_tool(["strip", str(program)])
    assert run(program, capfd=capfd).written == "0\n"


def test_symbols_and_names_that_contradict_each_other_are_left_alone(
    tmp_path: Path, archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = link(tmp_path, "client", MAIN, archive)
    swapped = ("cudaMalloc=other", "cudaFree=cudaMalloc", "other=cudaFree")
    for each in swapped:
        run_tool(["objcopy", f"--redefine-sym={each}", str(program)])
    done = run(program, capfd=capfd)
    assert done.written == f"{REAL_ANSWER}\n"
    assert done.told(Loaded.UNREDIRECTED) == [("client", "its symbols and its names contradict each other")]


def test_where_the_system_forbids_it_the_file_stays_as_it_was(
    tmp_path: Path, archive: Path, compile_c: Compile, capfd: pytest.CaptureFixture[str]
) -> None:
    """As SELinux may; here the process itself forbids that memory becomes code (prctl(2), PR_SET_MDWE)."""
    without = make_archive(tmp_path, without=[NEWER])  # that has to be made
    libraries = [link(tmp_path, name, MALLOC, each, *SHARED) for name, each in (("a.so", archive), ("b.so", without))]
    source = """
#include <dlfcn.h>
#include <stdio.h>
int prctl(int, ...);
int main(int count, char **words) {
    if (prctl(65, 1L, 0L, 0L, 0L)) return 77;
    while (*++words) {
        void *library = dlopen(*words, RTLD_NOW);
        printf("%d\\n", library ? ((int (*)(void))dlsym(library, "try"))() : -1);
    }
    return 0;
}"""
    program = compile_c("program", source)
    if subprocess.run([program, *libraries], capture_output=True, check=False).returncode == 77:
        pytest.skip("this kernel can't forbid it")
    done = run(program, *libraries, capfd=capfd)
    assert done.written == f"{REAL_ANSWER}\n" * 2
    assert done.told(Loaded.REDIRECTED) == []
    assert done.told(Loaded.UNREDIRECTED) == [
        ("a.so", "the system does not let functions be made"),
        ("b.so", "the system does not let code run that was written to"),
    ]
