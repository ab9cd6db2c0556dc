"""A client of GPU libraries that are not there is loaded, whole, and only what is missing is made up."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.conftest import Compile, Run

from quiesce.model.errors import ConfigurationError, UnreadableObject
from quiesce.simulator.runtime.elf_reading import Tag, read_undefined
from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
from quiesce.simulator.runtime.stubs import Process, Simulator, Stubs, gpu_modules, stubs_needed, write_stubs
from quiesce.simulator.runtime.vendor_libraries import functions_of

PROGRAM = Path(sys.executable)
SHARED = ("-shared", "-fPIC")
LOAD = """
import ctypes, os, sys
module = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
print(module.client())
"""


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir()
    return folder


@pytest.fixture
def simulator(tmp_path: Path) -> Simulator:
    """Return a simulator that simulates nothing but ``hipMalloc``, and that by failing as well."""
    path = tmp_path / "libsimulator.so"
    path.write_bytes(write_library(StubLibrary("libsimulator.so", (StubFunction("hipMalloc", 2),))))
    return Simulator(path, ("libamdhip64.so.7", "libamdhip64.so"))


def functions(stubs: Stubs) -> dict[str, set[str]]:
    return {library.soname: {function.name for function in library.functions} for library in stubs.libraries}


def linked(
    compile_c: Compile, tmp_path: Path, name: str, source: str, *sonames: str, flags: tuple[str, ...] = ()
) -> Path:
    """Compile an extension that needs libraries of these names, which nobody has."""
    paths = []
    for soname in sonames:
        path = tmp_path / "absent" / soname
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(write_library(StubLibrary(soname)))
        paths.append(str(path))
    made = compile_c(name, source, *SHARED, "-Wl,--no-as-needed", *paths, "-Wl,--unresolved-symbols=ignore-all", *flags)
    for absent in paths:
        Path(absent).unlink()
    return made


def test_an_extension_with_hundreds_of_undefined_functions_is_loaded(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    names = [f"{prefix}{number}" for number in range(175) for prefix in ("hip", "hipblas", "rocsolver_", "roctx")]
    calls = "\n".join(f"    if (stop < {index}) total += {name}();" for index, name in enumerate(names))
    source = "\n".join(f"int {name}(void);" for name in names)
    source += f"\nvolatile int stop = 9999;\nint client(void) {{\n    int total = 5;\n{calls}\n    return total;\n}}\n"
    needed = ("libamdhip64.so.7", "libhipblas.so.3", "librocsolver.so.0", "libroctx64.so.4")
    module = linked(compile_c, tmp_path, "module.so", source, *needed)
    assert run_python(LOAD, module).returncode == 1  # the libraries are absent
    stubs = write_stubs([Process([module], PROGRAM)], private, simulator)
    placed = functions(stubs)
    known = functions_of("libamdhip64.so")
    assert {soname: len(names - known) for soname, names in placed.items()} == {
        "libamdhip64.so": 0,
        "libamdhip64.so.7": 175,
        "libhipblas.so.3": 175,
        "librocsolver.so.0": 175,
        "libroctx64.so.4": 175,
    }
    done = run_python(LOAD, module, LD_LIBRARY_PATH=str(private))
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")


def test_what_is_simulated_is_not_stubbed(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    source = "int hipMalloc(void); int hipFree(void); int client(void) { return 10000 * hipMalloc() + hipFree(); }"
    module = linked(compile_c, tmp_path, "module.so", source, "libamdhip64.so.7")
    stubbed = functions(write_stubs([Process([module], PROGRAM)], private, simulator))["libamdhip64.so.7"]
    assert "hipFree" in stubbed
    assert "hipMalloc" not in stubbed
    done = run_python(LOAD, module, LD_LIBRARY_PATH=str(private))
    assert done.stdout == "20801\n"
    assert "hipMalloc (libsimulator.so)" in done.stderr
    assert "hipFree (libamdhip64.so.7)" in done.stderr


def test_what_is_simulated_is_not_stubbed_for_a_runtime_of_another_version(
    tmp_path: Path, private: Path, compile_c: Compile
) -> None:
    path = tmp_path / "libsimulator.so"
    path.write_bytes(write_library(StubLibrary("libsimulator.so", (StubFunction("cudaMalloc", 2),))))
    source = "int cudaMalloc(void); int client(void) { return cudaMalloc(); }"
    module = linked(compile_c, tmp_path, "module.so", source, "libcudart.so.13")
    simulator = Simulator(path, ("libcudart.so.12", "libcudart.so"))
    stubbed = functions(write_stubs([Process([module], PROGRAM)], private, simulator))["libcudart.so.13"]
    assert "cudaMalloc" not in stubbed
    assert "cudaFree" in stubbed


@pytest.mark.parametrize("kernels_run", [False, True])
def test_a_compiler_is_simulated_only_where_kernels_run(
    tmp_path: Path, private: Path, compile_c: Compile, run_python: Run, kernels_run: bool
) -> None:
    soname = "libnvrtc.so.99"  # no machine has it: an installed one would be used as it is
    path = tmp_path / "libsimulator.so"
    path.write_bytes(write_library(StubLibrary("libsimulator.so", (StubFunction("simulated_nvrtcCompileProgram", 6),))))
    source = "int nvrtcCompileProgram(void); int client(void) { return nvrtcCompileProgram(); }"
    module = linked(compile_c, tmp_path, "module.so", source, soname)
    simulator = Simulator(path, (soname,) if kernels_run else ())
    write_stubs([Process([module], PROGRAM)], private, simulator)
    done = run_python(LOAD, module, LD_LIBRARY_PATH=str(private))
    assert done.stdout == f"{6 if kernels_run else 11}\n", done.stderr
    assert (f"nvrtcCompileProgram ({soname}) is not simulated" in done.stderr) is not kernels_run


def test_a_runtime_that_is_opened_by_name_offers_what_is_simulated(
    private: Path, simulator: Simulator, run_python: Run
) -> None:
    write_stubs([], private, simulator)
    done = run_python(
        "import ctypes; hip = ctypes.CDLL('libamdhip64.so'); print(hip.hipMalloc(), hasattr(hip, 'hipFree'))",
        LD_LIBRARY_PATH=str(private),
    )
    assert done.stdout == "2 True\n", "what the vendor's has and ours does not fails by name"


def test_each_scope_gets_what_it_misses(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    """Two modules miss one function, and have no library in common that could define it."""
    source = "int hip_strange(void); int client(void) { return hip_strange(); }"
    one = linked(compile_c, tmp_path, "one.so", source, "librocblas.so.5")
    two = linked(compile_c, tmp_path, "two.so", source, "librocfft.so.0")
    stubs = write_stubs([Process([one, two], PROGRAM)], private, simulator)
    assert functions(stubs)["librocblas.so.5"] == functions(stubs)["librocfft.so.0"] == {"hip_strange"}
    for module, soname in ((one, "librocblas.so.5"), (two, "librocfft.so.0")):
        done = run_python(LOAD, module, LD_LIBRARY_PATH=str(private))
        assert done.returncode == -signal.SIGABRT  # it could return anything
        assert f"quiesce: hip_strange ({soname}) is not simulated: what it returns is not known" in done.stderr


def test_a_version_leads_to_its_library(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    """The name would suit no library's family; only the version says where it belongs, and must be there."""
    (tmp_path / "versions").write_text("libcusolver.so.11 { global: strange_name; };")
    real = compile_c(
        "absent/libcusolver.so.11",
        "int strange_name(void) { return 0; }",
        *(*SHARED, "-Wl,--version-script=versions", "-Wl,-soname,libcusolver.so.11"),
    )
    source = (
        "int strange_name(void); int (*volatile pointer)(void) = strange_name; int client(void) { return !pointer; }"
    )
    module = compile_c("module.so", source, *SHARED, str(real))
    real.unlink()
    stubs = write_stubs([Process([module], PROGRAM)], private, simulator)
    assert "strange_name" in functions(stubs)["libcusolver.so.11"]
    assert run_python(LOAD, module, LD_LIBRARY_PATH=str(private)).stdout == "0\n"


