"""The pages of reference name every option, key, marker, fixture, hook and exit code that there is, and no other."""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path
from typing import Final

import pytest
from tests.documentation.pages import ROOT

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import COMMANDS, build_parser
from quiesce.pytest_plugin import fixtures, hookspecs

REFERENCE: Final = ROOT / "docs" / "reference"


def _sections(name: str) -> dict[str, str]:
    text = (REFERENCE / name).read_text(encoding="utf-8")
    return {title.strip("`"): rest for title, rest in re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)}


def _first_cells(section: str) -> list[str]:
    rows = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return [cell.strip() for cell in rows[1:]]


def _written(command: str) -> list[str]:
    """Return a command's arguments, as the page has to write them."""
    (chosen,) = (each for each in build_parser(command)._actions if isinstance(each, argparse._SubParsersAction))
    words = []
    for action in chosen.choices[command]._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        value = str(action.metavar) if action.metavar else f"{{{','.join(action.choices or ())}}}"
        if not action.option_strings:
            words.append(f"`{value}`{' …' if action.nargs in ('*', '+') else ''}")
        elif action.nargs == 0:
            words.append(f"`{action.option_strings[-1]}`")
        else:
            words.append(f"`{action.option_strings[-1]} {value}`")
    return words


def test_the_page_of_commands_has_all_of_them_in_their_order() -> None:
    titles = [title for title in _sections("commands.md") if title.startswith("quiesce ")]
    assert titles == [f"quiesce {command}" for command in COMMANDS]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "exec"])
def test_the_page_of_commands_has_each_argument(command: str) -> None:
    assert _first_cells(_sections("commands.md")[f"quiesce {command}"]) == _written(command)


def test_the_page_of_commands_has_each_exit_code() -> None:
    assert _first_cells(_sections("commands.md")["Exit codes"]) == [str(int(code)) for code in ExitCode]


def _named(section: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, _sections("pytest.md")[section]))


def test_the_page_of_pytest_has_each_option_and_ini_key(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest("--help", "-p", "no:cacheprovider").stdout.str()
    options = set(re.findall(r"^ +(--quiesce-[a-z-]+)", text, re.MULTILINE))
    keys = set(re.findall(r"^ +(quiesce_[a-z_]+) \(", text, re.MULTILINE))
    assert len(options) >= 12
    assert _named("Options", r"`(--quiesce-[a-z-]+)") == options
    assert _named("Options", r"`(quiesce_[a-z_]+)`") == keys


def test_the_page_of_pytest_has_each_marker(pytestconfig: pytest.Config) -> None:
    ours = ("leak", "simulated_device", "device_memory")
    lines = [line for line in pytestconfig.getini("markers") if line.startswith(ours)]
    assert _named("Markers", r"`@pytest\.mark\.(\w+)`") == {line.partition("(")[0] for line in lines}


def test_the_page_of_pytest_has_each_fixture() -> None:
    source = Path(inspect.getfile(fixtures)).read_text(encoding="utf-8")
    defined = re.findall(r"^@pytest\.fixture.*\n(?:async )?def (\w+)", source, re.MULTILINE)
    rows = " ".join(_first_cells(_sections("pytest.md")["Fixtures"]))
    assert set(re.findall(r"`(\w+)`", rows)) == set(defined)


def test_the_page_of_pytest_has_each_hook_with_its_arguments() -> None:
    hooks = {name: value for name, value in vars(hookspecs).items() if name.startswith("pytest_quiesce_")}
    written = [f"`{name}({', '.join(inspect.signature(hook).parameters)})`" for name, hook in hooks.items()]
    assert _first_cells(_sections("pytest.md")["Hooks"]) == written
