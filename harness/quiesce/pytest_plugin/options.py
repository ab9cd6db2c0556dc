"""Options and ini keys: what the user asked for, checked, as one frozen value. An option wins over its ini key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

SEED_MAX: Final = (1 << 64) - 1
"""The largest seed: what fits the 64 bits of every random generator that a driver program may use."""

_SEED = re.compile(r"[0-9]{1,20}\Z")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for.

    ``backends`` None means every backend that works here; ``backends_from`` and ``report_from`` name where they were
    asked for.
    ``asked`` says whether anything of quiesce was asked for on the command line or in the ini file, and
    ``shares_devices`` that every worker of pytest-xdist is to see all of the GPUs.
    """

    backends: tuple[str, ...] | None
    backends_from: str
    seed: int
    report: Path | None
    report_from: str
    corpus: bool
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
        asked=any(value is not None for value in (backends, seed[0], report)) or bool(corpus),
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


def _report(config: pytest.Config, text: str | None, from_option: bool) -> Path | None:
    if text is None:
        return None
    if not text:
        raise pytest.UsageError(f"{_source('report', from_option)} names no folder; write one, such as reports/out")
    base = config.invocation_params.dir if from_option else (config.inipath or config.rootpath / "_").parent
    return base / text
