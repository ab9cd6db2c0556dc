"""How ``quiesce exec`` was run: a report says how to run it again, and what is missing is told last."""

from __future__ import annotations

import argparse
import shlex
import sys

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.exec_options import add_arguments, reproduce_command
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


DEFAULTS = parsed(["true"])


def test_what_is_as_always_is_not_said() -> None:
    arguments = parsed(["--schedule", "eager", "--report", "out", "--", "python", "a b.py", "--stacks"])
    assert reproduce_command(arguments, DEFAULTS) == "quiesce exec -- python 'a b.py' --stacks"


def test_every_option_but_the_report_is_repeated() -> None:
    given = {
        "flavour": ["hip:6"],
        "schedule": ["seeded"],
        "seed": ["7"],
        "recycle": ["never"],
        "devices": ["2"],
        "capacity": ["64MiB"],
        "fail": ["device:1", "pinned:2+"],
        "api-errors": ["finding"],
        "known-errors": ["errors.toml"],
        "at-exit": ["all"],
        "no-stacks": [],
        "no-pools": [],
        "ring": ["99"],
        "disk": ["1MiB"],
        "static-runtime": ["refuse"],
        "kernels": ["off"],
        "libraries": ["off"],
        "no-kernel-checks": [],
        "no-host-checks": [],
        "kernel-threads": ["2"],
        "kernel-seconds": ["5"],
        "kernel-faults": ["stop"],
        "explore-orders": ["2"],
        "strict": [],
    }
    words = [
        word for name, values in given.items() for value in values or [""] for word in (f"--{name}", value) if word
    ]
    arguments = parsed([*words, "true"])
    unchanged = [name for name, value in vars(arguments).items() if value == getattr(DEFAULTS, name)]
    assert sorted(unchanged) == ["report", "words"], "give every option another value here"
    command = reproduce_command(arguments, DEFAULTS)
    assert parsed(shlex.split(command)[2:]) == arguments


LAUNCHES = (
    "import ctypes; cuda, block = ctypes.CDLL('libcudart.so.12'), ctypes.c_void_p(); "
    "Size = type('Size', (ctypes.Structure,), {'_fields_': [(name, ctypes.c_uint) for name in 'xyz']}); "
    "cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(8)); cuda.cudaFree(block); "
    "cuda.cudaLaunchKernel(ctypes.c_void_p(99), Size(1, 1, 1), Size(1, 1, 1), None, ctypes.c_size_t(0), None)"
)


@pytest.mark.parametrize(
    ("options", "installed", "told"),
    [([], False, True), ([], True, False), (["--kernels", "off"], False, False)],
    ids=["missing", "there", "off"],
)
def test_the_extra_that_lets_kernels_compute_is_told_last(
    options: list[str],
    installed: bool,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr("quiesce.cli.exec.kernels_can_run", lambda: installed)
    assert main(["exec", *options, "--", sys.executable, "-c", LAUNCHES]) == ExitCode.NOTHING_FOUND
    said = "quiesce: CUDA kernels did not compute; to let them compute, run pip install 'quiesce[kernels]'"
    assert (capfd.readouterr().err.splitlines()[-1] == said) is told
