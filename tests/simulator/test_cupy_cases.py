"""The corpus through the ``cupy`` backend as it is, on a stock CuPy wheel on the simulated runtime.

What a release fails is said by ``known:`` lines of the cases, which become errors where it passes. The table here holds
the founding bugs of pinned memory on top, so that no row can go with the line that states it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from .cupy_wheels import NEEDS_A_WHEEL, WHEEL, Release, release

pytestmark = NEEDS_A_WHEEL
__all__ = ["release"]

CORPUS: Final = Path(__file__).resolve().parents[2] / "cases"
GREEN: Final = None

EXTRA_BUFFER: Final = "pinned/pinned_source_is_not_staged_again"
UNREGISTERED: Final = "pinned/pageable_source_is_staged"
MISSED_BY_TRIM: Final = "pinned/trim_finds_finished_copies"
REUSED_IN_FLIGHT: Final = "pinned/staged_source_is_not_handed_out"

RED: Final = "sizes/size_near_the_maximum"
"""A case that every release fails."""

_BEFORE_13: Final = {
    EXTRA_BUFFER: "cupy/cupy#8090",
    UNREGISTERED: GREEN,
    MISSED_BY_TRIM: "cupy/cupy#8845",
    REUSED_IN_FLIGHT: "cupy/cupy#8090",  # its source is not what is copied
}
_FROM_13_4: Final = dict.fromkeys((EXTRA_BUFFER, UNREGISTERED, MISSED_BY_TRIM, REUSED_IN_FLIGHT), GREEN)
FOUNDING: Final[dict[str, dict[str, str | None]]] = {
    "cupy-rocm-5-0==12.3.0": _BEFORE_13,
    "cupy-cuda12x==12.3.0": _BEFORE_13,
    "cupy-rocm-5-0==13.3.0": {
        EXTRA_BUFFER: GREEN,
        UNREGISTERED: "cupy/cupy#8335",
        MISSED_BY_TRIM: "cupy/cupy#8845",
        REUSED_IN_FLIGHT: "cupy/cupy#8789",
    },
    "cupy-cuda12x==14.2.0": _FROM_13_4,
    "cupy-cuda13x==14.2.0": _FROM_13_4,
    "cupy-rocm-7-0==14.2.0": {  # red again: ROCm 6 renumbered the kinds of memory, and CuPy did not
        EXTRA_BUFFER: "cupy/cupy#8090",
        UNREGISTERED: GREEN,
        MISSED_BY_TRIM: GREEN,
        REUSED_IN_FLIGHT: "cupy/cupy#8090",
    },
}
"""What each wheel makes of the cases of the founding bugs: the number that it is red for, or green."""

EXECUTED_MIN: Final = 40
EXECUTED_ASYNCHRONOUSLY_MIN: Final = 15
"""No more cases than any of these wheels can run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case."""

    verdict: str
    reason: str
    rules: tuple[str, ...]


def judged(release: Release, folder: Path, cases: Path, *options: str, backend: str = "cupy") -> dict[str, Verdict]:
    """Run cases through the backend and return what became of each, by its identifier."""
    quiesce = [sys.executable, "-m", "quiesce.cli.main"]
    command = [*quiesce, "exec", "--flavour", release.flavour, *options, "--"]
    command += [*quiesce, "run", "--backend", backend, str(cases), "--report", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    results = json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]
    return {
        each["case"]: Verdict(each["verdict"], each["reason"], tuple(finding["rule"] for finding in each["findings"]))
        for each in results
    }


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_the_founding_bugs_are_red_and_green_as_this_release_is(
    release: Release, tmp_path: Path, schedule: str
) -> None:
    became = judged(release, tmp_path, CORPUS / "pinned", "--schedule", schedule)
    for case, number in FOUNDING[WHEEL].items():
        expected = ("passed", "") if number is GREEN else ("known upstream", number)
        assert (became[case].verdict, became[case].reason) == expected, became[case]


@pytest.mark.parametrize("schedule", ["lazy", "seeded"])
def test_the_corpus_holds_with_what_is_known_of_this_release(release: Release, tmp_path: Path, schedule: str) -> None:
    assert executed(judged(release, tmp_path, CORPUS, "--schedule", schedule)) >= EXECUTED_MIN


def test_the_backends_kernel_reads_nothing_that_was_not_written(release: Release) -> None:
    if not release.flavour.startswith("cuda"):
        pytest.skip("kernels for HIP do not compute")
    quiesce = [sys.executable, "-m", "quiesce.cli.main"]
    command = [*quiesce, "exec", "--flavour", release.flavour, "--schedule", "lazy", "--"]
    command += [*quiesce, "run", "--backend", "cupy", str(CORPUS / "reuse")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernels were launched" in done.stderr


def test_the_corpus_holds_on_the_asynchronous_pool(release: Release, tmp_path: Path) -> None:
    if not release.flavour.startswith("cuda"):
        pytest.skip("CuPy has no asynchronous pool on HIP")
    became = judged(release, tmp_path, CORPUS, "--schedule", "lazy", backend="cupy-async")
    assert executed(became) >= EXECUTED_ASYNCHRONOUSLY_MIN


def executed(became: dict[str, Verdict]) -> int:
    """Return how many cases were executed, none of which may have failed."""
    allowed = {"passed", "known upstream", "unsupported", "not promised"}
    assert {case: each for case, each in became.items() if each.verdict not in allowed} == {}
    return sum(each.verdict in ("passed", "known upstream") for each in became.values())


def test_a_known_line_that_no_longer_holds_is_an_error(release: Release, tmp_path: Path) -> None:
    green = next(case for case in (EXTRA_BUFFER, UNREGISTERED) if FOUNDING[WHEEL][case] is GREEN)
    name = "cupy" if release.flavour.startswith("cuda") else "cupy-rocm"
    text = _without_known(green).replace("\n\n", f"\nknown:    {name} * cupy/cupy#1\n\n", 1)
    (became,) = judged(release, tmp_path / "out", _written(tmp_path, text)).values()
    assert became.rules == ("known_defect_is_still_there",)


def test_a_defect_that_no_line_names_is_an_error(release: Release, tmp_path: Path) -> None:
    (became,) = judged(release, tmp_path / "out", _written(tmp_path, _without_known(RED))).values()
    assert became.verdict == "failed"


def _without_known(case: str) -> str:
    return re.sub(r"^known:.*\n", "", (CORPUS / f"{case}.case").read_text(encoding="utf-8"), flags=re.MULTILINE)


def _written(folder: Path, text: str) -> Path:
    path = folder / "pinned" / "changed.case"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path
