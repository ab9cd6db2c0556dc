"""What other projects use of this repository: the GitHub action, the hook for pre-commit, and the forms of issues."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

yaml = pytest.importorskip("yaml", reason="it comes with the extra 'test'")

ROOT: Final = Path(__file__).resolve().parent.parent
FORMS: Final = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))

pytestmark = pytest.mark.skipif(not FORMS, reason="a source distribution without its workflows")

FAILS: Final = """\
title:    A pool gives kept blocks back before it reports out of memory
upstream: NVIDIA/cccl#4222
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
promise:  reclaims-before-oom
device:   capacity=128MiB

a = allocate 64MiB
free a
b = allocate 96MiB
"""


def _load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _action() -> dict[str, Any]:
    action: dict[str, Any] = _load("action.yml")
    return action


def _steps() -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in _action()["runs"]["steps"]}


def _run_step(
    name: str, folder: Path, inputs: Mapping[str, str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does: its text in a file, for the shell that it names, with its inputs filled in."""
    step = _steps()[name]
    given = {key: value["default"] for key, value in _action()["inputs"].items()} | dict(inputs)
    filled = {
        variable: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], value)
        for variable, value in step["env"].items()
    }
    script = folder.parent / "step"
    script.write_text(step["run"], encoding="utf-8")
    shells = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"], "python": ["python"]}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    of_github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(folder), "GITHUB_ACTION_PATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GITHUB", "QUIESCE_"))}
    return subprocess.run(
        [*shells[step["shell"]], str(script)],
        cwd=folder,
        env={**kept, "PATH": path, **of_github, **environment, **filled},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a case, a test and a program."""
    folder = tmp_path / "project"
    (folder / "cases" / "pool").mkdir(parents=True)
    (folder / "cases" / "pool" / "kept_blocks.case").write_text(FAILS, encoding="utf-8")
    leaks = "import pytest\nKEPT = []\n\n@pytest.mark.leak\ndef test_keeps():\n    KEPT.append(bytes(8000))\n"
    (folder / "test_it.py").write_text(leaks, encoding="utf-8")
    return folder


def test_the_action_lets_no_shell_read_its_inputs() -> None:
    assert [name for name, step in _steps().items() if "${{" in step.get("run", "")] == []
    given = {value for step in _steps().values() for value in step.get("env", {}).values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in ("extras", "arguments", "program", "report")}


def test_each_input_of_the_action_is_explained_and_used() -> None:
    inputs = _action()["inputs"]
    assert all(value["description"] and "default" in value for value in inputs.values())
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(inputs)
    page = (ROOT / "docs" / "how-to" / "check_memory_in_ci.md").read_text(encoding="utf-8")
    assert [name for name in inputs if f"| `{name}` |" not in page] == []


def test_the_action_keeps_the_report_whatever_happened() -> None:
    keep = _steps()["keep the report"]
    assert keep["if"].startswith("always()")
    assert keep["uses"].startswith("actions/upload-artifact@")


@pytest.mark.long
def test_the_action_installs_the_quiesce_that_it_belongs_to(project: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="it comes with the extra 'test'")
    target = tmp_path / "installed"
    offline = {"PIP_TARGET": str(target), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = _run_step("install quiesce", project, {"extras": "kernels"}, offline)
    assert done.returncode == 0, done.stderr
    assert (target / "quiesce" / "cli" / "main.py").is_file()


@pytest.mark.long
def test_the_action_runs_cases_and_leak_checks_and_annotates_their_lines(project: Path) -> None:
    done = _run_step("check", project, {"arguments": "--quiesce-backend=reference:pool.no_squeeze 'cases' ."}, {})
    assert done.returncode == 1
    assert "::error file=cases/pool/kept_blocks.case,line=10,title=missing retry in" in done.stdout
    assert "::error file=test_it.py,line=6,title=test_it.py%3A%3Atest_keeps::leaks" in done.stdout
    assert (project / "quiesce-report" / "report.json").is_file()


def test_an_argument_of_the_action_is_a_word_and_no_command(project: Path) -> None:
    done = _run_step("check", project, {"arguments": "-k '$(touch made)' ; touch made"}, {})
    assert done.returncode not in (0, 1)
    assert not (project / "made").exists()


def test_the_action_runs_a_program_on_the_simulated_gpu(project: Path) -> None:
    from quiesce.model.errors import BackendUnavailable
    from quiesce.simulator.runtime.build import build_library

    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    lines = ["import ctypes", "cuda = ctypes.CDLL('libcudart.so.12')", "p = ctypes.c_void_p()"]
    lines += ["cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(64))", "cuda.cudaFree(p)", "cuda.cudaFree(p)"]
    (project / "twice.py").write_text("\n".join(lines), encoding="utf-8")
    done = _run_step("check", project, {"program": "python 'twice.py'", "report": "out"}, {})
    assert done.returncode == 1, done.stderr
    assert "::error file=twice.py,line=6,title=double free in python twice.py::" in done.stdout
    assert (project / "out" / "report.json").is_file()


def test_the_hook_of_pre_commit_refuses_a_case_with_an_error(project: Path) -> None:
    (hook,) = _load(".pre-commit-hooks.yaml")
    assert (hook["id"], hook["language"]) == ("quiesce-lint", "python")
    files = sorted(path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file())
    chosen = [name for name in files if re.search(hook["files"], name)]
    assert chosen == ["cases/pool/kept_blocks.case"]
    program, *arguments = shlex.split(hook["entry"])
    assert program == "quiesce"
    run = [str(Path(sys.executable).parent / program), *arguments, *chosen]
    assert subprocess.run(run, cwd=project, check=False, capture_output=True).returncode == 0
    (project / chosen[0]).write_text(FAILS.replace("free a", "free z"), encoding="utf-8")
    done = subprocess.run(run, cwd=project, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{chosen[0]}:9: " in done.stdout


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.stem)
def test_a_form_asks_for_what_is_needed_to_help(path: Path) -> None:
    form = _load(path.relative_to(ROOT).as_posix())
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 2
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)
