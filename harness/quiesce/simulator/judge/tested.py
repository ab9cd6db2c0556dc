"""Whether a process tested anything: one that went on without a device broke no rule of memory, and passed none.

A client whose device is refused mostly says nothing and computes on the CPU. So a process counts as tested only where
the simulated runtime saw it use device memory, or use streams and kernels and was refused nothing. A request for memory
that was refused uses none, unless the run asked for that refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quiesce.simulator.judge.refused import (
    LinkedRuntime,
    Owner,
    asks_only,
    flavours_of,
    left_alone,
    linked_runtimes,
    linked_text,
    memory_refused_text,
    missing_text,
    named_by,
    names_text,
    refused_text,
    runtimes_refused,
    uninstalled_text,
)
from quiesce.simulator.judge.unchecked import OUTLIVED
from quiesce.simulator.runtime import (
    KNOWN,
    Flag,
    Ledger,
    Load,
    Loaded,
    Record,
    Refusal,
    RefusalKind,
    Seen,
    Simulated,
    Thing,
    owner_of,
    read_refusals,
)

_MEMORY: Final = frozenset({Seen.ALLOCATED, Seen.FREED, Seen.READ, Seen.WRITTEN, Seen.COPIED, Seen.STAGED_AGAIN})
_QUESTIONS: Final = frozenset(
    {Seen.NOTHING, Seen.REFUSED, Seen.NOT_SIMULATED, Seen.MARK, Seen.STREAM_WAITED_FOR, Seen.DEVICE_WAITED_FOR}
)
"""What is seen of a program that looks for a device, waits for it, and uses nothing of it."""

_UNHEARD: Final = (
    "quiesce's module for the dynamic loader did not run, so a runtime that was opened by a path or linked in may have "
    "been the real one. The loader says why on standard error; a program that takes LD_AUDIT away is the other cause. "
    "Set QUIESCE_CACHE to an empty folder from which libraries can be loaded, and run it again"
)


@dataclass(slots=True)
class Use:
    """What a process did with its device, gathered from its records.

    ``refusals`` are what it was refused, each once, and ``vendors`` runtimes of a vendor's own that it loaded.
    ``others`` name the runtimes of other flavours that it needed. ``linked`` were linked into its files and redirected,
    ``left_alone`` were not, and why. ``has_own`` says that it loaded the flavour's own runtime, so that some of its
    work is the flavour's, ``was_heard`` that quiesce's module for the dynamic loader ran in some process of the run.
    ``memory`` says that it used memory of the device, or of the host that the device can use, ``work`` that it used
    anything at all: memory, a stream, an event, a kernel. ``contexts`` counts those that it made, which use nothing by
    themselves. ``too_large`` is the largest request for memory that was refused, although nobody asked for that.
    """

    refusals: Sequence[Refusal] = ()
    vendors: Sequence[Path] = ()
    others: Sequence[Path] = ()
    linked: Sequence[LinkedRuntime] = ()
    left_alone: Mapping[Path, str] = field(default_factory=dict)
    has_own: bool = False
    was_heard: bool = True
    memory: bool = False
    work: bool = False
    contexts: int = 0
    too_large: Record | None = None

    def __post_init__(self) -> None:
        self.refusals = tuple(dict.fromkeys(self.refusals))

    def unlike(self, simulated: Simulated, owner: Owner) -> str:
        """Return which other runtimes it used than the flavour's, and what to do; empty where it used none."""
        linked = [each for each in self.linked if not each.fits(simulated)]
        told = [f"it needs {_other_runtimes(self.others)}"] if self.others else []
        return "; ".join([*told, linked_text(linked, owner)] if linked else told)

    def see(self, record: Record) -> None:
        """Enter one record."""
        is_refused = record.seen is Seen.REFUSED
        self.memory = self.memory or record.seen in _MEMORY or (is_refused and Flag.INJECTED in record.flags)
        is_context = record.thing is Thing.CONTEXT
        self.contexts += is_context and record.seen is Seen.CREATED
        self.work = self.work or not (is_context or record.seen in _QUESTIONS)
        if is_refused and (self.too_large is None or self.too_large.size_bytes < record.size_bytes):
            self.too_large = record
        if record.seen is Seen.NOT_SIMULATED and all(each.function != record.function for each in self.refusals):
            self.refusals = (*self.refusals, Refusal(RefusalKind.NOT_SIMULATED, record.function, 0))


