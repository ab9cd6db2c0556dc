"""A signal that ends a process ends a command in order, and the driver program with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import pytest

from quiesce.cli.endings import ExitCode, interrupted_by_signals

_SPINS: Final = """
import json, os, sys
print(json.dumps({"protocol": 1, "name": "spins", "version": "1", "capabilities": ["memory"], "promises": [],
                  "gauges": {}}), flush=True) if sys.stdin.readline() == "hello 1\\n" else None
if sys.stdin.readline().startswith("open"):
    with open(sys.argv[1], "w") as told:
        told.write(str(os.getpid()))
    while True:
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="it needs a named pipe")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_driver_that_spins_ends_with_the_command(number: signal.Signals, tmp_path: Path) -> None:
    driver, pipe = tmp_path / "spins.py", tmp_path / "pipe"
    driver.write_text(_SPINS, encoding="utf-8")
    os.mkfifo(pipe)
    words = [sys.executable, "-m", "quiesce", "explore", "--backend", f"command:{sys.executable} {driver} {pipe}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path) as command:
        process = int(pipe.read_text(encoding="utf-8"))  # waits for the driver
        command.send_signal(number)
        said, _ = command.communicate()
    assert command.returncode == ExitCode.INTERRUPTED
    assert b"quiesce: interrupted" in said
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGHUP")
def test_what_is_ignored_or_taken_is_left_alone_and_the_rest_is_given_back() -> None:
    taken: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: taken.append(number))
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert taken == [signal.SIGTERM]
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with interrupted_by_signals(), pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_another_thread_takes_no_signal() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def enter() -> None:
        with interrupted_by_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]