def test_a_program_is_started_without_a_word_about_versions(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile
) -> None:
    """The loader checks the versions of what a program needs at its start, and warns of a library without them."""
    (tmp_path / "versions").write_text("hip_4.2 { global: hipInit; }; hip_6.0 { global: hipMalloc; } hip_4.2;")
    real = compile_c(
        "absent/libamdhip64.so.7",
        "int hipInit(void) { return 0; } int hipMalloc(void) { return 0; }",
        *(*SHARED, "-Wl,--version-script=versions", "-Wl,-soname,libamdhip64.so.7"),
    )
    source = "int hipInit(void); int hipMalloc(void); int main(void) { return 10 * hipMalloc() + (hipInit() == 801); }"
    program = compile_c("program", source, str(real))
    real.unlink()
    write_stubs([Process([program], program)], private, simulator)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(private), "LD_BIND_NOW": "1"}
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 21
    assert [line.partition(" is not")[0] for line in done.stderr.splitlines()] == [
        "quiesce: hipMalloc (libsimulator.so)",
        "quiesce: hipInit (libamdhip64.so.7)",
    ]


def test_what_others_define_and_weak_references_are_let_be(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile
) -> None:
    """A real neighbour defines a function with a vendor's name; the program defines Python's; one may be missing."""
    neighbour = compile_c("libneighbour.so", "int rocblas_of_neighbour(void) { return 3; }", *SHARED)
    source = """
int rocblas_of_neighbour(void); int rocblas_dgemm(void); int PyErr_Occurred(void);
__attribute__((weak)) int rocblas_maybe(void);
int client(void) { return rocblas_of_neighbour() + (rocblas_maybe ? 1 : 0) + PyErr_Occurred() + rocblas_dgemm(); }
"""
    flags = (str(neighbour), "-Wl,-rpath,$ORIGIN")
    module = linked(compile_c, tmp_path, "module.so", source, "librocblas.so.5", flags=flags)
    assert functions(write_stubs([Process([module], PROGRAM)], private, simulator))["librocblas.so.5"] == {
        "rocblas_dgemm"
    }


