"""The fixture ``simulated_device``: a simulated GPU for one test, and the judgement of what the test did with it.

Where pytest itself runs under ``quiesce exec``, the machine is the one that all of the process has, and the test
answers for the part of the ledger that was written meanwhile. Elsewhere the test gets a machine of its own.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

import pytest

from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.findings import Finding
from quiesce.model.outcomes import Flavour
from quiesce.model.requests import RequestError, evaluate_size
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted, pytest_command
from quiesce.pytest_plugin.attaching import as_text
from quiesce.pytest_plugin.keys import DEVICE_RESULT, REFUSED, SIMULATED_MARKER
from quiesce.reporting import finding_text
from quiesce.simulator.judge import AtExit, Between, RemoteWatch, Watch
from quiesce.simulator.runtime import (
    RECYCLING,
    SCHEDULES,
    SETTINGS_VARIABLE,
    Machine,
    MachineSettings,
    Simulated,
    check_settings,
    own_ledger,
    parse_flavour,
)

_OPTIONS: Final = ("capacity", "devices", "fail", "pinned", "recycle", "stacks")
_WORDS: Final = ("flavour", "schedule", "seed", "left", *_OPTIONS)
_LEAST: Final = {"devices": 1, "seed": 0}
"""The least of each number; the most of it only the library knows."""
_CHOICES: Final = {
    "schedule": SCHEDULES,
    "recycle": RECYCLING,
    "left": tuple(AtExit),
}
_NEVER_USED: Final = (
    "no memory, stream or kernel of the simulated device was used. Code that is linked with the "
    "runtime reaches it under 'quiesce exec -- pytest' only. A test that uses no device on purpose says so: "
    "assert not simulated_device.judge()"
)

REMOTE_WATCH: Final[pytest.StashKey[RemoteWatch]] = pytest.StashKey()
"""In ``config.stash``: the judge of this process's ledger, under ``quiesce exec``."""


class _Watching(Protocol):
    def findings(self, left: AtExit) -> Between: ...


class SimulatedDevice:
    """What a test gets. ``library`` has the runtime's functions by the vendor's names, for ctypes."""

    def __init__(
        self, simulated: Simulated, library: ctypes.CDLL, watch: _Watching, left: AtExit, *, must_be_used: bool
    ) -> None:
        self.simulated = simulated
        self.library = library
        self.lost = 0
        """How many calls were overwritten before they were judged."""
        self.unused = ""
        """Why nothing was tested, where the test leaves the judgement to its end."""
        self._must_be_used = must_be_used
        self._watch = watch
        self._left = left

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function by its name without ``cuda`` or ``hip``; return its status."""
        status: int = self._function(function)(*arguments)
        return status

    def address_of(self, function: str) -> int:
        """Return the address of a function (its name without ``cuda`` or ``hip``), for code that is given pointers."""
        return ctypes.cast(self._function(function), ctypes.c_void_p).value or 0

    def _function(self, function: str) -> Any:
        return getattr(self.library, ("hip" if self.simulated.flavour is Flavour.HIP else "cuda") + function)

    def judge(self) -> tuple[Finding, ...]:
        """Return the rules that were broken since the last time, and what is left of what the test made.

        What is returned here is the test's to judge: the end of the test does not report it again, nor that the
        device was not used.
        """
        self._must_be_used = False
        return self._judge(self._left)

    def _judge(self, left: AtExit) -> tuple[Finding, ...]:
        if left is AtExit.LOST:
            gc.collect()
            self.library.quiesce_look()
        seen = self._watch.findings(left)
        self.lost += seen.lost
        if seen.untested is not None and self._must_be_used:
            self.unused = seen.untested.reason if seen.untested.refused else _NEVER_USED
        return seen.findings

    def end(self, *, failed: bool) -> tuple[Finding, ...]:
        """Return what the test has to answer for; one that failed could not give back what it held."""
        return self._judge(AtExit.NONE if failed else self._left)


@contextmanager
def simulated_device(request: pytest.FixtureRequest) -> Iterator[SimulatedDevice]:
    """Give a test its device. Skips the test where there can be none."""
    asked = asked_of(request.node)
    text = os.environ.get(SETTINGS_VARIABLE) or None
    if text is None:
        with _machine_of_its_own(asked) as device:
            yield device
    else:
        with _machine_of_the_process(request.config, asked, text) as device:
            yield device


def check_markers(items: Iterable[pytest.Item]) -> None:
    """Check what tests' markers ask for. Raises :class:`ConfigurationError` where that makes no sense.

    What only the library knows is left out where there can be none: such tests are skipped.
    """
    text = os.environ.get(SETTINGS_VARIABLE) or None
    library = None if text is None else _given(text)[0].libraries[0]
    checked: set[str] = set()
    for item in items:
        settings = _settings(asked_of(item))
        try:
            if settings.text() not in checked:
                checked.add(settings.text())
                check_settings(settings, library)
        except ConfigurationError as error:
            raise _wrong(item, error) from None
        except BackendUnavailable:
            continue


def asked_of(item: pytest.Item) -> dict[str, Any]:
    """Return what a test's marker asks for. Raises :class:`ConfigurationError` where that makes no sense."""
    marker = item.get_closest_marker(SIMULATED_MARKER)
    try:
        return {} if marker is None else _asked(marker)
    except ConfigurationError as error:
        raise _wrong(item, error) from None


def _wrong(item: pytest.Item, error: ConfigurationError) -> ConfigurationError:
    return ConfigurationError(f"{item.nodeid}: @pytest.mark.{SIMULATED_MARKER}: {error}")


