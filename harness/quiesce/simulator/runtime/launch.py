"""One run of a program on the simulated runtime: its folder, its loader path, its settings, its ledgers."""

from __future__ import annotations

import errno
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.files import private_folder
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.outcomes import Flavour
from quiesce.simulator.runtime.build import build_audit, build_library
from quiesce.simulator.runtime.clients import installed_for, read_command
from quiesce.simulator.runtime.flavours import COMPILERS, Simulated
from quiesce.simulator.runtime.kernel_compiler import kernel_compiler
from quiesce.simulator.runtime.ledger import was_begun
from quiesce.simulator.runtime.library_server import library_server
from quiesce.simulator.runtime.loading import loader_variables
from quiesce.simulator.runtime.loads import Load, read_loads
from quiesce.simulator.runtime.lookalikes import write_lookalikes
from quiesce.simulator.runtime.packages import xla_variables
from quiesce.simulator.runtime.processes import Descendants, SignalRelay, Survivor, guarded, is_running
from quiesce.simulator.runtime.run_folder import PREFIX, FolderOwner, LeftFolder, note_status, refuse_other_kinds

if TYPE_CHECKING:
    from quiesce.model.backend import DeviceProfile

SETTINGS_VARIABLE: Final = "QUIESCE_SIMULATOR"
SCHEDULES: Final = ("eager", "lazy", "seeded")
"""When queued work runs: at once, as late as allowed, or in an order from the seed."""
RECYCLING: Final = ("late", "eager", "never")
"""When an address is used again that was given back: the default for programs first."""


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """What a run asks of the machine. ``options`` are further settings, by the names in ``machine/settings.c``."""

    simulated: Simulated
    schedule: str = "eager"
    seed: int = 0
    options: Mapping[str, str | int] = field(default_factory=dict)
    redirects: bool = True
    """Whether CUDA runtimes that are linked into programs statically are redirected to the simulated one."""
    kernels: bool = False
    """Whether CUDA kernels compute, from their PTX."""
    libraries: bool = False
    """Whether functions of vendors' libraries compute, with NumPy and SciPy."""

    def text(self, folder: Path | None = None) -> str:
        """Return the settings as the library reads them."""
        named: dict[str, str | int] = {
            "flavour": self.simulated.flavour.value,
            "version": self.simulated.version,
            "schedule": self.schedule,
            "seed": self.seed,
            **({"kernels": 1} if self.kernels else {}),
            **self.options,
        }
        if folder is not None:
            named["folder"] = str(folder)
        for name, value in named.items():
            if ";" in str(value):
                raise ConfigurationError(f"'{value}' can't be a value of '{name}': leave the ';' out")
        return ";".join(f"{name}={value}" for name, value in named.items())


def device_options(profile: DeviceProfile) -> dict[str, str | int]:
    """Return the :attr:`MachineSettings.options` that make devices of a profile."""
    return {
        "capacity": profile.capacity_bytes,
        "pinned": profile.pinned_capacity_bytes,
        "granularity": profile.granularity_bytes,
        "devices": profile.devices,
    }


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that ended. ``status`` is its exit status, negative for a signal; ``ledgers`` are by process."""

    status: int
    ledgers: tuple[Path, ...]
    loads: tuple[Load, ...]
    """Which programs began, and whose runtimes they loaded."""
    refused: tuple[Path, ...]
    """Where the ledgers of other processes would lie, which were refused all that they asked for."""
    running: frozenset[int]
    """The processes that had not ended when the program had."""
    folder: Path
    """Where else its processes leave what they found."""
    survivors: tuple[Survivor, ...] = ()
    """The processes that it started and that were still running, some time after it had ended."""


def _process(path: Path) -> tuple[int, int]:
    number, _, again = path.stem.partition("-")
    return int(number), int(again or 0)


def process_of(ledger: Path) -> int:
    """Return the number of the process that a ledger is of."""
    return _process(ledger)[0]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder with the look-alike libraries of one program, which may be started more than once."""

    folder: Path
    program: Path
    _environment: Mapping[str, str]

    def environment(self, settings: MachineSettings) -> dict[str, str]:
        """Return the environment in which the program finds the runtime, set up as ``settings`` say."""
        return {**self._environment, SETTINGS_VARIABLE: settings.text(self.folder)}

    def ledgers(self) -> tuple[Path, ...]:
        """Return the ledgers that processes have left so far, in the order of their numbers."""
        return tuple(sorted(filter(was_begun, self.folder.glob("*.ledger")), key=_process))

    def refused(self) -> tuple[Path, ...]:
        """Return where the ledgers of processes would lie that made calls and got no device at all."""
        stems = (path.with_suffix(".ledger") for path in self.folder.glob("*.refusals"))
        return tuple(sorted((path for path in stems if not path.exists()), key=_process))

    def running(self) -> frozenset[int]:
        """Return which of the processes that are known have not ended."""
        known = {process_of(path) for path in self.ledgers()} | {load.process for load in self.loads()}
        return frozenset(filter(is_running, known))

    def ended(self, status: int) -> Ended:
        """Return what the processes of a program have left that ended with this exit status."""
        return Ended(status, self.ledgers(), self.loads(), self.refused(), self.running(), self.folder)

    def loads(self) -> tuple[Load, ...]:
        """Return what the dynamic loader did in the processes so far."""
        return read_loads(self.folder)


