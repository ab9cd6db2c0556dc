"""Judges what a process does between two moments while it runs, by the ledger that it writes.

The judge of another process is a process of its own (``python -m quiesce.simulator.judge.watching LEDGER``): in the
judged one, the addresses that it holds would look like somebody who still holds the memory. It reads requests and
writes answers, each a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from quiesce.model.findings import CallSite, Finding, Frame, Grade, Quotation
from quiesce.simulator.judge.causes import Causes
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import RunningJudgement
from quiesce.simulator.judge.logs import open_logs
from quiesce.simulator.judge.tested import Untested, Use, untested
from quiesce.simulator.runtime import (
    NO_CODE,
    OF_KERNELS,
    SETTINGS_VARIABLE,
    CallStacks,
    DeviceCode,
    Ledger,
    LiveThing,
    LoggedAccess,
    Simulated,
    TouchedLog,
)

_OUTSIDE: Final = {SETTINGS_VARIABLE: ""}
"""What keeps a process out of the run: without settings it would be led back into it (``audit/execs.c``)."""


@dataclass(frozen=True, slots=True)
class Between:
    """What happened between two moments. ``lost`` counts records that were overwritten before they were read.

    ``untested`` says why nothing was tested since the beginning, None where something was.
    """

    findings: tuple[Finding, ...]
    lost: int
    untested: Untested | None = None


class Watch:
    """Reads a ledger that is still written. A finding is reported once, by the first answer that can hold it."""

    def __init__(
        self,
        ledger: Ledger,
        stacks: CallStacks | None,
        accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
        touched: TouchedLog | None = None,
        code: DeviceCode = NO_CODE,
    ) -> None:
        self._ledger = ledger
        judges_races = not ledger.lost
        of = (touched or TouchedLog(lambda: None)).of
        self._judgement = RunningJudgement(
            ledger.flavour, stacks, judges_races=judges_races, accesses=accesses, touched=of, code=code
        )
        self._read = ledger.lost
        self._made = 0
        self._accused: set[int] = set()
        self._use = Use()
        self._told: Sequence[int] = ()

    def begin(self) -> None:
        """Begin at this moment: what was before is known, and no finding."""
        self.findings(AtExit.NONE)
        self._made = self._ledger.made
        self._use = Use()

    def findings(self, left: AtExit) -> Between:
        """Return what was done since the last answer, and which of what was made since the beginning is still there."""
        lost = max(0, self._ledger.lost - self._read)
        if lost:
            self._judgement.stop_judging_races()
        end = self._ledger.observations
        causes = Causes(self._judgement.origins)
        for record in self._ledger.records(self._read):
            if record.number < end:
                self._use.see(record)
                seen = list(self._judgement.see(record))
                causes.add(seen if record.seen not in OF_KERNELS else ())
        causes.add(self._judgement.wrong_accesses(self._told))
        self._told = self._judgement.counts()
        if lost and self._ledger.made > self._made:
            self._use.memory = True
        self._read = end
        causes.add(self._judgement.left(self._accuse(left), moment="the test ends", looked=left is AtExit.LOST))
        why = untested(self._use, Simulated(self._ledger.flavour, self._ledger.version))
        findings, _ = self._judgement.told(causes)
        return Between(findings, lost, why)

    def wrong_accesses(self, told: Sequence[int]) -> Between:
        """Return the wrong accesses of kernels since there were as many of each as ``told`` says."""
        lost = self.findings(AtExit.NONE).lost
        causes = Causes(self._judgement.origins)
        causes.add(self._judgement.wrong_accesses(told))
        return Between(self._judgement.told(causes)[0], lost)

    def _accuse(self, left: AtExit) -> Iterable[LiveThing]:
        if left is AtExit.NONE:
            return []
        things = [
            thing
            for thing in self._ledger.live()
            if thing.serial > self._made and thing.serial not in self._accused and (left is AtExit.ALL or thing.is_lost)
        ]
        self._accused.update(thing.serial for thing in things)
        return things


class RemoteWatch:
    """A :class:`Watch` in a process of its own, over the ledger in a file, and outside of the simulated machine."""

    def __init__(self, ledger: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a list, no shell
            [sys.executable, "-m", "quiesce.simulator.judge.watching", str(ledger)],
            env={name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"} | _OUTSIDE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        """Begin at this moment: what was before is known, and no finding."""
        self._ask({"begin": True})

    def findings(self, left: AtExit) -> Between:
        """Return what :meth:`Watch.findings` does."""
        return between_from(self._ask({"left": left.value}))

    def wrong_accesses(self, told: Sequence[int]) -> Between:
        """Return what :meth:`Watch.wrong_accesses` does."""
        return between_from(self._ask({"told": list(told)}))

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        to, back = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        to.write(json.dumps(request) + "\n")
        to.flush()
        answer: dict[str, Any] = json.loads(back.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def between_from(answer: Mapping[str, Any]) -> Between:
    """Return what a process has answered."""
    why = answer["untested"]
    findings = tuple(map(_finding_from, answer["findings"]))
    return Between(findings, answer["lost"], None if why is None else Untested(**why))


def _finding_from(fields: Mapping[str, Any]) -> Finding:
    sites = tuple(
        CallSite(**{**site, "frames": tuple(Frame(**frame) for frame in site["frames"])})
        for site in fields["call_sites"]
    )
    quoted = tuple(Quotation(**{**each, "lines": tuple(each["lines"])}) for each in fields["quoted"])
    read = {"grade": Grade(fields["grade"]), "call_sites": sites, "tests": tuple(fields["tests"]), "quoted": quoted}
    return Finding(**{**fields, **read})


def _serve(path: Path) -> None:
    with open_logs(path) as logs:
        watch = Watch(logs.ledger, logs.stacks, logs.accesses, logs.touched, logs.code)
        for line in sys.stdin:
            request = json.loads(line)
            if "begin" in request:
                watch.begin()
                answer = Between((), 0)
            elif "told" in request:
                answer = watch.wrong_accesses(request["told"])
            else:
                answer = watch.findings(AtExit(request["left"]))
            print(json.dumps(asdict(answer)), flush=True)  # noqa: T201 - the protocol


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
