"""The options of ``quiesce exec``: their parser, one frozen value that has them, and the command that repeats them.

The program waits for what is imported here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from quiesce.cli.arguments import REPORTS, add_at_exit, add_report, add_seed, whole_number
from quiesce.model import wording
from quiesce.model.program_run import Conditions
from quiesce.simulator.judge import ApiErrors, AtExit
from quiesce.simulator.runtime import RECYCLING, SCHEDULES, MachineSettings, Simulated, parse_flavour, without_pools

_DECIMAL: Final = re.compile(r"(\d+) ?([KMGT])i?B?", re.IGNORECASE)
"""A size as many write it, whose unit is meant to be a power of 1024."""
_ORDERS_MAX: Final = 1000
_THREADS_MAX: Final = 64
_LOOKED_AT: Final = 2
"""How many launches of each kernel are looked at for races of its blocks in device memory."""
_USUAL: Final = "cuda:12"


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """What a run of ``quiesce exec`` was asked for, by the names and in the order of its options.

    ``words`` are the program with its arguments. ``again`` is the command that runs it again, ``command`` up to them.
    """

    words: tuple[str, ...]
    report: Path | None
    command: str
    again: str
    flavour: str | None
    schedule: str
    seed: int
    recycle: str
    pools: bool
    devices: int
    capacity: int | None
    fail: tuple[str, ...]
    api_errors: ApiErrors
    known_errors: Path | None
    at_exit: AtExit
    stacks: bool
    ring: int
    disk: int | None
    static_runtime: str
    kernels: str | None
    libraries: str | None
    kernel_checks: bool
    host_checks: bool
    explore_orders: int
    strict: bool
    kernel_threads: int
    kernel_seconds: int | None
    kernel_faults: str

    @property
    def asked(self) -> Simulated | None:
        """The flavour that was asked for; None where each process takes what it needs."""
        return None if self.flavour is None else parse_flavour(self.flavour)

    @property
    def simulated(self) -> Simulated:
        """The flavour that the machine begins with."""
        return self.asked or parse_flavour(_USUAL)

    def environment(self) -> dict[str, str]:
        """Return the environment that the program begins with: the caller's, and what switches pools off if asked."""
        return dict(os.environ) if self.pools else without_pools(os.environ)

    def machine(self, *, kernels: bool, libraries: bool) -> MachineSettings:
        """Return what the simulated machine is told: whether kernels compute, and functions of libraries."""
        named: dict[str, str | int] = {
            **({"follows": 1} if self.flavour is None else {}),
            **({} if self.capacity is None else {"capacity": self.capacity}),
            "devices": self.devices,
            "recycle": self.recycle,
            "ring": self.ring,
            "saved": _half_of_the_disk() if self.disk is None else self.disk,
            "fail": ",".join(self.fail),
            **({"stacks": 1} if self.stacks else {}),
            **({"checks": 1, "races": _LOOKED_AT} if kernels and self.kernel_checks else {}),
            **({"hosts": 1} if self.host_checks else {}),
            **({"orders": self.explore_orders} if self.explore_orders > 1 else {}),
            **({"strict": 1} if self.strict else {}),
            **({"threads": self.kernel_threads} if self.kernel_threads > 1 else {}),
            **({"seconds": self.kernel_seconds} if self.kernel_seconds else {}),
            **({"stop": 1} if self.kernel_faults == "stop" else {}),
        }
        redirects = self.static_runtime == "redirect"
        return MachineSettings(self.simulated, self.schedule, self.seed, named, redirects, kernels, libraries)

    def conditions(self) -> Conditions:
        """Return how a report says that the program was run, for a process that never called the machine."""
        return Conditions(
            command=wording.join(self.words),
            flavour=str(self.simulated),
            schedule=self.schedule,
            seed=self.seed,
            recycle=self.recycle,
            at_exit=str(self.at_exit),
            devices=self.devices,
            capacity_bytes=self.capacity or 0,
            failures=self.fail,
        )


