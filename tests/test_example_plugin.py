"""The example plugin, installed as a user installs it and driven through the public entry points alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.test_doors import imports

import quiesce

ROOT: Final = Path(__file__).resolve().parent.parent
PLUGIN: Final = ROOT / "fixtures" / "example_plugin"
FITS: Final = "request_fits_but_out_of_memory"
REUSED: Final = "memory_is_reused_only_after_its_last_use"
GOOD: Final = "example-pool"
FAULTY: Final = {"example-pool-hoarding": FITS, "example-pool-hasty": REUSED}
GENERATED: Final = {"example-pool-hoarding": {FITS}, "example-pool-hasty": {REUSED, "memory_in_flight_is_not_released"}}
"""Memory that is not waited for is handed on too early, or goes back too early."""
ENOUGH: Final = ("--operations", "20000")
FEW: Final = ("--operations", "3000")
QUIESCE: Final = ("-m", "quiesce.cli.main")


def run(plugin: Path, folder: Path, *words: str, code: int = 0) -> str:
    path = os.pathsep.join(filter(None, [str(plugin), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_doctor_lists_the_three(example_plugin: Path, tmp_path: Path) -> None:
    text = run(example_plugin, tmp_path, *QUIESCE, "doctor")
    for name in (GOOD, *FAULTY):
        assert f"{name}: works\n" in text


@pytest.mark.parametrize("name", FAULTY)
def test_the_corpus_finds_the_bug(name: str, example_plugin: Path, tmp_path: Path) -> None:
    text = run(example_plugin, tmp_path, *QUIESCE, "run", "--backend", name, code=1)
    assert set(re.findall(r"rule: +(\w+)", text)) == {FAULTY[name]}


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("seed", ["0", "1", "3"])
def test_generated_sequences_alone_find_the_bug_and_what_is_saved_replays(
    name: str, seed: str, example_plugin: Path, tmp_path: Path
) -> None:
    words = ("explore", "--backend", name, "--seed", seed, "--save", "found", *FEW)
    text = run(example_plugin, tmp_path, *QUIESCE, *words, code=1)
    broken = set(re.findall(r"^(\w+) is broken in sequence", text, re.MULTILINE))
    assert broken
    assert broken <= GENERATED[name]
    found = set()
    for saved in (tmp_path / "found").glob("*.case"):
        case = saved.relative_to(tmp_path).as_posix()
        again = run(example_plugin, tmp_path, *QUIESCE, "run", case, "--backend", name, code=1)
        found.update(re.findall(r"rule: +(\w+)", again))
        run(example_plugin, tmp_path, *QUIESCE, "run", case, "--backend", GOOD)
    assert found == broken


@pytest.mark.long
def test_the_correct_one_is_never_accused(example_plugin: Path, tmp_path: Path) -> None:
    run(example_plugin, tmp_path, *QUIESCE, "run", "--backend", GOOD)
    for words in (["--seed", "5"], ["--seed", "6", "--hostile"]):
        text = run(example_plugin, tmp_path, *QUIESCE, "explore", "--backend", GOOD, *words, *ENOUGH)
        assert text.endswith(f" break no rule on {GOOD}\n")


@pytest.mark.long
def test_conformance_says_it_all(example_plugin: Path, tmp_path: Path) -> None:
    few = ("conformance", "--operations", "4000")
    text = run(example_plugin, tmp_path, *QUIESCE, *few, "--backend", GOOD)
    assert re.search(
        r"^example-pool conforms: [0-9]+ cases hold, and [0-9,]+ generated operations break no rule$", text, re.M
    )
    for name, rule in FAULTY.items():
        text = run(example_plugin, tmp_path, *QUIESCE, *few, "--backend", name, code=1)
        assert f"{name} does not conform: " in text
        assert rule in (found := set(re.findall(r"rule: +(\w+)", text)))
        assert found <= GENERATED[name]


@pytest.mark.long
def test_the_pytest_plugin_runs_the_corpus_on_them(example_plugin: Path, tmp_path: Path) -> None:
    quiet = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--quiesce-corpus")
    text = run(example_plugin, tmp_path, *quiet, f"--quiesce-backend={GOOD}")
    assert re.search(rf"^{GOOD} +(\d+) +\1 ", text, re.MULTILINE)
    for name, rule in FAULTY.items():
        text = run(example_plugin, tmp_path, *quiet, f"--quiesce-backend={name}", code=1)
        assert set(re.findall(r"rule: +(\w+)", text)) == {rule}


@pytest.mark.long
def test_its_own_tests_pass_in_its_own_project(example_plugin: Path) -> None:
    text = run(example_plugin, PLUGIN, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert " passed" in text
    assert "failed," not in text


@pytest.mark.long
def test_its_script_needs_no_pytest(example_plugin: Path) -> None:
    assert "\nexample-pool conforms: " in run(example_plugin, PLUGIN, "tests/examine.py")


def test_it_imports_the_contract_and_the_values_alone() -> None:
    for path in (PLUGIN / "src").rglob("*.py"):
        for module, name in imports(path.read_text(encoding="utf-8")):
            assert module == "quiesce", path
            value = getattr(quiesce, name)
            homes = [each for key, each in sys.modules.items() if key.startswith("quiesce.model")]
            assert any(getattr(each, name, None) is value for each in homes), f"{path}: {name}"
