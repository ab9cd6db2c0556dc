"""Programs that open NVML while they run: they find the simulated one, with the structures of the vendor's header."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.conftest import Compile
from tests.simulator.test_layouts import folders

from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

NOT_SUPPORTED: Final = 3

FORK: Final = """
import ctypes, os
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
count, handle, memory = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 3
assert nvml.nvmlDeviceGetHandleByIndex_v2(2, ctypes.byref(handle)) == 0
child = os.fork()
if not child:
    block = ctypes.c_void_p()
    made = ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(block), ctypes.c_size_t(100))
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0
    os._exit(made or memory[2] == 0)
assert os.waitpid(child, 0)[1] == 0
assert nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0 and list(memory[:2]) == [5 << 20] * 2
"""


def test_who_asked_it_may_fork_and_the_child_may_use_a_device(library: str) -> None:
    """PyTorch counts devices with it for that reason (PYTORCH_NVML_BASED_CUDA_CHECK)."""
    settings = MachineSettings(parse_flavour("cuda:12"), options={"devices": 3, "capacity": 5 << 20})
    with run_program([sys.executable, "-c", FORK], settings, os.environ) as ended:
        assert (ended.status, len(ended.ledgers)) == (0, 1), "the parent never had a machine"


UNSIMULATED: Final = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so")
print([getattr(nvml, name)(None) for name in ("nvmlDeviceGetBrand", "nvmlDeviceGetBrand")])
"""


def test_the_library_of_a_driver_that_is_opened_by_its_path_is_the_simulated_one(
    library: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "libnvidia-ml.so.550.54.15"
    path.write_bytes(write_library(StubLibrary("libnvidia-ml.so.1", (StubFunction("nvmlInit_v2", 9),))))
    text = f"import ctypes; print(ctypes.CDLL('{path}').nvmlInit_v2())"
    with run_program([sys.executable, "-c", text], MachineSettings(parse_flavour("cuda:12")), os.environ):
        assert capfd.readouterr().out == "0\n"


def test_what_is_not_simulated_says_so_by_name(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    with run_program([sys.executable, "-c", UNSIMULATED], MachineSettings(parse_flavour("cuda:13")), os.environ):
        written = capfd.readouterr()
    assert written.out == f"{[NOT_SUPPORTED] * 2}\n"
    assert written.err.count("quiesce: nvmlDeviceGetBrand (libnvidia-ml.so) is not simulated: it returns 3;") == 1


OF_THE_HEADER: Final = r"""
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <assert.h>
#include <string.h>
int cudaMalloc(void **, unsigned long);
int main(void) {
    void *block;
    nvmlDevice_t device;
    nvmlPciInfo_t pci;
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlProcessInfo_v1_t first[2] = {[1] = {7, 7}};
    nvmlProcessInfo_t later[2] = {[1] = {7, 7, 7, 7}};
    nvmlUtilization_t rates = {7, 7};
    nvmlGpuTopologyLevel_t level;
    nvmlGpuP2PStatus_t status;
    unsigned count = 2;
    assert(cudaMalloc(&block, 4096) == 0 && nvmlInit_v2() == NVML_SUCCESS);
    assert(nvmlDeviceGetHandleByIndex_v2(1, &device) == NVML_ERROR_INVALID_ARGUMENT);
    assert(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    assert(nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS);
    assert(!strcmp(pci.busId, "00000000:01:00.0") && !strcmp(pci.busIdLegacy, "0000:01:00.0") && pci.bus == 1);
    assert(nvmlDeviceGetMemoryInfo_v2(device, &memory) == NVML_SUCCESS);
    assert(memory.used >= 4096 && memory.used + memory.free + memory.reserved == memory.total);
    assert(nvmlDeviceGetComputeRunningProcesses(device, &count, (void *)first) == NVML_SUCCESS && count == 1);
    assert(first[0].usedGpuMemory == memory.used && first[1].pid == 7);
    assert(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, later) == NVML_SUCCESS && count == 1);
    assert(later[0].usedGpuMemory == memory.used && later[0].gpuInstanceId == 0xffffffff && later[1].pid == 7);
    assert(nvmlDeviceGetUtilizationRates(device, &rates) == NVML_SUCCESS && rates.gpu == 0 && rates.memory == 0);
    assert(nvmlDeviceGetTopologyCommonAncestor(device, device, &level) == NVML_SUCCESS);
    assert(level == NVML_TOPOLOGY_INTERNAL);
    assert(nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_READ, &status) == NVML_SUCCESS);
    assert(status == NVML_P2P_STATUS_NOT_SUPPORTED);
    return 0;
}
"""


def test_structures_are_those_of_the_vendors_header(compile_c: Compile, library: str) -> None:
    """The wheels ``nvidia-nvml-dev`` and ``nvidia-nvml-dev-cu12`` carry it."""
    folder = next((each for each in folders() if (each / "nvml.h").exists()), None)
    if folder is None:
        pytest.skip("no nvml.h is installed; QUIESCE_VENDOR_HEADERS can name its folder")
    program = compile_c("client", OF_THE_HEADER, f"-I{folder}", "-w", library, f"-Wl,-rpath,{Path(library).parent}")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


OF_THE_MODULE: Final = """
import ctypes, os, pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
block = ctypes.c_void_p()
assert ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096)) == 0
memory, later = pynvml.nvmlDeviceGetMemoryInfo(device), pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2)
assert (memory.total, memory.used) == (later.total, later.used) and memory.used >= 4096
(process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
assert (process.pid, process.usedGpuMemory) == (os.getpid(), memory.used)
assert pynvml.nvmlDeviceGetPciInfo(device).busId == "00000000:01:00.0"
assert pynvml.nvmlDeviceGetCudaComputeCapability(device) == (8, 0)
pynvml.nvmlShutdown()
"""


def test_the_vendors_python_module_runs_on_it(library: str) -> None:
    """The package ``nvidia-ml-py``."""
    pytest.importorskip("pynvml")
    with run_program(
        [sys.executable, "-c", OF_THE_MODULE], MachineSettings(parse_flavour("cuda:12")), os.environ
    ) as ended:
        assert ended.status == 0