def _asked(marker: pytest.Mark) -> dict[str, Any]:
    asked = {**({"flavour": marker.args[0]} if marker.args else {}), **marker.kwargs}
    unknown = sorted(set(asked) - set(_WORDS))
    if unknown or len(marker.args) > 1:
        wrong = f"'{unknown[0]}' is not known" if unknown else "only the flavour can be given without its name"
        raise ConfigurationError(f"{wrong}; write {', '.join(_WORDS)}")
    if "flavour" in asked:
        parse_flavour(str(asked["flavour"]))
    for name, words in _CHOICES.items():
        if asked.get(name, words[0]) not in words:
            raise ConfigurationError(f"{name}={asked[name]!r}; write {', '.join(words[:-1])} or {words[-1]}")
    for name, least in _LEAST.items():
        if name in asked:
            asked[name] = _number(name, asked[name], least)
    if "stacks" in asked:
        if asked["stacks"] not in (True, False):
            raise ConfigurationError(f"stacks={asked['stacks']!r}; write True or False")
        asked["stacks"] = int(asked["stacks"])
    if not isinstance(asked.get("fail", ""), str):
        raise ConfigurationError(f"fail={asked['fail']!r}; write a text such as 'device:1' or 'device:1,copy:2+'")
    for name in ("capacity", "pinned"):
        if name in asked:
            try:
                asked[name] = evaluate_size(str(asked[name]), {})
            except RequestError as error:
                raise ConfigurationError(f"{name}: {error}") from None
    return asked


def _number(name: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{name}={value!r}; write a whole number of at least {least}")
    return value


def _settings(asked: Mapping[str, Any]) -> MachineSettings:
    options = {"recycle": RECYCLING[0], **{name: asked[name] for name in _OPTIONS if name in asked}}
    simulated = parse_flavour(str(asked.get("flavour", "cuda:12")))
    return MachineSettings(simulated, asked.get("schedule", "eager"), asked.get("seed", 0), options)


@contextmanager
def _machine_of_its_own(asked: Mapping[str, Any]) -> Iterator[SimulatedDevice]:
    settings = _settings(asked)
    try:
        machine = Machine(settings)
    except BackendUnavailable as error:
        pytest.skip(f"no simulated device here: {error}")
    except ConfigurationError as error:
        raise pytest.fail.Exception(f"@pytest.mark.{SIMULATED_MARKER}: {error}", pytrace=False) from None
    watch = Watch(machine.ledger, machine.stacks, touched=machine.touched)
    try:
        yield SimulatedDevice(
            settings.simulated,
            machine.library,
            watch,
            AtExit(asked.get("left", "all")),
            must_be_used="fail" not in asked,
        )
    finally:
        machine.close()


def _given(text: str) -> tuple[Simulated, dict[str, str]]:
    """Return the flavour and the settings of the machine that ``quiesce exec`` gave this process."""
    given = dict(word.split("=", 1) for word in text.split(";") if word)
    simulated = parse_flavour(f"{given['flavour']}:{given['version']}")
    return simulated, {**given, "flavour": str(simulated)}


@contextmanager
def _machine_of_the_process(config: pytest.Config, asked: Mapping[str, Any], text: str) -> Iterator[SimulatedDevice]:
    simulated, given = _given(text)
    for name, value in asked.items():
        if name != "left" and given.get(name) != str(value):
            pytest.skip(
                f"the test wants a device with {name}={value}, and 'quiesce exec' gave this process one with "
                f"{name}={given.get(name, 'the default')}; run it without 'quiesce exec', or change its options"
            )
    library = ctypes.CDLL(simulated.libraries[0])
    prefix = "hip" if simulated.flavour is Flavour.HIP else "cuda"
    getattr(library, f"{prefix}GetDeviceCount")(ctypes.byref(ctypes.c_int()))  # the first call starts the machine
    if REMOTE_WATCH not in config.stash:
        config.stash[REMOTE_WATCH] = watch = RemoteWatch(own_ledger(Path(given["folder"])))
        config.add_cleanup(watch.close)
    watch = config.stash[REMOTE_WATCH]
    watch.begin()
    yield SimulatedDevice(
        simulated, library, watch, AtExit(asked.get("left", "lost")), must_be_used=not given.get("fail")
    )


def verdict(item: pytest.Item, device: SimulatedDevice, *, failed: bool) -> None:
    """Fail a test that has to answer for something, or tested nothing; say where something could not be judged."""
    findings = device.end(failed=failed)
    if device.lost:
        text = f"{counted(device.lost, 'call')} were overwritten before they were judged; keep more with --ring"
        item.warn(pytest.PytestWarning(f"simulated_device: {text}"))
    backend = str(device.simulated)
    path, again = item.nodeid.partition("::")[0], pytest_command(item.nodeid)
    if device.unused and not findings and not failed:
        why = f"nothing was tested: {device.unused}"
        untested = Result(item.nodeid, "", path, backend, Verdict.INCONCLUSIVE, why, must_conclude=True)
        item.stash[DEVICE_RESULT] = as_text(replace(untested, reproduce=again))
        pytest.fail(f"inconclusive: {why}", pytrace=False)
    if findings:
        found = Result(item.nodeid, "", path, backend, Verdict.FAILED, findings=findings, reproduce=again)
        item.stash[DEVICE_RESULT] = as_text(found)
        result = Result(item.name, "", "", backend, Verdict.FAILED, findings=findings)
        pytest.fail("\n".join(finding_text(result, finding) for finding in findings), pytrace=False)


def refuse(session: pytest.Session, text: str) -> NoReturn:
    """End the run with one line.

    A worker of pytest-xdist has told its tests by now and would be taken for one that died: it says why it ends, and
    the run ends with that line where pytest was started.
    """
    if hasattr(session.config, "workeroutput"):
        session.shouldfail = text
        session.config.workeroutput[REFUSED] = text
    raise pytest.UsageError(text)
