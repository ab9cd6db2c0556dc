"""A failure that was asked for and never happened is told; one that happened, or may stay away, is not."""

from __future__ import annotations

import pytest

from quiesce.simulator.judge.unchecked import Met, never_happened
from quiesce.simulator.runtime.ledger import CALL_KINDS


def met(**counts: tuple[int, int]) -> Met:
    return {kind: counts.get(kind, (0, 0)) for kind in CALL_KINDS}


@pytest.mark.parametrize(
    ("failures", "processes", "told"),
    [
        (["device:5"], [met(device=(1, 0))], ["--fail device:5 never happened: the program made 1 such call"]),
        (["event:1+"], [met()], ["--fail event:1+ never happened: the program made no such call"]),
        (["copy:2=9,stream:3"], [met(copy=(2, 1))], ["--fail stream:3 never happened: the program made no such call"]),
        (
            ["device:1", "device:5"],
            [met(device=(4, 0))],
            ["--fail device:5 never happened: the program made 4 such calls"],
        ),
        (["device:5"], [met(device=(5, 1))], []),
        (["device:5"], [met(device=(5, 1)), met()], []),
        (["launch:10%"], [met(launch=(4, 0))], []),
        ([], [met()], []),
        (
            ["device:5"],
            [met(device=(3, 0)), met(device=(1, 0))],
            ["--fail device:5 never happened: the process with the most of them made 3 such calls"],
        ),
    ],
)
def test_what_never_happened_is_told(failures: list[str], processes: list[Met], told: list[str]) -> None:
    assert [*never_happened(failures, processes)] == told
