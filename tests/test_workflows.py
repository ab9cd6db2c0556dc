"""The workflows: no stranger's code on a runner of our own, no rights beyond reading, actions pinned by commit."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any, Final

import pytest

yaml = pytest.importorskip("yaml", reason="it comes with the extra 'test'")

ROOT: Final = Path(__file__).resolve().parent.parent
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
REVIEWED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""What only those who may write to the repository can cause, and what runs the code of its own branches."""
HOSTED: Final = re.compile(r"(ubuntu|macos|windows)-latest\Z")

Workflow = dict[Any, Any]  # any key: YAML 1.1 reads the key 'on' as true

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="a source distribution without its workflows")


def _load(path: Path) -> Workflow:
    loaded: Workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def _events(workflow: Workflow) -> dict[str, Any]:
    events: dict[str, Any] = workflow[True]
    return events


def _runners(job: Workflow) -> list[str]:
    wanted = job["runs-on"]
    if wanted == "${{ matrix.system }}":
        wanted = job["strategy"]["matrix"]["system"]
    return [wanted] if isinstance(wanted, str) else list(wanted)


def _own_runners(workflow: Workflow) -> dict[str, Workflow]:
    jobs: dict[str, Workflow] = workflow["jobs"]
    return {name: job for name, job in jobs.items() if not all(HOSTED.match(runner) for runner in _runners(job))}


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request: pytest.FixtureRequest) -> Workflow:
    """Each workflow, as YAML reads it."""
    return _load(request.param)


def test_a_workflow_may_only_read(workflow: Workflow) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "permissions" in job and "environment" not in job] == []


def test_what_publishes_runs_nothing_but_the_upload_of_files_that_were_checked() -> None:
    release = _load(ROOT / ".github" / "workflows" / "release.yml")
    assert _events(release) == {"push": {"tags": ["v*"]}}
    jobs = dict(release["jobs"])
    publish = jobs.pop("publish")
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {"id-token": "write"}
    assert set(publish["needs"]) == set(jobs) == {"build", "check"}
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "secrets" not in str(release)


def test_only_the_site_of_main_is_published_and_by_a_job_that_runs_nothing_else() -> None:
    jobs = _load(ROOT / ".github" / "workflows" / "docs.yml")["jobs"]
    publish, build = jobs["publish"], jobs["build"]
    assert publish["environment"] == "github-pages"
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == ["actions/deploy-pages"]
    of_main = "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
    assert publish["if"] == build["steps"][-1]["if"] == of_main
    assert "tox -e docs" in [step.get("run") for step in build["steps"]]
    assert "permissions" not in build


def test_only_a_release_and_the_site_may_prove_their_identity() -> None:
    having = [path.name for path in WORKFLOWS if "id-token" in path.read_text(encoding="utf-8")]
    assert having == ["docs.yml", "release.yml"]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
def test_actions_are_pinned_by_their_commit_and_say_their_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    pinned = re.compile(r"[a-z]+/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+")
    assert [action for action in used if not pinned.fullmatch(action)] == []


def test_one_action_has_one_commit() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*WORKFLOWS, ROOT / "action.yml")]
    used = {action for text in texts for action in re.findall(r"uses: (.*)", text)}
    names = [action.partition("@")[0] for action in used]
    assert sorted(names) == sorted(set(names))


def test_no_checkout_leaves_its_token_to_the_steps_after_it(workflow: Workflow) -> None:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert [step for step in checkouts if step.get("with", {}).get("persist-credentials") is not False] == []


def test_runs_of_one_branch_do_not_pile_up(workflow: Workflow) -> None:
    assert "github.ref" in workflow["concurrency"]["group"]


def test_a_job_that_hangs_is_ended(workflow: Workflow) -> None:
    assert [name for name, job in workflow["jobs"].items() if not _ends_in_time(job)] == []


def _ends_in_time(job: Workflow) -> bool:
    runs_weekly = "schedule" in job.get("if", "")  # not for every push; a hosted runner ends a job after 360 minutes
    return 0 < int(job.get("timeout-minutes", 0)) <= (350 if runs_weekly else 60)


def test_runners_of_our_own_never_see_a_pull_request(workflow: Workflow) -> None:
    own = _own_runners(workflow)
    if not own:
        return
    events = _events(workflow)
    assert set(events) <= REVIEWED_EVENTS
    assert events["push"] == {"branches": ["main"]}
    for job in own.values():
        condition = " ".join(job["if"].split())
        assert "||" not in condition.replace("vars.GPU_RUNNERS || '[]'", "")
        guards = condition.split(" && ")
        assert "!github.event.repository.fork" in guards
        assert "github.ref == 'refs/heads/main'" in guards
        named = [re.findall(r'"(\w+)"', guard) for guard in guards if guard.endswith("github.event_name)")]
        assert named
        assert set(named[0]) <= REVIEWED_EVENTS
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert [step.get("with") for step in checkouts] == [{"persist-credentials": False}]


def test_there_are_runners_of_our_own_to_guard() -> None:
    found = {name: _runners(job)[0] for path in WORKFLOWS for name, job in _own_runners(_load(path)).items()}
    assert found == {"cuda": "self-hosted", "rocm": "self-hosted"}


def test_untrusted_text_reaches_no_shell(workflow: Workflow) -> None:
    scripts = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    expressions = [found for script in scripts for found in re.findall(r"\$\{\{(.*?)\}\}", script)]
    assert {expression.strip() for expression in expressions} <= {"matrix.environment", "matrix.shard"}


def test_every_step_gets_its_environment_from_tox() -> None:
    ci, gpu = (_load(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"] for name in ("ci", "gpu"))
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    for job in (ci["checks"], ci["simulated"], ci["long"], gpu["cuda"], gpu["rocm"]):
        for environment in job["strategy"]["matrix"]["environment"]:
            assert f"[testenv:{environment}]" in tox


def test_the_shards_of_a_suite_are_all_of_it() -> None:
    matrix = _load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["suites"]["strategy"]["matrix"]
    count = len(matrix["shard"])
    assert matrix["shard"] == [f"{number}/{count}" for number in range(1, count + 1)]
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    assert all(f"[testenv:{environment}]" in tox for environment in matrix["environment"])


def test_a_gpu_that_is_missing_ends_its_environment() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    names = [name for name in tox.sections() if name.startswith("testenv:gpu-")]
    assert len(names) == 3
    for name in names:
        base = tox[name].get("base", name.removeprefix("testenv:"))
        assert tox[f"testenv:{base}"]["commands"].split("\n")[1] == "quiesce doctor cupy"
        assert name.removeprefix("testenv:") not in tox["tox"]["env_list"]
