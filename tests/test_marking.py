"""``quiesce.mark`` tells ``quiesce exec`` where an iteration ends, by whatever name the runtime was loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import quiesce
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

LOOP: Final = """
import ctypes, quiesce
runtime = ctypes.CDLL("{library}")
def step(kept):
    made = ctypes.c_void_p()
    runtime.{prefix}Malloc(ctypes.byref(made), 1 << 20)
    kept.append(made)
def test_loop(kept=[]):
    for _ in range({marks}):
        step(kept)
        quiesce.mark("step")
"""


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def findings(folder: Path, flavour: str, *words: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", flavour, "--at-exit", "none"]
    command += ["--report", str(folder / "out"), "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert done.returncode == 1, done.stderr
    return [finding for result in report["results"] for finding in result["findings"]]


def written(folder: Path, library: str, prefix: str) -> Path:
    path = folder / "test_train.py"
    path.write_text(LOOP.format(library=library, prefix=prefix, marks=12), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("flavour", "library", "prefix"),
    [
        ("cuda:12", "libcudart.so.12", "cuda"),
        ("cuda:13", "libcudart.so.13", "cuda"),
        ("hip:5", "libamdhip64.so.5", "hip"),
    ],
)
def test_growth_is_one_finding_with_its_line_and_whole_numbers(
    flavour: str, library: str, prefix: str, tmp_path: Path
) -> None:
    written(tmp_path, library, prefix)
    (finding,) = findings(tmp_path, flavour, sys.executable, "-c", "import test_train; test_train.test_loop()")
    assert finding["rule"] == "retained_does_not_grow"
    assert finding["observed"] == (
        "1,048,576 bytes (1 MiB) in 1 block of device memory more at each of 12 marks 'step' "
        f"from {prefix}Malloc on device 0, allocated at test_train.py:6"
    )
    (site,) = finding["call_sites"]
    shown = [(frame["function"], frame["line"]) for frame in site["frames"] if not frame["folded"]]
    assert shown == [("step", 6), ("test_loop", 10), ("<module>", 1)]


def test_marks_count_in_a_test_of_pytest(tmp_path: Path) -> None:
    written(tmp_path, "libcudart.so.12", "cuda")
    (finding,) = findings(tmp_path, "cuda:12", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert finding["observed"].endswith("allocated at test_train.py:6")
    folded = {frame["folded"] for frame in finding["call_sites"][0]["frames"]}
    assert {"pytest", "pluggy", "ctypes", ""} <= folded


def test_a_mark_outside_is_no_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUIESCE_SIMULATOR", raising=False)
    quiesce.mark("step")


class _Unreadable:
    def __str__(self) -> str:
        raise LookupError


def test_a_name_is_any_object_inside_and_outside_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUIESCE_SIMULATOR", raising=False)
    with pytest.raises(LookupError):
        quiesce.mark(_Unreadable())
    names = ("7, None, '\\ud800', b'x'", "range(50)")
    said = [_said_of_marks(tmp_path, f"for name in ({each}): quiesce.mark(name)") for each in names]
    assert "4 names of marks with fewer than 6 each: their growth was not judged" in said[0]
    assert "50 names of marks with fewer than 6 each" in said[1]


def test_too_few_marks_are_told_and_enough_are_not(tmp_path: Path) -> None:
    few, enough = (_said_of_marks(tmp_path, f"for _ in range({n}): quiesce.mark('epoch')") for n in (5, 6))
    assert "5 marks 'epoch': 6 are needed to judge growth" in few
    assert "needed" not in enough


def _said_of_marks(folder: Path, marks: str) -> str:
    script = folder / "marks.py"
    script.write_text(
        "import ctypes, quiesce\n"
        "runtime, made = ctypes.CDLL('libcudart.so.12'), ctypes.c_void_p()\n"
        "assert runtime.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(8)) == runtime.cudaFree(made) == 0\n" + marks,
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_package_stays_light() -> None:
    text = "import sys; before = set(sys.modules); import quiesce; print(sorted(set(sys.modules) - before))"
    command = [sys.executable, "-c", "from __future__ import annotations\nimport os, collections.abc, typing\n" + text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) == {"quiesce", "quiesce.doors"}