def test_a_library_of_the_same_package_counts_as_loaded_before(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile
) -> None:
    """Its folder is not on any search path: the package loads it before the module that needs it."""
    (tmp_path / "package").mkdir()
    inner = compile_c("package/libinner.so", "int rocblas_inner(void) { return 3; }", *SHARED)
    source = "int rocblas_inner(void); int rocblas_x(void); int client(void) { return rocblas_inner() + rocblas_x(); }"
    flags = ("-Lpackage", "-l:libinner.so")
    module = linked(compile_c, tmp_path, "module.so", source, "librocblas.so.5", flags=flags)
    stubs = write_stubs([Process([module, inner], PROGRAM)], private, simulator)
    assert functions(stubs)["librocblas.so.5"] == {"rocblas_x"}
    assert dict(stubs.missing) == {}
    assert dict(write_stubs([Process([module], PROGRAM)], private, simulator).missing) == {module: ("libinner.so",)}


def test_a_library_that_was_not_linked_with_what_it_calls_is_served(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    """It finds a vendor's function in the scope of the module that needs both."""
    source = "int rocblas_dgemm(void); int inner(void) { return rocblas_dgemm(); }"
    compile_c("libinner.so", source, *SHARED)
    source = "int inner(void); int client(void) { return inner(); }"
    flags = ("-L.", "-l:libinner.so", "-Wl,-rpath,$ORIGIN")
    module = linked(compile_c, tmp_path, "module.so", source, "librocblas.so.5", flags=flags)
    assert functions(write_stubs([Process([module], PROGRAM)], private, simulator))["librocblas.so.5"] == {
        "rocblas_dgemm"
    }
    assert run_python(LOAD, module, LD_LIBRARY_PATH=str(private)).stdout == "2\n"


def test_a_variable_gets_room(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, run_python: Run
) -> None:
    real = compile_c("absent/librocblas.so.5", "char rocblas_table[8];", *SHARED, "-Wl,-soname,librocblas.so.5")
    source = "extern char rocblas_table[8]; int client(void) { return rocblas_table[7]; }"
    module = compile_c("module.so", source, *SHARED, str(real))
    real.unlink()
    (library,) = (
        each for each in write_stubs([Process([module])], private, simulator).libraries if "rocblas" in each.soname
    )
    assert ([each.name for each in library.objects], library.functions) == (["rocblas_table"], ())
    assert run_python(LOAD, module, LD_LIBRARY_PATH=str(private)).stdout == "0\n"


def test_a_real_library_is_left_alone(tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile) -> None:
    """One client finds it by itself; the other would find it loaded. A stub would come before it for both."""
    (tmp_path / "real").mkdir()
    real = compile_c("real/librocblas.so.5", "int rocblas_dgemm(void) { return 3; }", *SHARED)
    source = "int rocblas_dgemm(void); int client(void) { return rocblas_dgemm(); }"
    runpath = ("-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/real")
    finds = compile_c("finds.so", source, *SHARED, *runpath, "-Lreal", "-l:librocblas.so.5")
    loose = compile_c("loose.so", source, *SHARED, "-Lreal", "-l:librocblas.so.5")
    for files in ([finds, loose], [loose, finds]):
        stubs = write_stubs([Process(files, PROGRAM)], private, simulator)
        assert {name: path.resolve() for name, path in stubs.left_real.items()} == {"librocblas.so.5": real.resolve()}
        assert {name: path.resolve() for name, path in stubs.taken_as_loaded.items()} == {real.name: real.resolve()}
        assert set(functions(stubs)) == {"libamdhip64.so", "libamdhip64.so.7"}


@pytest.mark.parametrize("soname", ["libcudart.so.13", "libamdhip64.so.5", "librocm_smi64.so.1"])
def test_an_installed_runtime_is_stubbed_whatever_its_version(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile, soname: str
) -> None:
    (tmp_path / "real").mkdir()
    compile_c(f"real/{soname}", "int hipMalloc(void) { return 3; }", *SHARED)
    source = "int hipMalloc(void); int client(void) { return hipMalloc(); }"
    finds = compile_c("finds.so", source, *SHARED, "-Wl,-rpath,$ORIGIN/real", "-Lreal", f"-l:{soname}")
    stubs = write_stubs([Process([finds], PROGRAM)], private, simulator, [str(tmp_path / "real")])
    assert set(functions(stubs)) == {"libamdhip64.so", "libamdhip64.so.7", soname}
    assert stubs.left_real == {}


def test_a_missing_library_of_nobodys_is_named(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile
) -> None:
    source = "int elsewhere(void); int rocblas_x(void); int client(void) { return elsewhere() + rocblas_x(); }"
    module = linked(compile_c, tmp_path, "module.so", source, "libelsewhere.so.1", "librocblas.so.5")
    stubs = write_stubs([Process([module], PROGRAM)], private, simulator)
    assert dict(stubs.missing) == {module: ("libelsewhere.so.1",)}
    assert functions(stubs)["librocblas.so.5"] == {"rocblas_x"}  # whose `elsewhere` is can't be told


def test_modules_are_found_by_what_they_need(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "package").mkdir(parents=True)
    gpu, cpu = StubLibrary("gpu.so", needed=("libcudart.so.12",)), StubLibrary("cpu.so", needed=("libm.so.6",))
    (site / "package" / "gpu.cpython-311-x86_64-linux-gnu.so").write_bytes(write_library(gpu))
    (site / "package" / "libgpu.so.1.2").write_bytes(write_library(gpu))
    (site / "package" / "cpu.so").write_bytes(write_library(cpu))
    (site / "package" / "script.so").write_text("GROUP ( libm.so.6 )")
    (site / "package" / "notes.so.txt").write_bytes(write_library(gpu))
    size_of_symbols, wrong_size = (struct.pack("<QQ", Tag.SYMENT, size_bytes) for size_bytes in (24, 25))
    broken = write_library(gpu).replace(size_of_symbols, wrong_size)
    (site / "package" / "broken.so").write_bytes(broken)
    with pytest.raises(UnreadableObject, match="its symbols have 25 bytes"):
        read_undefined(site / "package" / "broken.so")
    found = gpu_modules([site, tmp_path / "nowhere"])
    assert [path.name for path in found.files] == ["gpu.cpython-311-x86_64-linux-gnu.so", "libgpu.so.1.2"]
    assert {tmp_path / "nowhere", site / "package", site / "package" / "cpu.so"} <= found.looked_at


def test_nothing_is_written_outside_the_folder(tmp_path: Path, private: Path, simulator: Simulator) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (private / "libamdhip64.so.7").symlink_to(precious)
    before = set(tmp_path.iterdir())
    write_stubs([], private, simulator)
    assert precious.read_text() == "precious"
    assert set(tmp_path.iterdir()) == before
    assert sorted(path.name for path in private.iterdir()) == ["libamdhip64.so", "libamdhip64.so.7"]


@pytest.mark.parametrize("name", ["../libamdhip64.so.7", "/lib/libamdhip64.so.7", "", ".."])
def test_a_name_that_leads_elsewhere_is_refused(private: Path, simulator: Simulator, name: str) -> None:
    with pytest.raises(ConfigurationError, match="write a file name"):
        write_stubs([], private, Simulator(simulator.library, (name,)))
    assert list(private.iterdir()) == []


def test_wrong_files_are_named(tmp_path: Path, private: Path, simulator: Simulator) -> None:
    (tmp_path / "script.py").write_text("import cupy")
    with pytest.raises(UnreadableObject, match=r"script\.py: not a readable ELF file"):
        write_stubs([Process([tmp_path / "script.py"])], private, simulator)
    with pytest.raises(ConfigurationError, match="make it first"):
        write_stubs([], tmp_path / "nowhere", simulator)


def test_what_the_stubs_depend_on_is_told(
    tmp_path: Path, private: Path, simulator: Simulator, compile_c: Compile
) -> None:
    flags = ("-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/beside")
    module = linked(compile_c, tmp_path, "module.so", "int client(void) { return 0; }", "librocblas.so.5", flags=flags)
    stubs = write_stubs([Process([module], PROGRAM)], private, simulator, [str(tmp_path / "elsewhere")])
    assert {module, tmp_path / "beside", tmp_path / "elsewhere", PROGRAM.resolve()} <= stubs.looked_at


def test_a_program_that_needs_nothing_of_a_vendors_needs_no_stubs(
    tmp_path: Path, simulator: Simulator, compile_c: Compile
) -> None:
    module = linked(compile_c, tmp_path, "libmodule.so", "int client(void) { return 0; }", "librocblas.so.5")
    flags = ("-L.", "-l:libmodule.so", "-Wl,-rpath,$ORIGIN", "-Wl,--unresolved-symbols=ignore-all")
    through = compile_c("through", "int client(void); int main(void) { return client(); }", *flags)
    assert stubs_needed(module, simulator)
    assert stubs_needed(through, simulator)
    assert not stubs_needed(PROGRAM.resolve(), simulator)
