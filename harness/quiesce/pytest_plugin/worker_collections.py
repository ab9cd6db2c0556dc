"""What the workers of pytest-xdist collected, told where pytest was started: that place collects nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from quiesce.pytest_plugin.run_record import RunRecord

WORKER_INPUT: Final = "quiesce_collected"
"""The key of ``config.workerinput`` under which a worker finds the channel."""


class WorkerCollections:
    """A plugin of the run that has workers. All of them collect the same; the first one that tells is heard."""

    def __init__(self, config: pytest.Config, record: RunRecord) -> None:
        self._config = config
        self._record = record
        self._told: list[tuple[list[str], list[str]]] = []
        self._is_said = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Open the channel on which a worker tells."""
        channel = node.gateway.newchannel()
        channel.setcallback(self._told.append)
        node.workerinput[WORKER_INPUT] = channel

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Say what is about to run, and keep the results of what its backend cannot do."""
        if self._is_said or not self._told:
            return
        self._is_said = True
        lines, records = self._told[0]
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and lines and self._config.option.verbose >= 0:
            reporter.write_line("")
            for line in lines:
                reporter.write_line(line)
        self._record.keep_not_run(records)


def tell_collected(config: pytest.Config, lines: list[str], records: list[str]) -> None:
    """In a worker, say what was collected; nothing elsewhere."""
    channel = getattr(config, "workerinput", {}).get(WORKER_INPUT)
    if channel is not None and (lines or records):
        channel.send((lines, records))
