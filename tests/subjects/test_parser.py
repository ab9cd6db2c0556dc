"""Manifests: what they say becomes a value, and what is wrong in one is an error that names file and key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.judge.conditions import AtExit
from quiesce.subjects.manifest import Expectation, PackageKind, SubjectKind, Variant
from quiesce.subjects.parser import read_manifest

Write = Callable[..., Path]

WHOLE = """
title     = "A pool"
upstream  = "owner/project#1, owner/project#2"
kind      = "model"
cases     = ["pool/*"]
simulated = "cuda:13"
needs     = { programs = { "c++" = "apt-get install g++" }, python = ">=3.11" }
packages  = { kind = "files", requirements = ["my-pool=={version}"] }
build     = { steps = [["c++", "{source}/x.cpp"]], shared = ["../y"], environment = { A = "{build}" } }
run       = { command = ["{build}/driver"], watchdog_seconds = 2.5, schedule = "lazy" }
generated = { operations = 7, seed = 3, trials = 9 }

[variants.other]
arguments  = ["--other"]
cases      = ["sizes/*"]
operations = 0

[[programs]]
name      = "sorts"
command   = ["{build}/sorts"]
simulated = "hip:7"
capacity  = "2GiB"
at_exit   = "all"

[[expect]]
case     = ["pool/a", "pool/b"]
finds    = "rule"
upstream = "owner/project#1"
versions = "1.0"
variant  = ["base", "other"]

[[versions]]
version      = "1.0"
label        = "One"
requirements = ["my-old-pool=={version}"]
default      = true
expect       = [{ case = "sweep", finds = "rule", upstream = "owner/project#2" }]

[[versions]]
version = "2.0"
"""
LEAST = 'title = "A"\nupstream = "b"\ncases = ["pool/*"]\nrun = { command = ["x"] }\nversions = [{ version = "1" }]\n'


def test_everything_that_can_be_said_is_read(write_subject: Write) -> None:
    folder = write_subject(WHOLE)
    subject = read_manifest(folder / "subject.toml")
    assert subject.name == "host/example"
    assert subject.folder == folder
    assert subject.upstream == ("owner/project#1", "owner/project#2")
    assert subject.kind is SubjectKind.MODEL
    assert str(subject.simulated) == "cuda:13"
    assert subject.needs.programs == {"c++": "apt-get install g++"}
    assert subject.packages is not None
    assert subject.packages.kind is PackageKind.FILES
    assert subject.build.steps == (("c++", "{source}/x.cpp"),)
    assert subject.run is not None
    assert (subject.run.watchdog_seconds, subject.run.schedule) == (2.5, "lazy")
    assert (subject.operations, subject.seed, subject.trials_max) == (7, 3, 9)
    assert subject.variants == (Variant("base"), Variant("other", ("--other",), ("sizes/*",), 0))
    program = subject.programs[0]
    assert (program.name, program.capacity_bytes, program.at_exit) == ("sorts", 2 << 30, AtExit.ALL)
    first, second = subject.releases
    assert first.requirements == ("my-old-pool=={version}",)
    assert first.expectations == (
        Expectation("pool/a", "rule", "owner/project#1", ("base", "other")),
        Expectation("pool/b", "rule", "owner/project#1", ("base", "other")),
        Expectation("sweep", "rule", "owner/project#2"),
    )
    assert (second.expectations, second.is_default) == ((), False)


def test_a_release_that_is_not_listed_expects_nothing_known(write_subject: Write) -> None:
    subject = read_manifest(write_subject(WHOLE) / "subject.toml")
    assert subject.release("9.9").expectations is None
    assert subject.release("1.0").label == "One"


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("title = ", "not a TOML file"),
        ("colour = 1", "colour: unknown key"),
        ("[run.x]", "run"),
        ("kind = 'fake'", 'kind: \'fake\' means nothing; write "real" or "model"'),
        ("simulated = 'cuda:9'", "simulated: flavour 'cuda:9' is not simulated; write one of"),
        ("generated = { operations = -1 }", "generated.operations: -1 is no whole number from 0"),
        ("needs = { programs = ['x'] }", "needs.programs: ['x'] is no table of texts"),
        ("needs = { python = 'three' }", "needs.python: 'three' names no versions"),
        ("packages = { kind = 'files' }", "packages.requirements: missing"),
        ("packages = { kind = 'files', requirements = ['x'], dependencies = false }", "packages.dependencies: files"),
        ("build = { steps = ['make'] }", "build.steps: ['make'] is no list of commands"),
        ("variants = { base = { arguments = ['x'] } }", "variants.base: that is the driver without"),
        ("variants = { other = { argument = ['x'] } }", "variants.other.arguments: missing"),
        ("programs = [{ name = 'x', command = ['y'], capacity = 'much' }]", "programs[0].capacity: "),
        ("expect = [{ case = 'x', finds = 'y' }]", "expect[0].upstream: missing"),
        ("expect = [{ case = 'x', finds = 'y', upstream = 'z', variant = 'v' }]", "there is no variant 'v'"),
        ("expect = [{ case = 'x', finds = 'y', upstream = 'z', versions = '2' }]", "there is no version '2'"),
    ],
)
def test_what_is_wrong_is_named(more: str, complaint: str, write_subject: Write) -> None:
    path = write_subject(f"{LEAST}{more}\n") / "subject.toml"
    with pytest.raises(ConfigurationError) as raised:
        read_manifest(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "A"\n', "", 'title: missing; write title = "…"'),
        ('run = { command = ["x"] }\n', "", "nothing is run; write [run]"),
        ('cases = ["pool/*"]\n', "", "cases: missing; write"),
        ('versions = [{ version = "1" }]', "", "versions: no release is named"),
        ('{ version = "1" }', '{ version = "1" }, { version = "1" }', "versions[1].version: '1' is listed twice"),
        ('command = ["x"]', 'command = ["x"], schedule = "slow"', "run.schedule: 'slow' is no schedule"),
        ('command = ["x"]', 'command = ["x"], watchdog_seconds = 0', "run.watchdog_seconds: 0 is no number of seconds"),
        ('command = ["x"]', 'comand = ["x"]', "run.command: missing"),
    ],
)
def test_what_is_missing_or_in_the_wrong_place_is_named(
    old: str, new: str, complaint: str, write_subject: Write
) -> None:
    assert old in LEAST
    path = write_subject(LEAST.replace(old, new)) / "subject.toml"
    with pytest.raises(ConfigurationError) as raised:
        read_manifest(path)
    assert complaint in str(raised.value)


def test_a_mistyped_key_is_answered_with_the_one_that_was_meant(write_subject: Write) -> None:
    path = write_subject(f"{LEAST}upstreams = 'x'\n") / "subject.toml"
    with pytest.raises(ConfigurationError, match="upstreams: unknown key; write 'upstream'"):
        read_manifest(path)
