"""The suites that are run: one file for each, which says where the tests are and which of them cannot pass."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent
_MISSING: Final = {
    "cuBLAS": r"CUBLASError: CUBLAS_",
    "cuRAND": r"CURANDError: CURAND_",
    "cuFFT": r"CuFFTError: CUFFT_|cannot open source file \"cufft",
    "cuSOLVER": r"CUSOLVERError: CUSOLVER_",
    "cuSPARSE": r"CuSparseError: CUSPARSE_",
    "cuTENSOR": r"CuTensorError: not simulated by quiesce",
    "NCCL": r"NcclError: .*not simulated by quiesce",
    "nvcc": r"'NoneType' object has no attribute 'split'",
}
"""What a failure says that comes of something that is missing: the vendor's libraries compute nothing, for example."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that cannot pass for one reason. A ``*`` in a name stands for any text."""

    because: str
    tests: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Say whether a test is in the group."""
        return any(re.fullmatch(_pattern(test), name) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Found:
    """A rule that was broken while the tests ran, and the finding's text."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the project itself, which its tests show: the rule that it breaks, and a kernel of it."""

    because: str
    rule: str
    kernel: str
    """Part of the finding's text. A ``*`` stands for any text."""

    def explains(self, found: Found) -> bool:
        """Say whether a finding is about the fault."""
        return found.rule == self.rule and bool(re.search(_pattern(self.kernel), found.text, re.DOTALL))


def _pattern(text: str) -> str:
    return ".*".join(map(re.escape, text.split("*")))


@dataclass(frozen=True, slots=True)
class Suite:
    """One release of a project, and its tests."""

    name: str
    requirements: tuple[str, ...]
    python: tuple[int, int]
    source: str
    """The archive that has the tests, for pip; the address and the tag of a repository that has them, which has to be
    checked out; where it is empty, the installed package has them."""
    tests: tuple[str, ...]
    """The folders, in the archive or in the packages that are installed."""
    options: tuple[str, ...]
    """Options of ``quiesce exec``."""
    environment: tuple[tuple[str, str], ...]
    """Variables; ``{packages}`` stands for the folder of the packages that are installed."""
    sample: tuple[int, int]
    """The tests of a short run: the first one, and the step."""
    parts: int
    cannot_pass: tuple[Group, ...]
    faults: tuple[Fault, ...]

    @property
    def needs_checkout(self) -> bool:
        """Say whether no package has its tests."""
        return " " in self.source

    def kind(self, name: str, outcome: str, text: str) -> str:
        """Return what a test's outcome counts as: one that failed may be listed, or need something that is missing."""
        if outcome != "failed":
            return outcome
        if any(group.has(name) for group in self.cannot_pass):
            return "listed"
        needed = (missing for missing, error in _MISSING.items() if re.search(error, text))
        return next((f"needs {library}" for library in needed), "failed")

    def is_known(self, found: Found) -> bool:
        """Say whether a finding is about a fault that is listed."""
        return any(fault.explains(found) for fault in self.faults)


def suite_names() -> list[str]:
    """Return the names of all suites."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_suite(name: str) -> Suite:
    """Return the suite of this name."""
    read: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    groups = tuple(Group(each["because"], tuple(each["tests"])) for each in read.get("cannot_pass", []))
    first, step = read["sample"]
    major, minor = read["python"]
    return Suite(
        name=name,
        requirements=tuple(read["requirements"]),
        python=(major, minor),
        source=read["source"],
        tests=tuple(read["tests"]),
        options=tuple(read["options"]),
        environment=tuple(read.get("environment", {}).items()),
        sample=(first, step),
        parts=read["parts"],
        cannot_pass=groups,
        faults=tuple(Fault(**each) for each in read.get("fault", [])),
    )
