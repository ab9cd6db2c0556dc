from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.backends.registry import Unusable, Usable
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.backend import Context, Description, DeviceProfile
from quiesce.model.errors import BackendUnavailable

CASE = "cases/pool/trim.case"

GOLDEN = """\
alpha: works
  version:      1.2
  alignment:    16 bytes
  capabilities: memory, pool
  promises:     flat-cost
  gauges:       blocks (claim), live (claim and ledger)
"""
EXEC = "quiesce exec: works, also without a GPU\n  CUDA kernels: compute on the CPU\n"
CUPY = """\
cupy: cannot work here
  because:      no device
  remedy:       install a driver
"""


@pytest.fixture(autouse=True)
def _exec_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # no run that was killed left anything there
    for asked in ("require_platform", "find_compiler"):
        monkeypatch.setattr(f"quiesce.cli.doctor.{asked}", lambda: None)
    monkeypatch.setattr("quiesce.cli.doctor.kernels_can_run", lambda: True)


def test_the_extra_that_lets_kernels_compute_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quiesce.cli.doctor.kernels_can_run", lambda: False)
    assert main(["doctor"]) == ExitCode.NOTHING_FOUND
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "  CUDA kernels: do not compute; to let them, run pip install 'quiesce[kernels]'"


def test_every_backend_is_examined_and_a_missing_one_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out == f"{GOLDEN}\n{GOLDEN.replace('alpha', 'beta')}\n{CUPY}\n{EXEC}"


@pytest.mark.parametrize(
    ("asked", "reason", "remedy"),
    [
        ("require_platform", "this is a lighthouse", "run it on Linux"),
        ("find_compiler", "no C compiler was found", "install gcc"),
    ],
)
def test_what_exec_lacks_here_is_told(
    asked: str, reason: str, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lack() -> None:
        raise BackendUnavailable("simulated", reason, remedy)

    monkeypatch.setattr(f"quiesce.cli.doctor.{asked}", lack)
    assert main(["doctor"]) == ExitCode.NOTHING_FOUND
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert lines == ["quiesce exec: cannot work here", f"  because:      {reason}", f"  remedy:       {remedy}"]


@pytest.mark.parametrize(("name", "code"), [("alpha", ExitCode.NOTHING_FOUND), ("cupy", ExitCode.COULD_NOT_RUN)])
def test_a_named_backend_must_work(name: str, code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", name]) == code
    assert capsys.readouterr().out == (GOLDEN if name == "alpha" else CUPY)


def test_a_reason_that_backends_share_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reasons = {"cupy": "no device", "cupy-async": "no device", "cupy-rocm": "not installed"}
    monkeypatch.setattr("quiesce.cli.doctor.backend_names", lambda: reasons)
    monkeypatch.setattr(
        "quiesce.cli.doctor.probe_backend", lambda name: Unusable(name, reasons[name], "install a driver")
    )
    assert main(["doctor"]) == ExitCode.NOTHING_FOUND
    rocm = CUPY.replace("cupy:", "cupy-rocm:").replace("no device", "not installed")
    assert capsys.readouterr().out == f"{CUPY.replace('cupy:', 'cupy, cupy-async:')}\n{rocm}\n{EXEC}"


@pytest.mark.parametrize(
    "words", [["doctor", "liar"], ["explore", "--backend", "liar"], ["shrink", "--backend", "liar", CASE]]
)
def test_a_wrong_description_is_the_backends_error(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], corpus: Path
) -> None:
    class Liar:
        def describe(self) -> Description:
            return "liar 1.0"  # type: ignore[return-value]

        def open(self, profile: DeviceProfile) -> Context:
            raise NotImplementedError

    backend = Liar()
    for probe in ("selection.probe_backend", "selection.probe_unnamed", "doctor.probe_backend"):
        monkeypatch.setattr(f"quiesce.cli.{probe}", lambda name, _=None: Usable(name, backend, backend.describe()))
    assert main(words) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert "describe() returned str, not a Description" in captured.out + captured.err
    assert "Traceback" not in captured.err
    assert main(["run", CASE, "--report", "out"]) == ExitCode.FINDINGS
    assert "describe() returned str, not a Description" in capsys.readouterr().out


def test_an_unknown_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "gamma"]) == ExitCode.COULD_NOT_RUN
    assert capsys.readouterr().err == "quiesce: unknown backend 'gamma'; write one of alpha, beta, cupy\n"


def test_a_wrong_declaration_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quiesce.cli.doctor.backend_names", lambda: ("integer", "alpha"))
    assert main(["doctor"]) == ExitCode.NOTHING_FOUND
    text = capsys.readouterr().out
    assert "integer: cannot work here\n  because:      unknown backend 'integer'\n  remedy:       write one" in text
    assert GOLDEN in text


def test_no_backend_at_all_could_not_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("quiesce.cli.doctor.backend_names", tuple)
    assert main(["doctor"]) == ExitCode.COULD_NOT_RUN
    assert "install quiesce" in capsys.readouterr().err
