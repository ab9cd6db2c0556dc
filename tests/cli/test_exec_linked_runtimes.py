"""``quiesce exec`` judges a program with a CUDA runtime linked in, and says which version it took and what it left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.simulator.linked_runtimes import link, make_archive

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

CORRECT = "int main(void) { void *made; cudaMalloc(&made, 8); cudaFree(made); return 0; }"
WRONG = CORRECT.replace("return", "cudaMemset(made, 0, 8); return")
IN_A_LIBRARY = CORRECT.replace("main(void)", "use(void)")


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def run(folder: Path, *words: object) -> tuple[int, dict[str, str]]:
    """Run it, and return the exit code and the one result."""
    code = main(["exec", "--report", str(folder / "out"), *map(str, words)])
    (result,) = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["results"]
    return code, result


@pytest.mark.parametrize(("version", "backend"), [(11080, "cuda:11"), (12090, "cuda:12"), (13020, "cuda:13")])
def test_the_linked_version_is_the_flavour(tmp_path: Path, version: int, backend: str) -> None:
    program = link(tmp_path, "client", CORRECT, make_archive(tmp_path, version=version))
    code, result = run(tmp_path, "--", program)
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", backend)
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["results"][0]["program"]["conditions"]["flavour"] == backend


def test_its_mistakes_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = link(tmp_path, "client", WRONG, make_archive(tmp_path), "-g", "-fno-omit-frame-pointer")
    code, result = run(tmp_path, "--", program)
    assert (code, result["verdict"]) == (ExitCode.FINDINGS, "failed")
    shown = capsys.readouterr().out
    assert "cudaMemset uses 8 bytes" in shown
    assert "in main" in shown
    assert f"reproduce: quiesce exec -- {program}\n" in shown


def test_another_version_than_was_asked_for_is_inconclusive(tmp_path: Path) -> None:
    program = link(tmp_path, "client", CORRECT, make_archive(tmp_path, version=13020))
    code, result = run(tmp_path, "--flavour", "cuda:12", "--", program)
    assert (code, result["backend"]) == (ExitCode.COULD_NOT_RUN, "cuda:12")
    told = "judged as cuda:12, although CUDA 13.2 is linked into client. Run it with --flavour cuda:13"
    assert told in result["reason"]
    code, result = run(tmp_path, "--flavour", "cuda:13", "--", program)
    assert code == ExitCode.NOTHING_FOUND


def test_several_versions_in_one_process_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (make_archive(tmp_path, version=version) for version in (12090, 13020))
    library = link(tmp_path, "libnew.so", IN_A_LIBRARY, new, "-shared", "-fPIC")
    body = CORRECT.replace("return", "use(); return")
    code, result = run(tmp_path, "--", link(tmp_path, "client", body, old, "-Wl,--no-as-needed", str(library)))
    assert (code, result["backend"]) == (ExitCode.NOTHING_FOUND, "cuda:12")
    assert "judged as cuda:12, although CUDA 13.2 is linked into libnew.so" in capsys.readouterr().err


def test_a_runtime_that_is_left_alone_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = link(tmp_path, "client", CORRECT, make_archive(tmp_path))
    code, result = run(tmp_path, "--static-runtime", "refuse", "--", program)
    assert (code, result["verdict"]) == (ExitCode.COULD_NOT_RUN, "inconclusive")
    assert "linked statically into client, and was not redirected" in result["reason"]
    assert "(as --static-runtime says)" in result["reason"]
    assert f"reproduce: quiesce exec --static-runtime refuse -- {program}\n" in capsys.readouterr().out
    body = "int main(void) { __cudaPopCallConfiguration(0, 0, 0, 0); return 0; }"
    part = link(tmp_path, "part", body, make_archive(tmp_path, least=280))
    code, result = run(tmp_path, "--", part)
    assert code == ExitCode.COULD_NOT_RUN
    assert "(only a part of its functions was found)" in result["reason"]
