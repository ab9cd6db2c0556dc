"""Machines that judge the accesses of kernels, and what was found there."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from tests.simulator.conftest import Start
from tests.simulator.kernel_programs import Device, entry

from quiesce.model.findings import Finding
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.device_code import DeviceCode
from quiesce.simulator.runtime.kernel_logs import read_accesses


class Checked(Device):
    """A device whose kernels' accesses are judged."""

    FLAVOUR = "cuda:12"

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start(self.FLAVOUR, **{"kernels": 1, "checks": 1, "folder": str(folder), **options}))
        self._folder = folder

    def work(
        self,
        body: str,
        *arguments: int,
        block: int | tuple[int, int] = 1,
        grid: int = 1,
        before: str = "",
        stream: int = 0,
        shared_bytes: int = 0,
        answer: int = 0,
    ) -> None:
        """Run a kernel with addresses in ``%rd1``, ``%rd2`` … and the index of the thread on x in ``%r1``."""
        names = [f"a{number}" for number in range(1, len(arguments) + 1)]
        loads = "".join(f"ld.param.u64 %rd{number}, [{name}];\n" for number, name in enumerate(names, start=1))
        text = entry("work", ", ".join(f".param .u64 {name}" for name in names), f"mov.u32 %r1, %tid.x;\n{loads}{body}")
        function = self.kernel(before + text, "work")
        passed = [ctypes.c_uint64(argument) for argument in arguments]
        pointers: Any = (ctypes.c_void_p * max(1, len(passed)))(*map(ctypes.addressof, passed))
        sizes = (grid, 1, 1, *(block if isinstance(block, tuple) else (block, 1)), 1)
        made = self.driver.cuLaunchKernel(function, *sizes, shared_bytes, ctypes.c_void_p(stream), pointers, None)
        assert made == answer

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found so far."""
        logs = sorted(self._folder.glob("*.accesses"), key=lambda path: path.stat().st_mtime_ns)
        accesses = read_accesses(logs[-1]) if logs else ()
        return judge(
            self.client.machine.ledger,
            AtExit.NONE,
            accesses=lambda: accesses,
            touched=self.client.machine.touched,
            code=DeviceCode(logs[-1] if logs else None),
        ).findings

    def rules(self) -> list[str]:
        """Return the rules that were broken so far."""
        return [finding.rule for finding in self.findings()]