@contextmanager
def _written() -> Iterator[None]:
    """Say what to do where the folder of a run can't be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise ConfigurationError(
            f"the folder of the run can't be written: {error.strerror}; set TMPDIR to a folder with more room than "
            f"{tempfile.gettempdir()}"
        ) from None


@contextmanager
def prepare(
    words: Sequence[str],
    simulated: Simulated,
    environment: Mapping[str, str],
    *,
    redirects: bool = True,
    kernels: bool = False,
    libraries: bool = False,
    follows: bool = False,
    options: Sequence[str] = (),
) -> Iterator[Prepared]:
    """Write the libraries that a program needs, for as long as the ``with`` lasts.

    ``options`` are those of ``quiesce exec``, for who judges the run after that was killed.
    ``follows`` says that the machine takes another flavour where the program loads a runtime of that.

    Raises :class:`ConfigurationError` where there is no such program,
    :class:`UnreadableObject` where it can't be loaded on this machine, and
    :class:`BackendUnavailable` where the runtime can't be built here.
    """
    command = read_command(words, environment)
    runtime, audit = build_library(), build_audit()
    owner: FolderOwner | None = None
    with _written():
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        private_folder(folder)
        written = folder / "lib"
        compilers = COMPILERS if kernels and simulated.flavour is Flavour.CUDA else ()
        computed = simulated.computed if libraries else ()
        how = {"redirects": redirects, "kernels": bool(compilers), "follows": follows}
        with _written():
            owner = FolderOwner(folder, words, options)
            written.mkdir()
            write_lookalikes(written, runtime, simulated, command, (*compilers, *computed), computes=libraries)
            variables = loader_variables(folder, runtime, audit, simulated, environment, computed=computed, **how)
            if compilers:
                variables |= xla_variables(installed_for(command), command.environment)
        yield Prepared(folder, command.program, {**environment, **variables})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if owner is not None:
            owner.close()


@contextmanager
def run_program(
    words: Sequence[str],
    settings: MachineSettings,
    environment: Mapping[str, str],
    *,
    meanwhile: Callable[[], None] | None = None,
    options: Sequence[str] = (),
) -> Iterator[Ended]:
    """Run a program to its end; its ledgers exist inside the ``with``. ``meanwhile`` is called once it runs.

    The program ends with this process, however that ends. ``options`` are kept for who judges the run then.

    Raises what :func:`prepare` raises, and :class:`ConfigurationError` for settings that the library does not take.
    """
    check_settings(settings)
    follows = bool(settings.options.get("follows"))
    how = {"redirects": settings.redirects, "kernels": settings.kernels, "libraries": settings.libraries}
    with prepare(words, settings.simulated, environment, options=options, follows=follows, **how) as prepared:
        relay, descendants = SignalRelay(), Descendants()
        compiler = kernel_compiler(prepared.folder, descendants.spare) if settings.kernels else nullcontext()
        computing = library_server(prepared.folder, descendants.spare) if settings.libraries else nullcontext()
        guard = guarded(prepared.folder, descendants.spare)
        with relay.listening(), guard, compiler, computing, descendants.inherited():
            status = _run(words, prepared.program, prepared.environment(settings), meanwhile, relay, descendants)
            refuse_other_kinds(prepared.folder)
            note_status(prepared.folder, status)
            survivors = descendants.left(prepared.folder)
            running = prepared.running()
        yield replace(prepared.ended(status), running=running, survivors=survivors)


def ended_before(left: LeftFolder) -> Ended:
    """Return what a run left whose ``quiesce exec`` was killed."""
    return Prepared(left.folder, Path(), {}).ended(left.status or 0)


def check_settings(settings: MachineSettings, library: str | None = None) -> None:
    """Ask the library itself, which alone knows what it takes, before anything is started.

    ``library`` is its name in a process that ``quiesce exec`` started. Raises
    :class:`ConfigurationError` for settings that it does not take, and
    :class:`BackendUnavailable` where it can't be compiled.
    """
    import ctypes

    path = library or str(build_library())
    try:
        loaded = ctypes.CDLL(path)
        loaded.quiesce_check.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise BackendUnavailable(
            "simulated",
            f"the simulated runtime '{path}' can't be loaded ({error})",
            "set QUIESCE_CACHE to a folder that libraries can be loaded from",
        ) from None
    wrong: bytes | None = loaded.quiesce_check(settings.text().encode("utf-8", "surrogateescape"))
    if wrong is not None:
        raise ConfigurationError(wrong.decode(errors="replace"))


def _run(
    words: Sequence[str],
    program: Path,
    environment: Mapping[str, str],
    meanwhile: Callable[[], None] | None,
    relay: SignalRelay,
    descendants: Descendants,
) -> int:
    try:
        started = subprocess.Popen(  # noqa: S603 - a list, no shell
            list(words), executable=program.absolute(), env=environment
        )
    except OSError as error:
        raise ConfigurationError(
            f"{program} can't be started ({error.strerror}); if it is a script, correct its first line, or name the "
            "interpreter"
        ) from None
    with started as process:
        try:
            relay.attach(process)
            descendants.begin(process.pid)
            if meanwhile is not None:
                meanwhile()
            return process.wait()
        except BaseException:
            process.kill()
            raise
