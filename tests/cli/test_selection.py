from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quiesce.backends.command import CommandBackend
from quiesce.backends.registry import Unusable, Usable
from quiesce.cli.selection import choose_backends, select_cases
from quiesce.model.backend import BackendFault, DeviceProfile
from quiesce.model.errors import BackendUnavailable, ConfigurationError


def test_by_default_every_backend_that_works_is_chosen() -> None:
    choice = choose_backends([])
    assert [usable.name for usable in choice.usable] == ["alpha", "beta"]
    assert choice.skipped == (Unusable("cupy", "no device", "install a driver"),)
    assert choice.named == ()


def test_requested_backends_are_chosen_once_in_their_order() -> None:
    assert [usable.name for usable in choose_backends(["beta", "alpha", "beta"]).usable] == ["beta", "alpha"]


def test_a_requested_backend_must_work() -> None:
    with pytest.raises(BackendUnavailable, match="backend 'cupy' cannot work here: no device; install a driver"):
        choose_backends(["alpha", "cupy"])


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="unknown backend 'gamma'"):
        choose_backends(["gamma"])


def test_a_backend_that_is_declared_wrongly_is_skipped_unless_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.cli.selection.backend_names", lambda: ("alpha", "integer"))
    why = ("unknown backend 'integer'", "write one of alpha, beta, cupy")
    assert choose_backends([]).skipped == (Unusable("integer", *why),)


def test_no_backend_at_all_sends_to_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.cli.selection.backend_names", lambda: ("cupy",))
    with pytest.raises(ConfigurationError, match="quiesce doctor"):
        choose_backends([])


def test_paths_are_relative_to_the_working_directory(corpus: Path) -> None:
    for target in ("cases", str(corpus / "cases"), f"{corpus}/cases/../cases"):
        catalogue = select_cases([target])
        assert [case.path for case in catalogue.cases] == [
            "cases/pool/squeeze.case",
            "cases/pool/trim.case",
            "cases/tape/diamond.case",
        ]


def test_paths_elsewhere_stay_absolute(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "elsewhere").mkdir()
    monkeypatch.chdir(corpus / "elsewhere")
    (case,) = select_cases([str(corpus / "cases" / "pool" / "trim.case")]).cases
    assert case.path == (corpus / "cases" / "pool" / "trim.case").as_posix()


def test_topics_leave_their_cases(corpus: Path) -> None:
    assert [case.identifier for case in select_cases(["cases"], ["tape"]).cases] == ["tape/diamond"]
    assert len(select_cases(["cases"], ["tape", "pool"]).cases) == 3


def test_a_topic_without_a_case_names_the_nearest(corpus: Path) -> None:
    with pytest.raises(ConfigurationError, match="no case has the topic 'pol'; write 'pool'"):
        select_cases(["cases"], ["pol"])


def test_a_target_that_names_nothing_is_an_error(corpus: Path) -> None:
    with pytest.raises(ConfigurationError, match="no/such"):
        select_cases(["no/such"])


def test_a_timeout_is_for_driver_programs() -> None:
    with pytest.raises(ConfigurationError, match="'alpha' runs in quiesce's own process; write --backend served:alpha"):
        choose_backends(["alpha"], 2.0)


def test_a_timeout_bounds_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Path(__file__).parents[1] / "backends" / "drivers" / "hanging.py"
    driver = CommandBackend([sys.executable, str(hanging), "gauges"])
    monkeypatch.setattr("quiesce.cli.selection.probe_backend", lambda name, _: Usable(name, driver, driver.describe()))
    (bounded,) = choose_backends(["command:driver"], 0.5).usable
    with pytest.raises(BackendFault, match=r"did not answer 'gauges' within 0\.5 s"):
        bounded.backend.open(DeviceProfile()).readings()
