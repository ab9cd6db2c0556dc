"""Options and ini keys: what the user asked for, checked, as frozen values.

An option wins over its ini key, a test's marker over both.

pytest runs with mistyped ini keys and warns at the end, when what they asked for was not done. So the file is read once
more here: pytest offers no way to list the keys that it met. What reads it is imported only where the prefix occurs,
for this module is loaded in every project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from quiesce.leaks import Plan


SEED_MAX: Final = (1 << 64) - 1
"""The largest seed: what fits the 64 bits of every random generator that a driver program may use."""

_COUNT = re.compile(r"[1-9][0-9]{0,11}\Z")
_SEED = re.compile(r"[0-9]{1,20}\Z")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for.

    ``backends`` None means every backend that works here; ``backends_from`` and ``report_from`` name where they were
    asked for.
    ``explore`` is how many operations generated sequences perform on each backend.
    ``asked`` says whether anything of quiesce was asked for on the command line or in the ini file, and
    ``shares_devices`` that every worker of pytest-xdist is to see all of the GPUs.
    """

    backends: tuple[str, ...] | None
    backends_from: str
    seed: int
    report: Path | None
    report_from: str
    corpus: bool
    explore: int
    asked: bool
    shares_devices: bool


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini key."""
    group = parser.getgroup("quiesce", "memory-management cases (quiesce)")
    group.addoption(
        "--quiesce-backend",
        action="append",
        default=None,
        metavar="NAME",
        help="run cases on this backend; repeatable (default: every backend that works here)",
    )
    group.addoption(
        "--quiesce-seed",
        default=None,
        metavar="N",
        help="the seed from which all randomness flows (default: 0)",
    )
    group.addoption(
        "--quiesce-report",
        default=None,
        metavar="DIR",
        help="write DIR/results.jsonl as results arrive, and at the end DIR/report.json, DIR/junit.xml and, with the "
        "extra 'report', DIR/report.html",
    )
    group.addoption(
        "--quiesce-corpus",
        action="store_true",
        default=None,
        help="also collect the cases that come with quiesce",
    )
    group.addoption(
        "--quiesce-explore",
        default=None,
        metavar="N",
        help="also run generated sequences of so many operations on each backend, in items of 10,000 operations",
    )
    parser.addini("quiesce_backends", "the backends to run cases on, separated by spaces", type="args", default=None)
    parser.addini("quiesce_seed", "the seed from which all randomness flows", default=None)
    parser.addini("quiesce_report", "the folder for reports, relative to the ini file's folder", default=None)
    parser.addini("quiesce_worker_devices", "the GPUs that a worker of pytest-xdist sees: one or all", default="one")
    parser.addini("quiesce_corpus", "whether to collect the cases that come with quiesce", type="bool", default=None)


def read_settings(config: pytest.Config) -> Settings:
    """Return what the user asked for.

    Raises :class:`pytest.UsageError` with one line that says which option is wrong and what to write instead.
    """
    backends, backends_from = _backends(config)
    seed = _text(config, "seed", "a whole number such as 123")
    report, from_option = _text(config, "report", "a folder such as reports/out")
    corpus = config.getoption("--quiesce-corpus")
    if corpus is None:
        corpus = _ini(config, "quiesce_corpus", "true or false")
    return Settings(
        backends=backends,
        backends_from=backends_from,
        seed=_seed(*seed),
        report=_report(config, report, from_option),
        report_from=_source("report", from_option),
        corpus=bool(corpus),
        explore=_explore(config.getoption("--quiesce-explore")),
        asked=any(value is not None for value in (backends, seed[0], report, config.getoption("--quiesce-explore")))
        or bool(corpus),
        shares_devices=_shares_devices(config),
    )


def _shares_devices(config: pytest.Config) -> bool:
    value = _ini(config, "quiesce_worker_devices", "one or all")
    if value not in ("one", "all"):
        raise pytest.UsageError(f"ini key quiesce_worker_devices: '{value}' is not a choice; write one or all")
    return value == "all"


def _ini(config: pytest.Config, key: str, instead: str) -> object:
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:  # which of them depends on pytest's version
        raise pytest.UsageError(f"ini key '{key}' cannot be read: {error}; write {key} = {instead}") from None


def _text(config: pytest.Config, name: str, instead: str) -> tuple[str | None, bool]:
    """Return the value of an option or its ini key, and whether the option gave it."""
    option = config.getoption(f"--quiesce-{name}")
    if option is not None:
        return str(option), True
    value = _ini(config, f"quiesce_{name}", instead)
    return (None if value is None else str(value)), False


def _source(name: str, from_option: bool) -> str:
    return f"--quiesce-{name}" if from_option else f"ini key quiesce_{name}"


def _backends(config: pytest.Config) -> tuple[tuple[str, ...] | None, str]:
    option = config.getoption("--quiesce-backend")
    if option is not None:
        names, source, instead = option, "--quiesce-backend", "--quiesce-backend=reference"
    else:
        names = _ini(config, "quiesce_backends", "reference host")
        source, instead = "ini key quiesce_backends", "quiesce_backends = reference"
    if names is None:
        return None, ""
    if not names or not all(names):
        raise pytest.UsageError(f"{source} names no backend, so nothing could run; write one, such as {instead}")
    return tuple(dict.fromkeys(names)), source


def _seed(text: str | None, from_option: bool) -> int:
    if text is None:
        return 0
    if not _SEED.match(text) or int(text) > SEED_MAX:
        source = _source("seed", from_option)
        raise pytest.UsageError(f"{source}: '{text}' is not a seed; write a whole number from 0 to {SEED_MAX}")
    return int(text)


def _explore(text: str | None) -> int:
    if text is None:
        return 0
    if not _COUNT.match(text):
        raise pytest.UsageError(f"--quiesce-explore: '{text}' is no number of operations; write one such as 200000")
    return int(text)


def _report(config: pytest.Config, text: str | None, from_option: bool) -> Path | None:
    if text is None:
        return None
    if not text:
        raise pytest.UsageError(f"{_source('report', from_option)} names no folder; write one, such as reports/out")
    base = config.invocation_params.dir if from_option else (config.inipath or config.rootpath / "_").parent
    return base / text


_KEYS: Final = {
    "rounds": ("N", "how many rounds growth must last to be a leak; 0 switches the checks off (default: 64)", "64"),
    "limit": ("SIZE", "how much each gauge of memory may grow per round, such as '2 KiB' (default: 0)", "2 KiB"),
    "limit_bytes": ("N", "the same as a number of bytes", "2048"),
    "limit_peak": ("SIZE", "how much memory a test may use at any time, such as '24 MiB' (default: any)", "24 MiB"),
    "seconds": ("N", "how long the check of a test may take (default: 10)", "10"),
    "gauges": ("NAMES", "the gauges to look at, separated by commas (default: all)", "python,descriptors"),
}
"""The keys of a plan: what stands for its value, its help, and an example."""

_ALL: Final = "all"
_MARKED: Final = "marked"

LEAK_INI_KEYS: Final = (
    "quiesce_leak",
    "quiesce_leak_baseline",
    "quiesce_strict",
    *(f"quiesce_leak_{key}" for key in _KEYS),
)


@dataclass(frozen=True, slots=True)
class LeakSettings:
    """What the user asked for.

    ``given`` has each value with the name of where it was given. ``checks_all`` says that every test is checked, and
    ``is_strict`` that a test fails whose check has no verdict. ``baseline`` is the file of known leaks, with the
    name of where it was given, and ``writes_baseline`` says that it is written anew.
    """

    given: tuple[tuple[str, str, str], ...]
    checks_all: bool = False
    is_strict: bool = False
    baseline: tuple[Path, str] | None = None
    writes_baseline: bool = False

    @property
    def off(self) -> bool:
        """Whether the checks are switched off."""
        return any(key == "rounds" and value == "0" for key, value, _ in self.given)

    def plan(self) -> Plan:
        """Return the plan of every test that says nothing else. Raises :class:`pytest.UsageError` with one line."""
        from quiesce.leaks import Plan, adjusted
        from quiesce.model.errors import ConfigurationError

        plan = Plan()
        for key, value, source in () if self.off else self.given:
            try:
                plan = adjusted(plan, {key: value}, source)
            except ConfigurationError as error:
                off = ", or 0 for no checks" if key == "rounds" else ""
                raise pytest.UsageError(f"{error}{off}") from None
        return plan


def add_leak_options(parser: pytest.Parser) -> None:
    """Declare the options and their ini keys."""
    group = parser.getgroup("quiesce", "memory-management cases (quiesce)")
    group.addoption(
        "--quiesce-leak",
        action="store_true",
        default=None,
        help="check every test of the run for leaks, not only those that are marked 'leak'",
    )
    parser.addini("quiesce_leak", "the tests to check for leaks: marked (default) or all", default=None)
    strict = "every test fails whose leak check comes to no verdict, also one that is not marked 'leak'"
    group.addoption("--quiesce-strict", action="store_true", default=None, help=strict)
    parser.addini("quiesce_strict", strict, type="bool", default=None)
    known = "the file of known leaks: these do not fail their tests"
    group.addoption("--quiesce-leak-baseline", default=None, metavar="FILE", help=known)
    parser.addini("quiesce_leak_baseline", known, default=None)
    write = "accept every leak of this run, and write the file of known leaks anew"
    group.addoption("--quiesce-leak-write-baseline", action="store_true", default=False, help=write)
    for key, (metavar, meaning, _) in _KEYS.items():
        group.addoption(f"--quiesce-leak-{key.replace('_', '-')}", default=None, metavar=metavar, help=meaning)
        parser.addini(f"quiesce_leak_{key}", meaning, default=None)


def read_leak_settings(config: pytest.Config) -> LeakSettings:
    """Return what the user asked for. Raises :class:`pytest.UsageError` with one line for what makes no sense."""
    given = []
    for key, (_, _, example) in _KEYS.items():
        option, ini = f"--quiesce-leak-{key.replace('_', '-')}", f"quiesce_leak_{key}"
        value = config.getoption(option)
        if value is not None:
            given.append((key, str(value), option))
            continue
        value = _ini(config, ini, example)
        if value is not None:
            given.append((key, str(value), f"ini key {ini}"))
    strict = config.getoption("--quiesce-strict") or _ini(config, "quiesce_strict", "true or false")
    writes = bool(config.getoption("--quiesce-leak-write-baseline"))
    settings = LeakSettings(tuple(given), _checks_all(config), bool(strict), _baseline(config, writes), writes)
    if given:
        settings.plan()
    return settings


def _baseline(config: pytest.Config, writes: bool) -> tuple[Path, str] | None:
    """Return the file of known leaks: an option's is relative to where pytest was started, an ini file's to its own."""
    option, ini, example = "--quiesce-leak-baseline", "quiesce_leak_baseline", "known_leaks.toml"
    given = config.getoption(option)
    folder, source = config.invocation_params.dir, option
    if given is None:
        given = _ini(config, ini, example)
        folder, source = (config.inipath or config.rootpath / "_").parent, f"ini key {ini}"
    if given is None:
        if writes:
            raise pytest.UsageError(f"--quiesce-leak-write-baseline: which file? Write {option}={example} as well")
        return None
    if not given:
        raise pytest.UsageError(f"{source} names no file; write one, such as {example}")
    return folder / str(given), source


def _checks_all(config: pytest.Config) -> bool:
    if config.getoption("--quiesce-leak"):
        return True
    value = _ini(config, "quiesce_leak", f"{_MARKED} or {_ALL}")
    if value not in (None, _ALL, _MARKED):
        raise pytest.UsageError(f"ini key quiesce_leak: '{value}' is not a choice; write {_MARKED} or {_ALL}")
    return value == _ALL


PREFIX: Final = "quiesce_"
INI_KEYS: Final = (
    "quiesce_backends",
    "quiesce_corpus",
    "quiesce_report",
    "quiesce_seed",
    "quiesce_worker_devices",
    *LEAK_INI_KEYS,
)
_SECTIONS: Final = ("pytest", "tool:pytest")


def reject_unknown_keys(config: pytest.Config) -> None:
    """Raise :class:`pytest.UsageError` for a key with quiesce's prefix that is none of its own; name the nearest."""
    overridden = (text.partition("=")[0].strip() for text in config.getoption("override_ini") or ())
    for key in (*_keys_of(config.inipath), *overridden):
        if key.startswith(PREFIX) and key not in INI_KEYS:
            import difflib

            (nearest,) = difflib.get_close_matches(key, INI_KEYS, n=1, cutoff=0)
            raise pytest.UsageError(f"ini key {key}: quiesce has no key of that name; write {nearest}")


def _keys_of(path: Path | None) -> Iterator[str]:
    """Yield the keys of pytest's section of a file that pytest has read already, in whichever way it is written."""
    if path is None:
        return
    text = path.read_text(encoding="utf-8")
    if PREFIX not in text:
        return
    if path.suffix == ".toml":
        import tomllib

        document: dict[str, Any] = tomllib.loads(text)
        table = document.get("tool", document).get("pytest", {})
        yield from (*table, *table.get("ini_options", {}))
        return
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:  # pytest's own parser takes more, and warns of what it does not know
        return
    for section in _SECTIONS:
        if parser.has_section(section):
            yield from parser.options(section)
