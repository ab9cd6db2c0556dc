"""Findings: the rule that was broken, and the evidence."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from quiesce.model.wording import shown_path

FRAMES_MAX: Final = 8
"""How many frames of a call a line shows, from the innermost one."""


class Grade(enum.StrEnum):
    """How sure and how bad a finding is."""

    LIVE_LEAK = "live leak"
    GROWTH = "growth"
    HELD_BY_TRACEBACK = "held by a traceback"
    CACHED = "cached in a pool"
    FRAGMENTATION = "fragmentation"
    FOREIGN = "foreign"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class RoundReadings:
    """What a gauge read behind each of the rounds that decided that it grows.

    ``grown`` says for each round from ``first_round`` on how much more there was than behind the first of them: what a
    process holds besides is another number in every run. ``rounds`` has their numbers where some rounds between them
    were not read; without it they were consecutive. ``unit`` is ``bytes`` or the plural of a thing. ``per_round``
    is the growth per round behind round ``measured_from``; what was before may be warm-up.
    """

    gauge: str
    unit: str
    first_round: int
    grown: tuple[int, ...]
    measured_from: int
    per_round: float
    rounds: tuple[int, ...] = ()

    @property
    def numbers(self) -> Sequence[int]:
        """The number of the round behind each reading."""
        if len(self.rounds) == len(self.grown):
            return self.rounds
        return range(self.first_round, self.first_round + len(self.grown))


_PACKAGES: Final = "(?:site|dist)-packages|registry/src/[^/]+-[0-9a-f]{16}"
"""Folders in which pip and cargo keep packages; cargo's have versions in their names."""
INSTALLED: Final = re.compile(rf"/(?:{_PACKAGES})/([^/.-]+(?:-[^/.\d-][^/.-]*)*)")
"""A file of a Python package or of a crate that is installed, and its name."""
_SYSTEM: Final = re.compile(r"(?:/usr)?/lib(?:32|64)?/")


_TOOLKIT: Final = (
    r"(?:/usr/(?:local|lib)|/opt(?:/nvidia)?)/(?:cuda|rocm|hpc_sdk)[^/]*/(?:.*/)?include/"
    r"|/nvidia/cu(?:\d+|da_\w+)/(?:.*/)?include/|/targets/[\w-]+-linux/include/|/cupy/_core/include/"
    r"|(?:^|/)(?:cub|thrust|cccl|libcudacxx|rocprim|hipcub|rocthrust|cooperative_groups|hip/amd_detail|cuda/std)/"
    r"|(?:^|/)cuda/(?:__\w+/|[a-z_]+$)"
    r"|(?:^|/)(?:sm_\d+_\w+|cuda_(?:fp\d+|bf16|runtime|pipeline|awbarrier)\w*|(?:device|math)_\w*functions"
    r"|cooperative_groups|nv/target)\.(?:h|hpp)$"
    r"|\.cudafe1\.stub\.c$"
)
"""A header of CUDA's or ROCm's toolkit or of their libraries, wherever it is installed, or code that nvcc writes."""


_COMPILED: Final = (".cu", ".hip", ".cpp", ".cc", ".cxx", ".py")


def is_of_toolkit(file: str) -> bool:
    """Whether a source file belongs to a toolkit for device code: a reader looks for who uses it.

    Who works in a checkout of such a library has headers as well, but also files that are compiled by themselves.
    """
    return not file.endswith(_COMPILED) and bool(_toolkit_pattern().search(file))


@cache
def _toolkit_pattern() -> re.Pattern[str]:
    """Return the pattern, compiled when a file is first asked about: that takes a millisecond."""
    return re.compile(_TOOLKIT)


_PLACE: Final = re.compile(r"(?:thread '.*' in )?(.+?:\d+)(?=$|: )", re.MULTILINE)
"""A file and a line in what says where something was allocated."""

SHUTDOWN: Final = "while Python shuts down"
"""What the frames are part of that the interpreter runs when the program has ended."""


