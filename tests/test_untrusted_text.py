"""A driver that writes commands for GitHub's runner and whose command line holds a secret: neither gets out."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main

INJECTING: Final = r"""
import json, sys
hello = {"protocol": 1, "name": "driver", "version": "::error::v", "gauges": {}}
hello |= {"capabilities": ["memory", "pool", "capacity"], "promises": ["reclaims-before-oom"]}
sys.stderr.write("::stop-commands::pwn\n \x1b[1m::error file=a.py,line=1::owned\nplain ##[error]legacy\n")
sys.stderr.flush()
for line in sys.stdin:
    if line.startswith("quit"):
        break
    if line.startswith("hello"):
        answer = hello
    elif line.split()[0] in ("open", "close", "again"):
        answer = {"outcome": "done"}
    else:
        answer = {"outcome": "rejected", "code": "::error::c\u2028::warning::x"}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def backend(tmp_path: Path) -> str:
    """A driver that injects, with a secret in its command."""
    driver = tmp_path / "driver.py"
    driver.write_text(INJECTING, encoding="utf-8")
    return f"command:{sys.executable} {driver} --password=hunter2 --token hunter3"


def test_a_driver_can_give_no_command_to_github_and_its_secrets_stay_here(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    folder = tmp_path / "report"
    words = ["run", "pool/squeeze_before_out_of_memory", "pool/double_free_is_refused", "--backend", backend]
    assert main([*words, "--report", str(folder)]) is ExitCode.FINDINGS
    said = capsys.readouterr()
    assert "owned" in said.out, "the evidence is shown"
    lines = f"{said.out}\n{said.err}".splitlines()
    ours = re.compile(r"::error file=[^,]+\.case,line=\d+,title=protocol error in ")
    given = [line for line in lines if line.lstrip().startswith("::") and not ours.match(line)]
    assert given == []
    assert [line for line in lines if "##[" in line] == []
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}
    assert {"report.json", "junit.xml"} <= set(written)
    assert [name for name, text in written.items() if "hunter" in text] == []
    assert "hunter" not in "".join(lines)
    assert "--password=***" in json.loads(written["report.json"])["results"][0]["reproduce"]
