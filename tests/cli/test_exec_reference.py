"""The pages about ``quiesce exec`` name each option and its values, and the reasons that it gives."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.exec_options import add_arguments
from quiesce.model import program_rules
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.runtime.flavours import KNOWN
from quiesce.simulator.runtime.launch import RECYCLING
from quiesce.simulator.runtime.ledger import CALL_KINDS

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = (ROOT / "docs" / "reference" / "exec.md").read_text(encoding="utf-8")
REASONS: Final = (ROOT / "docs" / "how-to" / "resolve_exit_code_2.md").read_text(encoding="utf-8")
SOURCES: Final = "".join(
    path.read_text(encoding="utf-8")
    for folder in ("simulator/judge", "cli", "pytest_plugin")
    for path in sorted((ROOT / "harness" / "quiesce" / folder).glob("*.py"))
)


def _options() -> list[str]:
    """Return each option, of a switch the spelling that changes the default."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    changing = ((action.option_strings, -1 if action.default else 0) for action in parser._actions)
    return [spellings[place] for spellings, place in changing if spellings]


@pytest.mark.parametrize(
    "name",
    [
        *CALL_KINDS,
        *RECYCLING,
        *AtExit,
        *program_rules.RULES,
        *(name for known in KNOWN for name in (str(known), *known.sonames)),
        *("eager", "lazy", "seeded"),
    ],
)
def test_the_reference_names_each_value(name: str) -> None:
    assert f"`{name}`" in REFERENCE


@pytest.mark.parametrize("option", _options())
def test_the_reference_names_each_option(option: str) -> None:
    assert re.search(rf"^\| `{option}[ `]", REFERENCE, re.MULTILINE)


def test_the_reference_names_each_exit_code() -> None:
    table = REFERENCE.partition("## Exit codes")[2].partition("## ")[0]
    used = (ExitCode.NOTHING_FOUND, ExitCode.FINDINGS, ExitCode.COULD_NOT_RUN, ExitCode.OWN_ERROR)
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == [str(int(code)) for code in used]


def test_explained_reasons_are_those_that_are_given() -> None:
    reasons = re.findall(r"^\| `([^|]+)` [^|`]*\|", REASONS, re.MULTILINE)
    assert len(reasons) > 10
    parts = [part.strip() for reason in reasons for part in reason.split("…")]
    assert [part for part in parts if part not in SOURCES] == []