def is_installed(module: str) -> bool:
    """Whether a file with code belongs to a package that is installed, or to the system."""
    return bool(INSTALLED.search(module) or _SYSTEM.match(module))


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in code. Texts that are not known are empty, numbers 0.

    ``line`` is in ``file``, the source; native code has an ``offset`` into ``module``, the file that was loaded.
    ``folded`` names the plumbing that the frame is part of (``pytest``), or is :data:`SHUTDOWN`: it is counted, and
    nothing is told apart by it.
    """

    function: str
    file: str = ""
    line: int = 0
    module: str = ""
    offset: int = 0
    folded: str = ""

    @property
    def place(self) -> str:
        """Return ``file:line``, or the module and the offset where no debug information says more."""
        return self._place(self.file, self.module)

    @property
    def shown_place(self) -> str:
        """Return :attr:`place` as texts name it: relative to the working directory where the file lies below that."""
        return self._place(shown_path(self.file), shown_path(self.module))

    def _place(self, file: str, module: str) -> str:
        if file:
            return f"{file}:{self.line}" if self.line else file
        return f"{module}+{self.offset:#x}" if module else ""

    @property
    def is_own(self) -> bool:
        """Whether it is the program's own, rather than of a package that is installed or of the system."""
        is_of_others = INSTALLED.search(self.file) or is_of_toolkit(self.file) or is_installed(self.module)
        return not self.folded and not is_of_others

    @property
    def owner(self) -> str:
        """Return whose code it is, where that is not the program's own: a package, a library, the interpreter."""
        if is_of_toolkit(self.file):
            return "the toolkit for device code"
        installed = INSTALLED.search(self.file) or INSTALLED.search(self.module)
        return self.folded or (installed[1] if installed else re.split(r"[/\\]", self.module)[-1])

    def __str__(self) -> str:
        place = self.shown_place if self.file else re.split(r"[/\\]", self.place)[-1]
        return (
            f"{self.function} ({place})" if self.function and place else self.function or place or "code without a file"
        )


@dataclass(frozen=True, slots=True)
class CallSite:
    """Who made a call that a finding is about. ``role`` says what the call has to do with it: ``allocated by``.

    ``call`` is the function of the runtime, ``number`` counts the calls that the ledger kept, from 0, and ``frames``
    begin with the innermost.
    """

    role: str
    call: str
    number: int
    frames: tuple[Frame, ...] = ()

    @property
    def shown(self) -> tuple[Frame, ...]:
        """Return the frames that are nobody's plumbing; all of them where nothing else is there."""
        return tuple(frame for frame in self.frames if not frame.folded) or self.frames

    @property
    def sentence(self) -> str:
        """Return what the call has to do with the finding, and who made it, on one line."""
        return f"{self.role} {self}"

    def __str__(self) -> str:
        frames = [str(frame) for frame in self.shown]
        more = len(frames) - FRAMES_MAX
        text = " < ".join(frames[:FRAMES_MAX]) + (f" < {more} more" if more > 0 else "")
        return f"{self.call} (call {self.number})" + (f" by {text}" if text else "")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Lines of a source as they were when the program ran. ``line`` is the one that is meant, ``first`` the first."""

    file: str
    line: int
    first: int
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call into a backend that gave no answer: its ``function``, and the type of the ``error`` that it raised.

    Without an error it returned something that is no answer.
    """

    function: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule.

    ``operation_index`` counts the requests performed so far, or the calls of a program, from 0 (None: at the end);
    ``line`` is the case file's line (None for generated sequences); ``request`` is the request as text;
    ``allocated_by`` says where the block or handle concerned came from (``operation 3 (line 12): a = allocate 64``).
    ``kept`` says what keeps it: ``mylib._CACHE (dict, 350 entries, +1 a round)``, a line each.
    ``readings`` are those of the gauge that a leak check found growing. ``call_sites`` are the calls of a program that
    it is about, with their stacks; ``allocated_by`` and ``evidence`` say the same in a line each. ``seen`` says how
    often a program broke the rule from these places; the finding is about the first time. ``tests`` are the tests of
    pytest that launched the kernel which it is about. ``quoted`` has the lines of source that it is about. ``kind`` is
    the kind of mistake, mostly one of :mod:`quiesce.model.rules`. ``failed_call`` is the call into a backend that
    raised something, or returned what is no answer.
    """

    rule: str
    expected: str
    observed: str
    operation_index: int | None = None
    line: int | None = None
    request: str = ""
    allocated_by: str = ""
    kind: str = ""
    grade: Grade = Grade.VIOLATION
    evidence: str = ""
    readings: RoundReadings | None = field(default=None, repr=False)
    call_sites: tuple[CallSite, ...] = field(default=(), repr=False)
    seen: int = 1
    tests: tuple[str, ...] = ()
    kept: str = ""
    quoted: tuple[Quotation, ...] = field(default=(), repr=False)
    failed_call: FailedCall | None = field(default=None, repr=False)

    @property
    def allocated(self) -> str:
        """Return the file and the line in ``allocated_by``, as ``mylib/__init__.py:14``, or an empty text."""
        place = _PLACE.match(self.allocated_by)
        return place[1] if place else ""

    @property
    def remark(self) -> str:
        """Return what its grade adds to its rule and kind, or an empty text: a broken rule and a leak say it all."""
        return "" if self.grade in (Grade.VIOLATION, Grade.LIVE_LEAK, Grade.GROWTH) else str(self.grade)

    @property
    def repetition(self) -> str:
        """Return ``25 times; the first is shown``, or an empty text for what was seen once."""
        return f"{self.seen:,} times; the first is shown" if self.seen > 1 else ""
