"""What a ``subject.toml`` says, as frozen values. ``docs/reference/subject_manifest.md`` describes every key."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quiesce.simulator.judge import AtExit
from quiesce.simulator.runtime import Simulated

BASE: Final = "base"
"""The variant that a driver is without further arguments."""
OPERATIONS_DEFAULT: Final = 2_000


class SubjectKind(enum.StrEnum):
    """Whether the code under test is upstream's own."""

    REAL = "real"
    MODEL = "model"
    """A model of upstream's protocol, written here; the matrix says so."""


class PackageKind(enum.StrEnum):
    """What is made of the packages of a release."""

    FILES = "files"
    """Wheels unpacked into one folder, without what they depend on."""
    ENVIRONMENT = "environment"
    """A virtual environment of the interpreter that runs quiesce."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the machine must have; each maps what is needed to what to install or set where it is missing.

    ``programs`` are on the path, ``files`` exist, ``variables`` are set in the environment. ``python`` is a range of
    the interpreter's versions, as in a ``known:`` line.
    """

    programs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = "*"


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages of the Python registry; ``requirements`` may hold ``{version}``."""

    kind: PackageKind
    requirements: tuple[str, ...]
    dependencies: bool = True


@dataclass(frozen=True, slots=True)
class Build:
    """Commands that make the driver. ``shared`` are files and folders beyond the subject's own that it is made of."""

    steps: tuple[tuple[str, ...], ...]
    shared: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """How the driver is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    watchdog_seconds: float = 60.0
    schedule: str = "eager"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is run to its end and judged, instead of driven."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    simulated: Simulated | None = None
    schedule: str = "eager"
    capacity_bytes: int | None = None
    at_exit: AtExit = AtExit.LOST
    watchdog_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """A finding that a release is expected to show, in every variant or in those of ``variants``.

    ``case`` is the identifier of a result (``pool/…``, ``program/…``), or the first parts of several (``sweep``,
    ``generated``), of which one at least shows it.
    """

    case: str
    finds: str
    upstream: str
    variants: tuple[str, ...] = ()

    def holds_in(self, variant: str) -> bool:
        """Whether it is about a variant."""
        return not self.variants or variant in self.variants

    def covers(self, case: str) -> bool:
        """Whether it is about a result."""
        return case == self.case or case.startswith(f"{self.case}/")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to start the driver. ``cases`` and ``operations`` None are the subject's."""

    name: str
    arguments: tuple[str, ...] = ()
    cases: tuple[str, ...] | None = None
    operations: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """One upstream release. ``expectations`` None: nobody knows what to expect, as nobody wrote it down.

    ``simulated`` None is the subject's.
    """

    version: str
    label: str = ""
    simulated: Simulated | None = None
    requirements: tuple[str, ...] | None = None
    is_default: bool = False
    needs: Needs = field(default_factory=Needs)
    expectations: tuple[Expectation, ...] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One upstream project under test, in all its releases.

    ``name`` is the last two parts of ``folder``. ``operations`` are performed in generated sequences, valid and
    hostile ones alike; 0: nothing but the cases runs. ``trials_max`` bounds how many sequences shrinking runs.
    """

    name: str
    folder: Path
    title: str
    upstream: tuple[str, ...]
    releases: tuple[Release, ...]
    kind: SubjectKind = SubjectKind.REAL
    cases: tuple[str, ...] = ()
    simulated: Simulated | None = None
    needs: Needs = field(default_factory=Needs)
    packages: Packages | None = None
    build: Build = field(default_factory=lambda: Build(()))
    run: Run | None = None
    programs: tuple[Program, ...] = ()
    variants: tuple[Variant, ...] = (Variant(BASE),)
    operations: int = OPERATIONS_DEFAULT
    seed: int = 0
    trials_max: int | None = None

    def release(self, version: str) -> Release:
        """Return a release by its version; one that the manifest does not list is expected to show nothing known."""
        return next((each for each in self.releases if each.version == version), Release(version))
