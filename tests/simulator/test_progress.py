"""A device comes to a host function by itself: a program may wait for one without a call."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")

WAITS_BY_ITSELF = """
    handle stream, other, event;
    void *block;
    cudaStreamCreate(&stream), cudaStreamCreate(&other), cudaEventCreate(&event), cudaMalloc(&block, 64);
    for (int i = 0; i < 3; i++) {
        volatile int told = 0;
        cudaMemsetAsync(block, i, 64, other);
        cudaEventRecord(event, other), cudaStreamWaitEvent(stream, event, 0);
        cudaLaunchHostFunc(stream, tell, (void *)&told);
        for (int patience = 100000; !told && patience; patience--) usleep(100);
        if (*(volatile char *)block != i) return 7;
    }
    cudaStreamDestroy(stream), cudaStreamDestroy(other), cudaEventDestroy(event), cudaFree(block);
    return 0;"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_a_program_that_waits_for_a_host_function_without_a_call_goes_on(schedule: str, tmp_path: Path) -> None:
    try:
        program = compile_client(tmp_path, WAITS_BY_ITSELF)
        with run_program([str(program)], MachineSettings(parse_flavour("cuda:12"), schedule), {}) as ended:
            assert ended.status == 0
            assert len(ended.ledgers) == 1
    except BackendUnavailable as error:
        pytest.skip(str(error))