def use_of(ledger: Ledger, path: Path, loads: Sequence[Load]) -> Use:
    """Return what a process did that left its ledger at ``path``, among the ``loads`` of all processes of the run.

    A child of ``fork()`` that started no program has its parent's libraries as well.

    Where records were overwritten, whatever was made counts as memory.
    """
    has_started = any(load.kind is Loaded.STARTED and load.process == ledger.process for load in loads)
    processes = {ledger.process} if has_started else {ledger.process, ledger.parent}
    own = [load for load in loads if load.process in processes]
    simulated, linked = Simulated(ledger.flavour, ledger.version), linked_runtimes(own)
    needed = _paths(own, Loaded.OTHER)
    others = [each for each in needed if named_by(each) != str(simulated)]  # what is left was followed
    use = Use(
        read_refusals(path),
        _paths(own, Loaded.REAL),
        others,
        linked=linked,
        left_alone=left_alone(own),
        has_own=len(others) < len(needed) or _has_own(own, simulated, linked),
        was_heard=any(load.kind is Loaded.STARTED for load in loads),
    )
    for record in ledger.records():
        use.see(record)
        if use.memory:
            break
    use.work = use.work or bool(ledger.launches) or ledger.made > use.contexts
    use.memory = use.memory or bool(ledger.lost and ledger.made)
    return use


def _has_own(loads: Sequence[Load], simulated: Simulated, linked: Sequence[LinkedRuntime]) -> bool:
    """Say whether something has the flavour's own runtime: linked in, or loaded by who has none linked in."""
    runtime, files = simulated.sonames[0].partition(".so")[0], {each.file for each in linked}
    loaded = (load for load in loads if load.kind is Loaded.OWN and load.path.name.startswith(runtime))
    return any(each.fits(simulated) for each in linked) or any(load.client not in files for load in loaded)


def _looked_for_in_vain(use: Use, simulated: Simulated, owner: Owner) -> Iterator[str]:
    """Yield what a process asked for that is not there, without a call that failed."""
    yield uninstalled_text(use.refusals)
    yield names_text(use.refusals, simulated, owner)


@dataclass(frozen=True, slots=True)
class Untested:
    """Why a process tested nothing. ``refused`` says that it asked for a device, so that something was to be tested."""

    reason: str
    refused: bool


def untested(use: Use, simulated: Simulated, owner: Owner = owner_of, *, failed: bool = False) -> Untested | None:
    """Return why a process tested nothing, or None where it did. ``owner`` finds the package of a caller.

    ``failed`` says that the program failed, which is reason enough for one that had used no device.

    What was done through another runtime than the flavour's alone was judged by the wrong layouts and rules.
    """
    if not use.was_heard:
        return Untested(_UNHEARD, refused=True)
    unlike = use.unlike(simulated, owner)
    if unlike and not use.has_own and (use.memory or use.work):
        return Untested(f"judged as {simulated}, although {unlike}", refused=True)
    if use.memory or any(each.kind is RefusalKind.ARMED for each in use.refusals):
        return None
    if use.too_large is not None:
        return Untested(memory_refused_text(use.too_large), refused=True)
    missing = () if use.work else tuple(filter(None, _looked_for_in_vain(use, simulated, owner)))
    called = [each for each in use.refusals if each.kind not in (RefusalKind.MISSING, RefusalKind.NOT_INSTALLED)]
    refusals = [each for each in called if not use.work or each.kind is RefusalKind.NOT_SIMULATED]
    vendors = () if use.work else use.vendors
    if refusals or vendors:
        asked = bool(vendors) or not all(map(asks_only, refusals))
        reason = refused_text(refusals, vendors, simulated, owner, use.left_alone)
        return Untested("; ".join((reason, *missing)), refused=asked)
    if use.work:
        return None
    what = (
        "used no device memory, stream or kernel: it only asked for devices, versions or properties, or made a context"
    )
    reason = _nothing_used(simulated, what, use.others, failed=failed)
    return Untested("; ".join((*missing, reason)), refused=False)


