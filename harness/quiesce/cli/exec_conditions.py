"""How ``quiesce exec`` ran a program, for its report: the conditions, and a command that runs it again."""

from __future__ import annotations

import argparse
import os
from typing import Final

from quiesce.model import wording
from quiesce.model.program_run import Conditions
from quiesce.simulator.runtime.flavours import Simulated, parse_flavour
from quiesce.simulator.runtime.ledger import Ledger
from quiesce.simulator.runtime.packages import without_pools

_REPEATED: Final = (
    "flavour",
    "schedule",
    "seed",
    "recycle",
    "pools",
    "devices",
    "capacity",
    "fail",
    "api_errors",
    "known_errors",
    "at_exit",
    "stacks",
    "ring",
    "disk",
    "static_runtime",
    "kernels",
    "kernel_checks",
    "explore_orders",
    "strict",
    "kernel_seconds",
    "kernel_faults",
)
"""The options that decide what happens, in the order of a command; a test sees that none is missing."""


_USUAL: Final = "cuda:12"


def simulated_by(arguments: argparse.Namespace, ledger: Ledger | None = None) -> Simulated:
    """Return the flavour that was asked for; where none was, what a process took by its ``ledger``, or the usual."""
    if arguments.flavour is None and ledger is not None:
        return Simulated(ledger.flavour, ledger.version)
    return parse_flavour(arguments.flavour or _USUAL)


def environment_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the environment that the program begins with: the caller's, and what switches pools off if asked."""
    return dict(os.environ) if arguments.pools else without_pools(os.environ)


def conditions_of(arguments: argparse.Namespace, ledger: Ledger | None = None) -> Conditions:
    """Return what a program was run with; ``ledger``, where there is one, knows what was left to the machine."""
    return Conditions(
        command=wording.join(arguments.words),
        flavour=str(simulated_by(arguments, ledger)),
        schedule=arguments.schedule,
        seed=arguments.seed,
        recycle=arguments.recycle,
        at_exit=str(arguments.at_exit),
        devices=ledger.devices if ledger else arguments.devices,
        capacity_bytes=ledger.capacity_bytes if ledger else arguments.capacity or 0,
        failures=tuple(arguments.fail),
    )


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
