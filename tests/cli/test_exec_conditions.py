"""The command that a report of ``quiesce exec`` gives runs the program in the same way."""

from __future__ import annotations

import argparse
import shlex

from quiesce.cli.exec import add_arguments
from quiesce.cli.exec_conditions import reproduce_command


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
        "at-exit": ["all"],
        "no-stacks": [],
        "ring": ["99"],
        "static-runtime": ["refuse"],
        "kernels": ["off"],
        "no-kernel-checks": [],
        "kernel-faults": ["stop"],
    }
    words = [
        word for name, values in given.items() for value in values or [""] for word in (f"--{name}", value) if word
    ]
    arguments = parsed([*words, "true"])
    unchanged = [name for name, value in vars(arguments).items() if value == getattr(DEFAULTS, name)]
    assert sorted(unchanged) == ["report", "words"], "give every option another value here"
    command = reproduce_command(arguments, DEFAULTS)
    assert parsed(shlex.split(command)[2:]) == arguments