def untested_beside(use: Use, simulated: Simulated, owner: Owner = owner_of) -> tuple[str, ...]:
    """Return what of a process that was tested was not: clients whose runtime is the vendor's own, or another."""
    refused = runtimes_refused(use.refusals, use.vendors, simulated, owner, use.left_alone)
    told = [f"not tested: {text}" for text in refused]
    if unlike := use.unlike(simulated, owner):
        told.append(f"judged as {simulated}, although {unlike}")
    return tuple(told)


def causes_of(use: Use, simulated: Simulated, owner: Owner = owner_of) -> str:
    """Return what a process asked for in vain, which may be why its program failed; empty where there is nothing."""
    refused = runtimes_refused(use.refusals, use.vendors, simulated, owner, use.left_alone)
    missing = missing_text(use.refusals, simulated, owner)
    return "; ".join(filter(None, (*refused, missing, uninstalled_text(use.refusals))))


def never_called(
    loads: Sequence[Load],
    simulated: Simulated,
    owner: Owner = owner_of,
    *,
    outlived: bool = False,
    failed: bool = False,
) -> Untested:
    """Return why nothing of a program was tested that never called the simulated runtime.

    ``outlived`` says that a process that it started was still running.
    """
    if outlived:
        return Untested(f"the program never called the simulated runtime, and {OUTLIVED}", refused=False)
    vendors = _paths(loads, Loaded.REAL)
    if vendors:
        return Untested(refused_text((), vendors, simulated, owner), refused=True)
    if not any(load.kind is Loaded.STARTED for load in loads):
        return Untested(
            "the program did not start with glibc's dynamic loader, so it can't find the simulated runtime: it is a "
            "static program, or built for another C library (musl) or processor. Link it dynamically with glibc",
            refused=False,
        )
    last = [load.process for load in loads if load.kind is Loaded.STARTED][-1]
    unheard = next((load for load in loads if load.kind is Loaded.UNHEARD and load.process == last), None)
    if unheard is not None:
        return Untested(
            f"{unheard.path.name} never called the simulated runtime. It starts with {unheard.client.name}, whose "
            "static thread-local storage leaves the dynamic loader no room for quiesce's module, so that a runtime "
            "opened by its path is the real one. Leave that library out (a sanitizer's, or one of LD_PRELOAD), or ask "
            f"for {simulated.libraries[0]} without a path",
            refused=False,
        )
    what = "never called the simulated runtime"
    return Untested(_nothing_used(simulated, what, _paths(loads, Loaded.OTHER), failed=failed), refused=False)


def _paths(loads: Iterable[Load], kind: Loaded) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(load.path.resolve() for load in loads if load.kind is kind))


def _other_runtimes(others: Sequence[Path]) -> str:
    return f"{', '.join(each.name for each in others)}. {flavours_of(others)}"


def _nothing_used(simulated: Simulated, what: str, others: Sequence[Path], *, failed: bool) -> str:
    """Return what to say of a program that was refused nothing; ``what`` says what it did."""
    if others:
        return f"the program {what}, and it needs {_other_runtimes(others)}"
    if failed:
        return "it had not used the GPU"
    return (
        f"the program {what}. If it ran on the CPU, tell it to use the GPU. If it was built for "
        f"another runtime than {simulated}, name that with --flavour (one of {', '.join(map(str, KNOWN))})"
    )
