"""What to say to whoever runs a program that was refused a device: by whom, why, and what to install or to set.

CUDA runtimes that were linked into its files statically are the most common reason: which were redirected, which not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from quiesce.model.outcomes import Flavour
from quiesce.model.wording import bytes_in_words
from quiesce.simulator.judge.wording import things_in_words
from quiesce.simulator.runtime import (
    COMPILER_PACKAGES,
    KNOWN,
    Load,
    Loaded,
    Package,
    Record,
    Refusal,
    RefusalKind,
    Simulated,
    Thing,
    releases_of_functions,
)

_OF_A_MAJOR: Final = 1000
_OF_A_MINOR: Final = 10


@dataclass(frozen=True, slots=True)
class LinkedRuntime:
    """A runtime whose functions were redirected. ``version`` is 12090 for 12.9, and 0 where it is not known."""

    file: Path
    version: int

    @property
    def major(self) -> int:
        """The number by which a flavour is chosen."""
        return self.version // _OF_A_MAJOR

    def fits(self, simulated: Simulated) -> bool:
        """Say whether the simulated runtime has the layouts and rules of this one."""
        return not self.version or (simulated.flavour is Flavour.CUDA and simulated.version == self.major)

    def __str__(self) -> str:
        return f"CUDA {self.major}.{self.version % _OF_A_MAJOR // _OF_A_MINOR}"


def linked_runtimes(loads: Iterable[Load]) -> tuple[LinkedRuntime, ...]:
    """Return what was redirected, each file once."""
    own = (load for load in loads if load.kind is Loaded.REDIRECTED)
    found = {load.path: LinkedRuntime(load.path, int(load.detail or 0)) for load in own}
    return tuple(found.values())


def left_alone(loads: Iterable[Load]) -> Mapping[Path, str]:
    """Return the files whose runtime was not redirected, and why."""
    return {load.path.resolve(): load.detail for load in loads if load.kind is Loaded.UNREDIRECTED}


Owner: TypeAlias = Callable[[Path], Package | None]
"""Finds the package that a file belongs to."""

_OWN_TABLES: Final = "cuGetExportTable"
"""What NVIDIA's runtime asks NVIDIA's driver for; nobody else does."""
_RUNTIME: Final = re.compile(r"libcudart(?![A-Za-z_]).*\.so(?:\.[0-9.]+)?")
"""A shared runtime by its file's name, also the copies that wheels bring along (``libcudart-5a077122.so.12.9.79``)."""
_NUMBERED: Final = re.compile(r"lib(cudart|amdhip64).*\.so\.(\d+)")
_ASKS_ONLY: Final = re.compile("Query|GetError|LastError|Version|__(?:cuda|hip)(?:Unr|R)egister")
"""In the names of functions, CUDA's and HIP's, for which a device has nothing to do."""
_UNKNOWN: Final = "its functions were not recognized"
_COMPILERS: Final = {"nvrtc": ("NVRTC", "libnvrtc"), "nvvm": ("libNVVM", "libnvvm")}
"""NVIDIA's compilers, which need no GPU, by how their functions begin: the title, and the library."""
_ASKS_WHY: Final = re.compile("GetError|GetLastError")
"""In the names of functions that are called because another one failed."""
_SHOWN_MAX: Final = 3
_CAPACITY_MAX: Final = 1 << 50
"""What is more is no request for a larger device, but a wrong size, such as a negative number."""


def refused_text(
    refusals: Sequence[Refusal],
    vendors: Sequence[Path],
    simulated: Simulated,
    owner: Owner,
    left_alone: Mapping[Path, str] = MappingProxyType({}),
) -> str:
    """Return who was refused, and what to do; what else a vendor's own runtime is refused follows from that.

    ``vendors`` are runtimes of a vendor's own that were loaded in place of the simulated one. ``left_alone`` are files
    with a runtime in them that was not redirected, and why.
    """
    of_runtimes = [*runtimes_refused(refusals, vendors, simulated, owner, left_alone)]
    return "; ".join(of_runtimes or [*_others_refused(refusals, simulated, owner)])


