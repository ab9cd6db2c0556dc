"""The script that runs NVIDIA's samples: what it leaves out, how it sorts what came of one, and what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from tests.suites.cuda_samples.results import keep, read_results, table
from tests.suites.cuda_samples.running import Came, Outcome, classified
from tests.suites.cuda_samples.scope import samples_of

FOUND: Final = {"rule": "handles_are_destroyed_at_quiescence", "observed": "1 stream"}


def _result(reason: str = "", *findings: dict[str, str]) -> dict[str, Any]:
    return {"reason": reason, "findings": findings}


def _sample(checkout: Path, name: str, build: str, source: str = "") -> None:
    folder = checkout / "Samples" / name
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(build)
    (folder / "main.cu").write_text(source)


def test_graphics_and_libraries_are_out_of_scope_by_name(tmp_path: Path) -> None:
    program = "project({0} LANGUAGES C CXX CUDA)\n"
    _sample(tmp_path, "0_Introduction/plain", program + "target_link_libraries(plain CUDA::cuda_driver CUDA::nvrtc)")
    _sample(tmp_path, "0_Introduction/drawn", program + "find_package(OpenGL)\nfind_package(GLUT)")
    _sample(tmp_path, "4_CUDA_Libraries/linked", program + "target_link_libraries(linked CUDA::cublas CUDA::nppc)")
    _sample(tmp_path, "2_Concepts/included", program, "#include <curand_kernel.h>")
    _sample(tmp_path, "7_libNVVM/compiled", "add_executable(compiled main.c)")
    _sample(tmp_path, "8_Platform_Specific/Tegra", "add_subdirectory(board)")
    _sample(tmp_path, "8_Platform_Specific/Tegra/board", program)
    assert {each.name: each.needs for each in samples_of(tmp_path)} == {
        "0_Introduction/plain": (),
        "0_Introduction/drawn": ("OpenGL",),
        "2_Concepts/included": ("cuRAND",),
        "4_CUDA_Libraries/linked": ("NPP", "cuBLAS"),
        "7_libNVVM/compiled": ("libNVVM's own build",),
        "8_Platform_Specific/Tegra/board": ("a Tegra board",),
    }


@pytest.mark.parametrize(
    ("code", "result", "lines", "ended_after", "outcome"),
    [
        (0, _result(), (), 0, Outcome.PASSES),
        (1, _result("", FOUND), (), 0, Outcome.FINDINGS),
        (1, _result("", FOUND), (), 90, Outcome.FINDINGS),
        (2, _result("1 kernel could not be executed, so that results are missing: 'k'"), (), 0, Outcome.REFUSED),
        (2, _result("the program ended with status 1"), ("quiesce: cudaX is not simulated",), 0, Outcome.REFUSED),
        (2, _result("the program was ended by SIGTERM"), (), 90, Outcome.UNENDED),
        (2, _result("the program ended with status 2"), ("waiving",), 0, Outcome.WAIVED),
        (2, _result("the program ended with status 1"), ("Test failed",), 0, Outcome.FAILS),
        (2, _result("1 kernel did not run to its end"), (), 0, Outcome.UNJUDGED),
        (3, _result(), (), 0, Outcome.FAILS),
        (None, _result(), (), 90, Outcome.UNENDED),
    ],
)
def test_what_came_of_a_run(
    code: int | None, result: dict[str, Any], lines: tuple[str, ...], ended_after: int, outcome: Outcome
) -> None:
    assert classified(code, [result], lines, ended_after)[0] is outcome


def test_a_sample_that_fails_is_shown_with_its_own_last_lines() -> None:
    lines = ["quiesce: 3 calls recorded on cuda:13", "Comparing", "Test failed", "./a: inconclusive on 'cuda:13': x"]
    assert classified(2, [_result("the program ended with status 1")], lines)[1] == [
        "the program ended with status 1",
        "Comparing",
        "Test failed",
    ]


def test_a_sample_that_did_not_end_is_shown_with_the_kernel_it_was_in() -> None:
    lines = [f"quiesce: kernel '{name}' was stopped by a signal, in block (1, 0, 0)" for name in ("a", "b")]
    assert classified(2, [_result("the program ended with SIGTERM")], lines, 90)[1] == [
        "did not end in 90 s",
        "kernel 'b' was stopped by a signal, in block (1, 0, 0)",
    ]


def test_results_are_kept_line_by_line_and_the_last_of_a_sample_counts(tmp_path: Path) -> None:
    kept = tmp_path / "results.jsonl"
    assert read_results(kept) == {}
    for came in (Came("a/x", Outcome.FAILS, ("no",), 1.5), Came("a/y", Outcome.PASSES), Came("a/x", Outcome.PASSES)):
        keep(kept, came)
    with kept.open("a") as opened:
        opened.write('{"sample": "a/z", "outc')
    assert read_results(kept) == {"a/x": Came("a/x", Outcome.PASSES), "a/y": Came("a/y", Outcome.PASSES)}


def test_the_table_has_a_row_for_each_result_and_counts_them() -> None:
    results = {"a/x": Came("a/x", Outcome.FINDINGS, ("rule: one|two",)), "a/y": Came("a/y", Outcome.PASSES)}
    assert table(["a/x", "a/y", "a/z"], results).splitlines()[2:] == [
        "| a/x | findings | rule: one\\|two |",
        "| a/y | passes |  |",
        "",
        "2 samples: 1 passes, 1 findings",
    ]
