"""Programs whose runtimes handle SIGSEGV: accesses of the host are seen there, and what is theirs stays theirs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.program_rules import ORDERED

pytestmark = pytest.mark.usefixtures("library")

LIBRARY: Final = """
return 0;
}
static volatile int sum;
int read_too_early(void) {
    handle stream;
    char *device, *host;
    cudaStreamCreate(&stream), cudaHostAlloc((void **)&host, 8192, 0), cudaMalloc((void **)&device, 8192);
    cudaMemset(device, 3, 8192), cudaDeviceSynchronize();
    cudaMemcpyAsync(host, device, 8192, 2, stream);
    sum += host[77];
    cudaStreamSynchronize(stream);
    cudaFree(device), cudaFreeHost(host), cudaStreamDestroy(stream);
    return sum;
}
int JNI_OnLoad(void *machine, void *reserved) {
    (void)machine, (void)reserved, read_too_early();
    return 0x00010006;
}
void *napi_register_module_v1(void *environment, void *exports) {
    (void)environment, read_too_early();
    return exports;
"""
# Memory of one page, and a function that loads a word from it: V8 leaves the check of the address to the processor.
NODE: Final = """
const text = '0061736d0100000001060160017f017f030201000503010001070501016700000a0901070020002802000b'
const code = Buffer.from(text, 'hex')
const load = new WebAssembly.Instance(new WebAssembly.Module(code)).exports.g
let faults = 0
const fault = () => { try { load(1 << 24) } catch (error) { faults += error instanceof WebAssembly.RuntimeError } }
fault()
process.dlopen({exports: {}}, process.argv[2])
for (let i = 0; i < 10; i++) fault()
if (faults != 11) process.exit(3)
"""
JAVA: Final = """
class Faults {
    int value = 1;
    static int valueOf(Faults of) { return of.value; }
    static int faults() {
        int faults = 0, sum = 0;
        Faults one = new Faults();
        for (int i = 0; i < 300000; i++) sum += valueOf(one);
        for (int i = 0; i < 10; i++) try { sum += valueOf(null); } catch (NullPointerException fault) { faults++; }
        return faults;
    }
    public static void main(String[] words) {
        int before = faults();
        System.load(words[0]);
        if (before + faults() != 20) System.exit(3);
    }
}
"""
GO: Final = """
package main

// #cgo LDFLAGS: %s -Wl,--allow-shlib-undefined
// int read_too_early(void);
import "C"
import "os"

func fault(of *int) (is bool) {
	defer func() { is = recover() != nil }()
	return *of == 0
}

func main() {
	before := fault(nil)
	C.read_too_early()
	if !before || !fault(nil) {
		os.Exit(3)
	}
}
"""
PYTHON: Final = """
import ctypes, faulthandler, sys
faulthandler.enable()
library = ctypes.CDLL(sys.argv[1])
library.read_too_early()
faulthandler.disable()
library.read_too_early()
faulthandler.enable()
library.read_too_early()
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_client(
        tmp_path_factory.mktemp("faults"), LIBRARY, name="client.so", flags=("-shared", "-fPIC", "-g")
    )


def _run_in(*command: str | Path) -> None:
    """Run a program that reads too early, and handles faults of its own before and afterwards."""
    words = [sys.executable, "-m", "quiesce", "exec", "--", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == {ORDERED}, done.stdout
    assert "before a read of the host" in done.stdout
    assert "handles SIGSEGV itself" not in done.stderr + done.stdout
    assert "ended with status" not in done.stderr + done.stdout
    assert "atal" not in done.stderr  # neither faulthandler nor the machine of Java has seen a fatal error


def test_python_with_its_fault_handler_switched_on_and_off(client: Path) -> None:
    _run_in(sys.executable, "-c", PYTHON, client)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_node_handles_faults_of_webassembly(client: Path, tmp_path: Path) -> None:
    (tmp_path / "faults.js").write_text(NODE, encoding="utf-8")
    _run_in("node", tmp_path / "faults.js", client)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("javac"), reason="needs a JDK")
def test_java_handles_null_pointers(client: Path, tmp_path: Path) -> None:
    (tmp_path / "Faults.java").write_text(JAVA, encoding="utf-8")
    subprocess.run(["javac", "Faults.java"], cwd=tmp_path, check=True)
    _run_in("java", "-cp", tmp_path, "Faults", client)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("go"), reason="needs Go")
def test_go_handles_null_pointers(client: Path, tmp_path: Path) -> None:
    (tmp_path / "faults.go").write_text(GO % client, encoding="utf-8")
    build = ["go", "build", "-o", "faults", "faults.go"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _run_in(tmp_path / "faults")