def runtimes_refused(
    refusals: Sequence[Refusal],
    vendors: Sequence[Path],
    simulated: Simulated,
    owner: Owner,
    left_alone: Mapping[Path, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield what to say of runtimes of the vendor's own, shared or linked into their clients."""
    callers = [Path(caller) for caller in dict.fromkeys(each.caller for each in refusals if _is_runtimes(each))]
    shared = dict.fromkeys((*vendors, *(caller for caller in callers if _RUNTIME.fullmatch(caller.name))))
    linked = [caller for caller in callers if caller not in shared]
    if shared:
        names = _listed(str(runtime) + _of(owner(runtime)) for runtime in shared)
        advice = flavours_of(shared)
        yield f"the vendor's own runtime was loaded instead of the simulated {simulated}: {names}. {advice}"
    if linked:
        names = _listed((caller.name or "a library") + _of(owner(caller)) for caller in linked)
        why = _listed(left_alone.get(caller, _UNKNOWN) for caller in linked)
        yield (
            f"CUDA's runtime is linked statically into {names}, and was not redirected to the simulated one ({why}), "
            f"so it got no device. Use a build that loads {simulated.libraries[0]} (nvcc --cudart shared; CMake: "
            "CUDA_RUNTIME_LIBRARY Shared), or run it on a GPU"
        )


def linked_text(runtimes: Sequence[LinkedRuntime], owner: Owner) -> str:
    """Return which runtimes are linked into which files, and the flavour to choose for them."""
    files = _listed(f"{each} is linked into {each.file.name}{_of(owner(each.file))}" for each in runtimes)
    return f"{files}. {_listed(_flavour_named(f'cuda:{each.major}') for each in runtimes)}"


def memory_refused_text(largest: Record) -> str:
    """Return what to say where every request for memory was refused; ``largest`` is the largest of them."""
    if largest.thing is Thing.PINNED or largest.size_bytes > _CAPACITY_MAX:
        advice = "ask for less"
    else:
        enough = 1 << largest.size_bytes.bit_length()
        advice = f"use --capacity {max(1, enough >> 30)}GiB"
    what = things_in_words(largest.thing, 1).partition(" of ")[2]
    size = bytes_in_words(largest.size_bytes)
    return f"all requests for memory were refused; the largest was {size} of {what}; {advice}"


def named_by(runtime: Path) -> str:
    """Return the flavour that a runtime belongs to by its file's name, such as ``hip:5``; empty for others."""
    found = _NUMBERED.match(runtime.resolve().name)
    return f"{'hip' if found[1] == 'amdhip64' else 'cuda'}:{found[2]}" if found else ""


def flavours_of(runtimes: Iterable[Path]) -> str:
    """Return which flavour to choose for runtimes, by their files' names."""
    named = [named_by(each) for each in runtimes]
    return _listed(map(_flavour_named, filter(None, named) if any(named) else named))


def _flavour_named(named: str) -> str:
    if any(named == str(known) for known in KNOWN):
        return f"Run it with --flavour {named}"
    return f"This version is not simulated: install one of {', '.join(map(str, KNOWN))}"


def asks_only(refusal: Refusal) -> bool:
    """Say whether a child of fork() was refused what its device would have done nothing for."""
    return refusal.kind is RefusalKind.FORKED and _ASKS_ONLY.search(refusal.function) is not None


def _is_runtimes(refusal: Refusal) -> bool:
    return refusal.kind is RefusalKind.NOT_SIMULATED and refusal.function == _OWN_TABLES


def missing_text(refusals: Iterable[Refusal], simulated: Simulated, owner: Owner, so: str = "") -> str:
    """Return which functions were called that are not simulated, ``so`` what follows, and what to do; empty if none."""
    called = [each for each in refusals if each.kind is RefusalKind.NOT_SIMULATED and not _is_runtimes(each)]
    missing = [each for each in called if not _ASKS_WHY.search(each.function)] or called
    if not missing:
        return ""
    names = _listed(f"{each.function}{_called_by(each.caller, owner)}" for each in missing)
    is_not = "is not simulated" if len({each.function for each in missing}) == 1 else "are not simulated"
    for beginning, (title, library) in _COMPILERS.items():
        package = COMPILER_PACKAGES[library].get(simulated.version) if simulated.flavour is Flavour.CUDA else None
        if package and all(each.function.startswith(beginning) for each in missing):
            return (
                f"{names} {is_not}{so}. Install {title}, which needs no GPU: pip install {package}. If the program "
                f"does not find it, add the folder of its {library}.so to LD_LIBRARY_PATH"
            )
    return f"{names} {is_not}{so}. Leave that part out, or run it on a GPU"


def uninstalled_text(refusals: Iterable[Refusal]) -> str:
    """Return which of NVIDIA's compilers were asked for and are not installed, and what to run; empty if none."""
    return "; ".join(each.function for each in refusals if each.kind is RefusalKind.NOT_INSTALLED)


def names_text(refusals: Iterable[Refusal], simulated: Simulated, owner: Owner) -> str:
    """Return which functions were looked for in vain, and which flavour has them; empty if none."""
    looked_for = [each for each in refusals if each.kind is RefusalKind.MISSING]
    if not looked_for:
        return ""
    table = releases_of_functions(simulated.driver)
    names = _listed(f"{each.function}{_asked_by(each.caller, owner)}" for each in looked_for)
    later = [known for known in KNOWN if known.flavour is simulated.flavour and known.release > simulated.release]
    newer = [each.function for each in looked_for if simulated.release < table.get(each.function, 0)]
    needed = max((table[name] for name in newer), default=0)
    enough = next((str(each) for each in later if needed <= each.release), "")
    advice = f". Run it with --flavour {enough}, which has {_listed(newer)}" if newer and enough else ""
    return f"it looked for {names} in vain, which {simulated} (release {_release(simulated)}) does not have{advice}"


def _release(simulated: Simulated) -> str:
    return f"{simulated.release // 1000}.{simulated.release % 1000 // 10}"


def _others_refused(refusals: Sequence[Refusal], simulated: Simulated, owner: Owner) -> Iterator[str]:
    if missing := missing_text(refusals, simulated, owner, ", and no device memory was used"):
        yield missing
    for each in refusals:
        if each.kind is RefusalKind.NOT_STARTED:
            yield f"the simulated runtime could not start at {each.function}: {each.caller}"
    forked = [each for each in refusals if each.kind is RefusalKind.FORKED]
    if forked:
        asked = [each for each in forked if not asks_only(each)]
        names = _listed(each.function for each in asked or forked)
        yield (
            f"a child of fork() called {names} and was refused a device, as on a GPU. Start it as a new process: "
            "multiprocessing.set_start_method('spawn')"
        )
    failed = [each for each in refusals if each.kind is RefusalKind.FAILED]
    if failed:
        names = _listed(f"{each.function} (error {each.status})" for each in failed)
        yield f"{names} failed before the program used the device"


def _listed(texts: Iterable[str]) -> str:
    different = [*dict.fromkeys(texts)]
    more = len(different) - _SHOWN_MAX
    return ", ".join(different[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _of(package: Package | None) -> str:
    return f" of {package}" if package else ""


def _called_by(caller: str, owner: Owner) -> str:
    return f" (called by {Path(caller).name}{_of(owner(Path(caller)))})" if caller else ""


def _asked_by(caller: str, owner: Owner) -> str:
    is_helper = Path(caller).name.startswith(("_ctypes", "libffi"))  # which says nothing of who asked
    return "" if is_helper else _called_by(caller, owner).replace("called", "asked", 1)