_REPEATED: Final = tuple(field.name for field in fields(ExecOptions))[4:]
"""The options that decide what happens, in the order of a command: all but the first four."""


def options_of(arguments: argparse.Namespace) -> ExecOptions:
    """Return the options that were parsed."""
    given = {name: getattr(arguments, name) for name in _REPEATED}
    given |= {"fail": tuple(arguments.fail), "api_errors": ApiErrors(arguments.api_errors)}
    defaults = _parsed(["true"])
    command, again = exec_command(arguments, defaults), reproduce_command(arguments, defaults)
    return ExecOptions(tuple(arguments.words), arguments.report, command, again, **given)


def read_options(words: Sequence[str]) -> ExecOptions:
    """Return the options that stand for some words after ``quiesce exec``."""
    return options_of(_parsed(words))


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(words))


def reproduce_command(arguments: argparse.Namespace, defaults: argparse.Namespace) -> str:
    """Return a command that does it again: with the options that are not as ``defaults`` has them."""
    return f"{exec_command(arguments, defaults)} {wording.join(arguments.words)}"


def exec_command(arguments: argparse.Namespace, defaults: argparse.Namespace) -> str:
    """Return such a command up to the program."""
    words = ["quiesce", "exec"]
    for name in _REPEATED:
        value = getattr(arguments, name)
        if value != getattr(defaults, name):
            words += _option(f"--{name.replace('_', '-')}", value)
    return wording.join([*words, "--"])


def _option(option: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    if isinstance(value, list):
        return [word for each in value for word in (option, str(each))]
    return [option, str(value)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.description = (
        "Run a program without a GPU, and report leaks, double frees, use after free and races. "
        "Exit code: 0 nothing found, 1 findings, 2 not tested or failed."
    )
    parser.add_argument("words", nargs="+", metavar="PROGRAM", help="the program and its arguments, after --")
    parser.add_argument(
        "--flavour",
        metavar="NAME:N",
        help="the runtime that the program was built for: cuda:11, 12, 13 or hip:5, 6, 7 (default: the runtime that "
        "the program loads first, or else cuda:12)",
    )
    parser.add_argument("--capacity", type=_capacity, metavar="SIZE", help="memory of each device (default: 16GiB)")
    parser.add_argument(
        "--devices", type=whole_number, default=1, metavar="N", help="how many devices there are (default: 1)"
    )
    parser.add_argument(
        "--schedule",
        choices=SCHEDULES,
        default=SCHEDULES[0],
        help="when queued work runs: eager at once, lazy as late as allowed, seeded in an order from --seed "
        "(default: eager)",
    )
    _add_conditions(parser)
    add_report(parser, REPORTS)


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    add_seed(parser, "seed of the schedule and of failures")
    parser.add_argument(
        "--recycle",
        choices=RECYCLING,
        default=RECYCLING[0],
        help=f"when freed addresses are used again (default: {RECYCLING[0]})",
    )
    parser.add_argument(
        "--pools",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let CuPy, PyTorch and numba keep freed memory in pools of their own; --no-pools switches these off, so "
        "that uses of freed memory are found (default: yes)",
    )
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="KIND:N",
        help="make calls fail: KIND:N the N-th call of a kind, KIND:N+ all from the N-th on, KIND:P%% P percent of "
        "them; add =CODE for the error code. Kinds: device, pinned, managed, memory (any of these three), stream, "
        "event, graph, copy, launch, synchronize",
    )
    _add_errors(parser)
    add_at_exit(parser)
    parser.add_argument(
        "--stacks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="record native and Python call stacks, to show where blocks were allocated (default: yes)",
    )
    parser.add_argument(
        "--static-runtime",
        choices=("redirect", "refuse"),
        default="redirect",
        help="what happens to a CUDA runtime that is linked into the program statically: redirect its functions to the "
        "simulated runtime, or refuse it a device (default: redirect)",
    )
    _add_computing(parser)
    _add_kernels(parser)
    _add_ledger(parser)


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ring",
        type=whole_number,
        default=1 << 20,
        metavar="N",
        help="how many calls to keep in memory (default: 1,048,576); older ones are saved on disk",
    )
    parser.add_argument(
        "--disk",
        type=_size,
        metavar="SIZE",
        help="how much of the temporary folder the older calls of each process may take (default: half of what is "
        "free); a process that needs more is not judged for races",
    )


