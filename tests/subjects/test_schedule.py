"""Rows in processes of their own, which do not outlive the one that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.subjects.conftest import MANIFEST

pytestmark = pytest.mark.long

Write = Callable[..., Path]

STUCK = """\
import os, sys
if "--variant" in sys.argv:
    print(os.getppid(), file=open(sys.argv[1], "w"), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed otherwise there")
def test_a_killed_run_leaves_no_process_behind(write_subject: Write, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    command = f'["{{python}}", "{{source}}/stuck.py", "{told}", "--variant"]'
    manifest = MANIFEST.replace('["{python}", "-m", "quiesce.backends.serving", "{version}"]', command)
    folder = write_subject(manifest, stuck__py=STUCK)
    words = [sys.executable, "-m", "quiesce.cli.main", "subjects", str(folder), "--jobs", "1"]
    environment = {**os.environ, "QUIESCE_CACHE": str(tmp_path / "other")}
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        assert told.read_text(encoding="utf-8")  # waits until the driver was started
        run.send_signal(signal.SIGKILL)
        assert run.stderr is not None
        written = run.stderr.read()  # ends when the last process that holds it is gone
    assert run.returncode == -signal.SIGKILL
    assert b"Traceback" not in written
