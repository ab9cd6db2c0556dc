"""A folder of case files, and backends that need no installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.backends.registry import Unusable, Usable
from quiesce.model.backend import Capability, Context, Description, DeviceProfile, Promise
from quiesce.model.errors import ConfigurationError
from quiesce.model.gauges import Gauge, Source

CASE = """\
title:    {title}
upstream: NVIDIA/cccl#4222
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
needs:    pool

a = allocate 64MiB
free a
"""


class FakeBackend:
    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self) -> Description:
        return Description(
            name=self.name,
            version="1.2",
            capabilities=frozenset({Capability.POOL, Capability.MEMORY}),
            promises=frozenset({Promise.FLAT_COST}),
            gauges={Gauge.LIVE: frozenset({Source.CLAIM, Source.LEDGER}), Gauge.BLOCKS: frozenset({Source.CLAIM})},
            alignment_bytes=16,
        )

    def open(self, profile: DeviceProfile) -> Context:
        raise NotImplementedError


def probe(name: str, answer_seconds: float | None = None) -> Usable | Unusable:
    if name == "cupy":
        return Unusable("cupy", "no device", "install a driver")
    if name in ("beta", "alpha") or name.startswith("command:"):
        backend = FakeBackend(name)
        return Usable(name, backend, backend.describe())
    raise ConfigurationError(f"unknown backend '{name}'; write one of alpha, beta, cupy")


@pytest.fixture(autouse=True)
def _backends(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("selection", "doctor"):
        monkeypatch.setattr(f"quiesce.cli.{module}.backend_names", lambda: ("alpha", "beta", "cupy"))
        monkeypatch.setattr(f"quiesce.cli.{module}.probe_backend", probe)
        monkeypatch.setattr(f"quiesce.cli.{module}.probe_unnamed", probe)
    monkeypatch.setattr("quiesce.cli.listing.backend_names", lambda: ("alpha", "beta", "cupy"))


@pytest.fixture(autouse=True)
def _page_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command says on standard error does not depend on the extra that this environment has."""
    for module in ("run", "report"):
        monkeypatch.setattr(f"quiesce.cli.{module}.why_unavailable", lambda: "")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; below it are three cases of two topics."""
    for identifier in ("pool/squeeze", "pool/trim", "tape/diamond"):
        path = tmp_path / "cases" / f"{identifier}.case"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CASE.format(title=f"Behaviour of {identifier}"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
