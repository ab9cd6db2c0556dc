"""Folders of runs that are damaged, as the program of a run can do it: they are judged, or refused in a sentence."""

from __future__ import annotations

import argparse
import io
import os
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.fuzzing.damage import damaged, number_at, place_in
from tests.fuzzing.limits import try_inputs

from quiesce.cli.console import Console
from quiesce.cli.exec_options import add_arguments, options_of
from quiesce.cli.judging import judge_processes
from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import Ended, MachineSettings, Prepared, run_program

KERNEL: Final = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 to) {
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [to];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 8;
add.u64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r1;
ret;
}
"""
PROGRAM: Final = """
import ctypes
runtime, driver = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
def make(function, *arguments):
    made = ctypes.c_void_p()
    getattr(runtime, function)(ctypes.byref(made), *arguments)
    return made
blocks = [make("cudaMalloc", 1000 + number) for number in range(20)]
streams = [make("cudaStreamCreate") for _ in range(3)]
event = make("cudaEventCreate")
for stream in streams:
    runtime.cudaMemsetAsync(blocks[0], 0, 100, stream)
    runtime.cudaMemcpyAsync(blocks[2], blocks[3], 500, 3, stream)
runtime.cudaEventRecord(event, streams[0])
runtime.cudaStreamWaitEvent(streams[1], event, 0)
runtime.cudaMemset(blocks[4], 0, 5000)
runtime.cudaFree(blocks[1])
runtime.cudaFree(blocks[1])
runtime.cudaMalloc(None, 5)
make("cudaMalloc", ctypes.c_size_t(1 << 60))
module, function, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
driver.cuDeviceGet(ctypes.byref(device), 0)

driver.cuModuleLoadData(ctypes.byref(module), KERNEL)
driver.cuModuleGetFunction(ctypes.byref(function), module, b"work")
for stream in streams:
    argument = (ctypes.c_void_p * 1)(ctypes.addressof(blocks[5]))
    driver.cuLaunchKernel(function, 1, 1, 1, 150, 1, 1, 0, stream, argument, None)
runtime.cudaStreamDestroy(streams[2])
runtime.cudaStreamSynchronize(streams[2])
runtime.cudaDeviceSynchronize()
for number in range(300):
    runtime.cudaFree(make("cudaMalloc", 100))
""".replace("KERNEL", repr(KERNEL.encode()))
_LARGE_BYTES: Final = 1 << 20


class Original:
    """The folder of a run that went well, in pieces: the ranges of each file that are not zeros."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended
        files = [path for path in sorted(ended.folder.iterdir()) if path.is_file() and path.stat().st_size]
        self.files = {path.name: (path.stat().st_size, _extents(path)) for path in files}

    def write(self, folder: Path, generator: random.Random) -> None:
        """Write the files into a folder, one or two of them damaged."""
        names = [name for name in self.files if name.endswith((".ledger", ".stacks"))]
        chosen = generator.choice((names, [*self.files]))
        harmed = {generator.choice(chosen) for _ in range(generator.choice((1, 1, 2)))}
        for name, (size, extents) in self.files.items():
            with (folder / name).open("wb") as file:
                if name in harmed and size < _LARGE_BYTES:
                    file.write(damaged(generator, b"".join(content for _, content in extents)))
                    continue
                for start, content in extents:
                    file.seek(start)
                    file.write(content)
                file.truncate(size)
                if name in harmed:
                    _harm(generator, file, size, extents)


def _extents(path: Path) -> list[tuple[int, bytes]]:
    """Return what a file has, as the file system tells it; small files are one range."""
    found: list[tuple[int, bytes]] = []
    size, end = path.stat().st_size, 0
    with path.open("rb", buffering=0) as file:
        if size < _LARGE_BYTES:
            return [(0, file.read())]
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:
                return found
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            content = os.pread(file.fileno(), end - start, start).rstrip(b"\0")
            if content:
                found.append((start, content))


def _harm(generator: random.Random, file: io.BufferedWriter, size: int, extents: list[tuple[int, bytes]]) -> None:
    if generator.randrange(8) == 0:
        file.truncate(generator.choice((generator.randrange(5000), generator.randrange(size))))
        return
    for _ in range(generator.choice((1, 1, 3, 20))):
        start, content = extents[0] if generator.random() < 0.4 else generator.choice(extents)
        place = place_in(generator, len(content))
        file.seek(start + place - (place % 4 if generator.random() < 0.7 else 0))
        file.write(number_at(generator))


def arguments_of(*options: str) -> argparse.Namespace:
    """Return the arguments of a run."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([*options, "program"])


def judge(original: Original, number: int) -> None:
    """Judge a folder that is damaged as ``number`` says. A sentence is an answer."""
    generator = random.Random(number)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original.write(folder, generator)
        with suppress(QuiesceError):
            prepared = Prepared(folder, folder, {})
            ended = Ended(0, prepared.ledgers(), prepared.loads(), prepared.refused(), frozenset(), folder)
            console = Console(io.StringIO(), io.StringIO(), {})
            options = ("--report", name) if number % 2 else ("--no-pools",)
            judge_processes(ended, options_of(arguments_of(*options)), "", console)


def main(seed: int, count: int) -> int:
    """Damage and judge as many folders."""
    settings = MachineSettings(
        parse_flavour("cuda:12"),
        options={"stacks": 1, "ring": 256, "checks": 1, "races": 2, "saved": 1 << 20},
        kernels=True,
    )
    with run_program([sys.executable, "-c", PROGRAM], settings, dict(os.environ)) as ended:
        assert ended.status == 0
        original = Original(ended)
        os.environ["PATH"] = ""  # no tool is asked for the lines of native code
        return try_inputs(seed, count, lambda number: judge(original, number))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
