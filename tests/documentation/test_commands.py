"""Every command of README and documentation runs, and prints what its page says that it prints."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.documentation.pages import ROOT, Command, documents, shown
from tests.documentation.running import Difference, run_page
from tests.documentation.unrun import UNRUN, reason_not_to_run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bash") is None or shutil.which("cc") is None,
    reason="the pages' commands are for a shell on Linux with a C compiler",
)

TEXTS: Final = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in documents()}
COMMANDS: Final = {
    name: [item.text for item in shown(text) if isinstance(item, Command)] for name, text in TEXTS.items()
}
RUN: Final = [name for name, each in COMMANDS.items() if any(reason_not_to_run(text) is None for text in each)]

VARIES: Final = re.compile(
    r"0x[0-9a-f]{2,}"  # addresses
    r"|… [0-9]+ frames?"  # by the release and the installation of Python
    r"|run [0-9]+ times|[0-9]+ entries, [+]|Python's memory grows by [0-9]"  # leak checks end as soon as they are sure
    r"|\b[0-9]+[.][0-9]+ ?s(?:econds)?\b"
)
"""Numbers of an output that differ from run to run, or from one Python to the next."""


@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_the_commands_of_a_page_do_what_it_says(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    speaks_of_it = any("example-pool" in text for text in COMMANDS[name])
    plugin = request.getfixturevalue("example_plugin") if speaks_of_it else None
    problem = None
    try:
        run_page(name, TEXTS[name], tmp_path, plugin)
    except Difference as difference:
        problem = str(difference)
    if problem:
        pytest.fail(problem, pytrace=False)


def test_outputs_have_no_number_that_differs_from_run_to_run() -> None:
    outputs = [
        f"{name}:{item.line}: {line}"
        for name, text in TEXTS.items()
        for item in shown(text)
        if isinstance(item, Command)
        for line in item.output
    ]
    assert len(outputs) > 100
    assert [line for line in outputs if VARIES.search(line)] == []


def test_reasons_not_to_run_a_command_are_needed() -> None:
    every = [text for texts in COMMANDS.values() for text in texts]
    assert [pattern for pattern in UNRUN if not any(re.fullmatch(pattern, text) for text in every)] == []


def test_most_commands_are_run() -> None:
    assert "README.md" in RUN
