"""What the workers of pytest-xdist tell where pytest was started, which collects nothing itself.

They tell what they collected. Where one dies, what it was doing becomes a failed result. That place knows only the name
of the test, so each worker says beforehand which of its tests it checks for leaks, over a channel of its own: what it
had left for its end is lost with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from quiesce.model.results import Result
    from quiesce.pytest_plugin.run_record import RunRecord


CHECKED_INPUT: Final = "quiesce_checked"
"""The key of ``config.workerinput`` under which a worker finds the channel."""


class WorkerDeaths:
    """A plugin of the run that has workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._checked: dict[str, tuple[str, int | None]] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Open the channel on which a worker says what it checks."""
        channel = node.gateway.newchannel()
        channel.setcallback(self._learn)
        node.workerinput[CHECKED_INPUT] = channel

    def _learn(self, tests: list[tuple[str, str, int | None]]) -> None:
        self._checked.update({nodeid: (name, line) for nodeid, name, line in tests})

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Make a failed result of a case or a checked test whose worker died; other tests are none of our business."""
        result = self._result(crashitem, str(report.longrepr))
        if result is None:
            return
        from quiesce.pytest_plugin.attaching import attach
        from quiesce.reporting import failure_text

        attach(result, report)
        report.longrepr = failure_text(result)

    def _result(self, crashitem: str, observed: str) -> Result | None:
        if crashitem.partition("::")[0].endswith(".case"):
            from quiesce.pytest_plugin.case_items import crashed_case

            return crashed_case(crashitem, observed, self._config)
        if crashitem not in self._checked:
            return None
        from quiesce.pytest_plugin.case_items import crashed_test

        name, line = self._checked[crashitem]
        return crashed_test(crashitem, name, line, observed)


def tell_checked(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """In a worker, say which tests are checked for leaks; nothing elsewhere."""
    channel = getattr(config, "workerinput", {}).get(CHECKED_INPUT)
    if channel is not None:
        channel.send([(item.nodeid, item.name, item.location[1]) for item in items])


COLLECTED_INPUT: Final = "quiesce_collected"
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
        node.workerinput[COLLECTED_INPUT] = channel

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
    channel = getattr(config, "workerinput", {}).get(COLLECTED_INPUT)
    if channel is not None and (lines or records):
        channel.send((lines, records))
