"""What of a process could not be checked: leaks if its end was not seen, kernels, functions that are not simulated.

Failures that a run asked for and that never happened belong here, too: the program was not tested with them.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.runtime import CALL_KINDS, Full, Ledger, Survivor, Uncomputed

_SHOWN_MAX: Final = 3
_NAME_MAX: Final = 100
_MISSING: Final = {
    Full.STACKS: "call stacks are missing",
    Full.TOUCHED: "it is not known which bytes some launches touched",
    Full.FAILED: "calls that failed are missing",
    Full.ACCESSES: "places of wrong accesses are missing",
    Full.OTHERS: "calls that were refused, or kernels that did not compute, are missing",
}
_NO_PTX: Final = "its image has machine code only, and no PTX"
"""The reason that ``native/kernels/kernel.c`` gives."""
_WAYS_TO_PTX: Final = (
    "Use a build that has PTX: nvcc with -gencode arch=compute_80,code=compute_80; PyTorch built with "
    "TORCH_CUDA_ARCH_LIST=8.0+PTX, or that of Debian (python3-torch-cuda). "
)
OUTLIVED = "a process that was started in the background was still running; run it in the foreground"


def kernels_unchecked(launches: int, computed: int = 0, checked: int = 0) -> str:
    """Return what nobody checked of the kernels that a process launched, empty where nothing is left.

    ``computed`` is how many of the launches were of kernels that run, ``checked`` how many of those had their accesses
    judged.
    """
    if launches == checked:
        return ""
    were, they = ("was", "it") if launches == 1 else ("were", "they")
    what = f"what {they} read and wrote was not checked"
    if checked:
        what = f"what {launches - checked:,} of them read and wrote was not checked"
    if not computed:
        return f"{counted(launches, 'kernel')} {were} launched and did not compute; {what}"
    if computed == launches:
        return f"{counted(launches, 'kernel')} {were} launched and ran; {what}"
    return f"{counted(launches, 'kernel')} {were} launched, and {computed:,} of them ran; {what}"


def kernels_uncomputed(kernels: Sequence[Uncomputed]) -> str:
    """Return why results of a process may be wrong: its kernels that could not be executed, empty where all were."""
    refused = [each for each in kernels if not each.has_begun]
    if not refused:
        return ""
    ways_out = _WAYS_TO_PTX if any(each.reason == _NO_PTX for each in refused) else ""
    return (
        f"{counted(len(refused), 'kernel')} could not be executed, so that results are missing: {_shown(refused)}. "
        f"{ways_out}To put kernels in order without running any, use --kernels off"
    )


def kernels_unfinished(kernels: Sequence[Uncomputed]) -> str:
    """Return which kernels of a process broke their device, empty where none did: nothing after them is tested."""
    broken = [each for each in kernels if each.has_begun]
    if not broken:
        return ""
    what = f"{counted(len(broken), 'kernel')} did not run to {'its' if len(broken) == 1 else 'their'} end"
    return f"{what}, so that what follows on the device was not tested: {_shown(broken)}"


def _shown(kernels: Sequence[Uncomputed]) -> str:
    shown = [f"'{each.kernel[:_NAME_MAX]}' ({each.reason})" for each in kernels[:_SHOWN_MAX]]
    more = [f"{len(kernels) - _SHOWN_MAX:,} more"] if len(kernels) > _SHOWN_MAX else []
    return ", ".join(shown + more)


def functions_missing(functions: Sequence[str]) -> str:
    """Return which functions a process called that are not simulated, so that what follows them did not happen."""
    if not functions:
        return ""
    if len(functions) == 1:
        return f"it called {functions[0]}, which is not simulated"
    names = ", ".join(functions[:_SHOWN_MAX])
    more = f" and {len(functions) - _SHOWN_MAX:,} more" if len(functions) > _SHOWN_MAX else ""
    return f"it called {len(functions):,} functions that are not simulated: {names}{more}"


def outlived(survivors: Sequence[Survivor], known: Container[int], program: Path | None) -> str:
    """Return which processes went on after the program, empty where none did that can use a GPU.

    These have a library of the runtime loaded, or run the same ``program``, which may load one later. ``known`` are
    those of which this is said anyway.
    """
    names = [
        each.name for each in survivors if each.process not in known and (each.has_runtime or each.program == program)
    ]
    if not names:
        return ""
    shown = ", ".join(f"{name} ({counted(number, 'process')})" for name, number in sorted(Counter(names).items()))
    return f"{OUTLIVED} ({shown})"


def left_out_for_room(ledger: Ledger, folder: Path) -> str:
    """Return what is missing of the record of a process because ``folder`` is full, empty where nothing is."""
    if not ledger.full:
        return ""
    missing = [text for file, text in _MISSING.items() if file in ledger.full]
    if Full.LEDGER in ledger.full:
        ends = f"the record ends after {counted(ledger.observations, 'call')}, and nothing after them was judged"
        missing = [ends, *missing]
    return f"the folder of the run is full: {'; '.join(missing)}. Set TMPDIR to a folder with more room than {folder}"


def leaks_not_judged(ledger: Ledger) -> str:
    """Return why leaks of a process that did not come to its exit, as far as is recorded, are no findings."""
    is_cut = Full.LEDGER in ledger.full
    why = "the record ends before the process did" if is_cut else "the process did not run its exit handlers"
    return f"leaks were not judged: {why}"


def leaks_unchecked(ledger: Ledger, at_exit: AtExit, *, is_running: bool) -> str:
    """Return why nobody knows whether a process leaked, empty where that is known or was not asked for.

    At ``_exit``, a signal or an exec, nothing of the runtime is called any more, so that nobody searches for owners of
    what is held. A process that holds nothing leaks nothing, however it ends.
    """
    if ledger.exited or Full.LEDGER in ledger.full:
        return ""
    if is_running:
        return OUTLIVED
    if at_exit is AtExit.NONE:
        return ""
    live = list(ledger.live())
    if not live:
        return ""
    blocks = [thing for thing in live if thing.thing.is_memory]
    held = []
    if blocks:
        held.append(f"{bytes_in_words(sum(block.size_bytes for block in blocks))} in {counted(len(blocks), 'block')}")
    if len(live) > len(blocks):
        held.append(counted(len(live) - len(blocks), "handle"))
    return (
        f"it ended with _exit, exec or by a signal and held {' and '.join(held)}; its leaks could not be checked. "
        "Let it return from main, or free everything first. To skip leaks, use --at-exit none"
    )


class Effect(enum.StrEnum):
    """What a call would do. The text completes "what it would …"."""

    MAKES = "make"
    FREES = "free"
    ORDERS = "put on a stream or into a graph"


_OF_RUNTIMES: Final = re.compile(r"_*(?:cuda|cu|hipDrv|hip)(?=[A-Z])")
"""How the runtimes' and drivers' own functions begin; those of other libraries have a small letter next."""
_ASKS: Final = re.compile(
    r"Get(?!Mapped)|Query|Version|Find|Enumerate|DebugDotPrint|Export|Attribute(?!sAsync)|SetFlags|SetLimit|MapFlags|"
    r"CacheConfig|SharedMemConfig|Logs|Coredump|Profiler|AsyncNotification|Callback|Occupancy|Encode|Split|Generate|"
    r"TexRefSet|SurfRefSet|TensorMap|SetValid|SetGLDevice|SetVDPAUDevice|ForDevice|ForHost"
)
_FREES: Final = re.compile(
    r"Free|Destroy|Release|Unmap|Unregister|Unbind|Close|Disconnect|Discard|ReturnFrame|Checkpoint$"
)
_ORDERS: Final = re.compile(
    r"^Graph(?!ics)|Memcpy|Memset|Cpy|Launch|Record|Wait|Signal|[Cc]apture|Prefetch|Decompress|AttachMem|BatchMemOp|"
    r"Synchronize|Flush|Write|Subgrid|PresentFrame|Dependencies"
)
_MAKES: Final = re.compile(
    r"[Aa]lloc|Create|Import|Map|Open|Register|Bind|Connect|AcquireFrame|GetMapped|AddDevice|Reserve|Restore$"
)
_MAKES_A_GRAPH: Final = re.compile(r"GraphCreate|GraphConditionalHandleCreate")


def effect_of(function: str) -> Effect | None:
    """Return what a function would do that is judged, None where that is nothing or the function is of no runtime."""
    begin = _OF_RUNTIMES.match(function)
    if begin is None:
        return None
    name = re.sub(r"(?:_v\d+)?(?:_ptsz|_ptds|_spt)?$", "", function[begin.end() :].partition(" ")[0])
    if _ASKS.search(name):
        return None
    if _ORDERS.search(name) and not _MAKES_A_GRAPH.search(function):
        return Effect.ORDERS
    if _FREES.search(name):
        return Effect.FREES
    return Effect.MAKES if _MAKES.search(name) else None


def effects_missing(calls: Mapping[str, int]) -> str:
    """Return which calls had effects that are not simulated, by function and number; empty where none had."""
    missing = [(function, number, effect) for function, number in calls.items() if (effect := effect_of(function))]
    if not missing:
        return ""
    shown = [
        f"{function} is not simulated (called {counted(number, 'time')}): what it would {effect} was not judged"
        for function, number, effect in missing[:_SHOWN_MAX]
    ]
    more = [f"nor were {len(missing) - _SHOWN_MAX:,} more functions of this kind"] if len(missing) > _SHOWN_MAX else []
    return f"{'; '.join([*shown, *more])}. Leave that part out, or run it on a GPU"


Met: TypeAlias = Mapping[str, tuple[int, int]]
"""For each kind of call, how many calls one process made, and how many of them the run let fail."""


def met_in(ledger: Ledger) -> Met:
    """Return what one process made of each kind of call."""
    return {kind: ledger.met(kind) for kind in CALL_KINDS}


def never_happened(failures: Sequence[str], processes: Sequence[Met]) -> Iterator[str]:
    """Yield what to say of each failure that happened in no process; ``failures`` are those that ``--fail`` asked for.

    One that happens by chance may stay away. Of two for the same kind of call, the runtime takes the last.
    """
    armed = {text.partition(":")[0]: text for failure in failures for text in failure.split(",") if text}
    for kind, text in armed.items():
        calls, failed = zip(*(met[kind] for met in processes), strict=True)
        if "%" in text or any(failed):
            continue
        who = "the program" if len(processes) == 1 else "the process with the most of them"
        made = counted(max(calls), "such call") if any(calls) else "no such call"
        yield f"--fail {text} never happened: {who} made {made}"
