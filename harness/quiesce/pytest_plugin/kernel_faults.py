"""Wrong accesses of kernels, by test: what a test's kernels did under ``quiesce exec``."""

from __future__ import annotations

import os
from pathlib import Path

from quiesce.model.findings import Finding
from quiesce.simulator.runtime.kernel_logs import read_accesses
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE
from quiesce.simulator.runtime.own_machine import own_ledger


class KernelFaults:
    """Says which accesses were wrong since a moment. Without a wrong access this reads no ledger."""

    def __init__(self) -> None:
        text = os.environ.get(SETTINGS_VARIABLE, "")
        settings = dict(word.partition("=")[::2] for word in text.split(";"))
        self._folder = Path(settings["folder"]) if settings.get("checks") == "1" else None
        self._told: list[int] = []

    def begin(self) -> None:
        """Begin at this moment."""
        self._told = self._counts()

    def findings(self) -> tuple[Finding, ...]:
        """Return the accesses that were wrong since the beginning."""
        if self._folder is None or self._counts() == self._told:
            return ()
        from quiesce.simulator.judge.watching import (
            RemoteWatch,  # all of the oracle, which is long to load and rarely needed
        )

        watch = RemoteWatch(own_ledger(self._folder))
        try:
            return watch.wrong_accesses(self._told).findings
        finally:
            watch.close()

    def _counts(self) -> list[int]:
        if self._folder is None or not any(self._folder.glob(f"{os.getpid()}*.accesses")):
            return []
        return [access.count for access in read_accesses(own_ledger(self._folder))]