def _add_errors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--api-errors",
        choices=("tell", "inconclusive", "finding"),
        default="inconclusive",
        help="what comes of refused work (a launch, a copy, a fill, a free, a wait, a record) if the program does not "
        "look at the error: only tell it, leave the run without a verdict, or report a finding (default: inconclusive)",
    )
    parser.add_argument(
        "--known-errors",
        type=Path,
        metavar="FILE",
        help="a TOML file of errors that are expected, by function and line",
    )


def _add_computing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernels",
        choices=("run", "off"),
        help="whether CUDA kernels compute: run them on the CPU from their PTX, or only put them in order "
        "(default: run if quiesce[kernels] is installed)",
    )
    parser.add_argument(
        "--libraries",
        choices=("run", "off"),
        help="whether functions of NVIDIA's libraries compute (cuBLAS, cuFFT, cuRAND): run them with NumPy and SciPy, "
        "or let them fail by name (default: run if quiesce[libraries] is installed and kernels compute)",
    )


def _add_kernels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel-checks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="judge every access of kernels that compute: out of bounds, use after free, misaligned, never written "
        "(default: yes)",
    )
    parser.add_argument(
        "--host-checks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="watch the host's accesses to pinned and managed memory that pending work uses (default: yes)",
    )
    parser.add_argument(
        "--explore-orders",
        type=_orders,
        default=1,
        metavar="N",
        help="run each launch in N orders of its blocks and threads, and report kernels that leave other bytes then, "
        "and races of threads in device memory (default: 1, the usual order)",
    )
    parser.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="also report what many correct programs do: reads of words that are only partly written and of shared "
        "memory that nobody wrote, blocks that write the same value to the same place, and copies to the host of "
        "memory that nobody wrote (default: no)",
    )
    parser.add_argument(
        "--kernel-threads",
        type=_threads,
        default=1,
        metavar="N",
        help="run the blocks of a launch on N cores where results and findings are those of one (default: 1)",
    )
    parser.add_argument(
        "--kernel-seconds",
        type=whole_number,
        metavar="N",
        help="stop a kernel that runs for more than N seconds, and name its thread and line (default: wait for it)",
    )
    parser.add_argument(
        "--kernel-faults",
        choices=("continue", "stop"),
        default="continue",
        help="what happens after a wrong access: continue without it, or stop the kernel and break the device as on a "
        "GPU (default: continue)",
    )


def _orders(text: str) -> int:
    return _up_to(text, _ORDERS_MAX, "orders")


def _threads(text: str) -> int:
    return _up_to(text, _THREADS_MAX, "threads")


def _up_to(text: str, most: int, what: str) -> int:
    number = whole_number(text)
    if not 1 <= number <= most:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of {what}; write a whole number from 1 to {most}")
    return number


def _size(text: str) -> int:
    from quiesce.model.requests import RequestError, evaluate_size

    try:
        return evaluate_size(text, {})
    except RequestError:
        decimal = _DECIMAL.fullmatch(text)
        instead = f"write {decimal[1]}{decimal[2].upper()}iB" if decimal else "write bytes, such as 64MiB"
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; {instead}") from None


def _half_of_the_disk() -> int:
    return shutil.disk_usage(tempfile.gettempdir()).free // 2


def _capacity(text: str) -> int:
    size_bytes = _size(text)
    if size_bytes == 0:
        raise argparse.ArgumentTypeError("no program can use a device without memory; write at least 1MiB")
    return size_bytes
