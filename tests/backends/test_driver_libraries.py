"""The helpers for driver programs in C, C++ and Rust: each reads every request, and its example pool conforms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, get_args

import pytest

from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.conformance import Conformance, run_conformance
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.backends.command import CommandBackend
from quiesce.model import operations as ops
from quiesce.model.backend import BackendFault, Capability, DeviceProfile
from quiesce.model.observations import DeviceSynchronized
from quiesce.model.outcomes import Allocated, OutOfMemory, Unsupported
from quiesce.model.requests import format_request, parse_request
from quiesce.model.rules import IN_PROTOCOL, SURVIVES

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "fixtures" / "command"
DRIVERS: Final = Path(__file__).parent / "drivers"
WARNINGS: Final = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0")
SECONDS_MAX: Final = 300

pytestmark = pytest.mark.long


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here to build a driver program with")
    return found


def build_c(source: Path, program: Path) -> None:
    command = [tool("cc"), "-std=c99", *WARNINGS, f"-I{FIXTURES / 'c'}", "-o", str(program), str(source)]
    subprocess.run(command, check=True)


def build_cpp(source: Path, program: Path) -> None:
    command = [tool("c++"), "-std=c++17", *WARNINGS, f"-I{FIXTURES / 'cpp'}", "-o", str(program), str(source)]
    subprocess.run(command, check=True)


def build_rust(source: Path, program: Path) -> None:
    """Build the crate with the source as its only example; nothing is fetched."""
    cargo, crate = tool("cargo"), program.with_suffix(".crate")
    shutil.copytree(FIXTURES / "rust" / "src", crate / "src")
    shutil.copy(FIXTURES / "rust" / "Cargo.toml", crate)
    (crate / "examples").mkdir()
    shutil.copy(source, crate / "examples" / "driver.rs")
    command = [cargo, "build", "--offline", "--quiet", "--example", "driver", "--target-dir", str(crate / "target")]
    subprocess.run(command, check=True, cwd=crate, env={**os.environ, "RUSTFLAGS": "-D warnings"})
    shutil.copy(crate / "target" / "debug" / "examples" / "driver", program)


Build = Callable[[Path, Path], None]
BUILDS: Final[Mapping[str, Build]] = {"c": build_c, "cpp": build_cpp, "rs": build_rust}
POOLS: Final = {
    "c": FIXTURES / "c" / "example_pool.c",
    "cpp": FIXTURES / "cpp" / "example_pool.cpp",
    "rs": FIXTURES / "rust" / "examples" / "example_pool.rs",
}

NOT_SQUEEZED: Final = "runs out of memory while it caches some"
COUNTS_WRONG: Final = "counts what was freed"
FORGETS: Final = "keeps what it should trim"
FAULTS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("c", NOT_SQUEEZED): ("if (!made && cached != NULL)", "if (false)"),
    ("cpp", NOT_SQUEEZED): ("if (!made && !cached_.empty())", "if (false)"),
    ("rs", NOT_SQUEEZED): ("if made.is_none() && !self.cached.is_empty()", "if made.is_none() && size == 1"),
    ("c", COUNTS_WRONG): ("    live_bytes -= block->size;", ""),
    ("cpp", COUNTS_WRONG): ("live_bytes_ -= found->second.size;", ""),
    ("rs", COUNTS_WRONG): ("self.live_bytes -= block.size;", ""),
    ("c", FORGETS): ("    case QUIESCE_TRIM:\n        pool_trim();", "    case QUIESCE_TRIM:"),
    ("cpp", FORGETS): (
        "    void trim(const Options &) override {",
        "    void trim(const Options &) override { return;",
    ),
    ("rs", FORGETS): ("            Verb::Trim => {\n                self.trim(ledger);", "            Verb::Trim => {"),
}
RULES: Final = {
    NOT_SQUEEZED: "request_fits_but_out_of_memory",
    COUNTS_WRONG: "live_bytes_return_to_where_they_were",
    FORGETS: "trim_returns_what_nobody_uses",
}


def examine(program: Path) -> Conformance:
    cases = load(find_cases([ROOT / "cases" / "pool"])).cases
    return run_conformance(CommandBackend([str(program)]), operations=300, cases=cases, trials_max=1)


@pytest.mark.parametrize("language", POOLS)
def test_the_example_pool_conforms(tmp_path: Path, language: str) -> None:
    BUILDS[language](POOLS[language], tmp_path / "pool")
    conformance = examine(tmp_path / "pool")
    assert conformance.conforms, conformance.text()


@pytest.mark.parametrize(("language", "fault"), FAULTS)
def test_a_fault_in_the_example_pool_is_found(tmp_path: Path, language: str, fault: str) -> None:
    text, (old, new) = POOLS[language].read_text(encoding="utf-8"), FAULTS[language, fault]
    assert text.count(old) == 1
    source = tmp_path / f"faulty.{language}"
    source.write_text(text.replace(old, new), encoding="utf-8")
    BUILDS[language](source, tmp_path / "pool")
    conformance = examine(tmp_path / "pool")
    assert RULES[fault] in {finding.rule for finding in conformance.findings}


def pool_in_cpp(folder: Path, changes: Mapping[str, str], name: str = "pool") -> CommandBackend:
    """Return the example pool in C++ with each text replaced by another."""
    text = POOLS["cpp"].read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / f"{name}.cpp").write_text(text, encoding="utf-8")
    build_cpp(folder / f"{name}.cpp", folder / name)
    return CommandBackend([str(folder / name)])


FORKED: Final = {"quiesce::serve(pool)": "quiesce::serve_forked(pool)"}
DIES: Final = {
    "        auto found = live_.find(slot);\n": "        auto found = live_.find(slot);\n        std::abort();\n"
}


def test_a_cpp_driver_that_forks_serves_all_contexts_in_one_process(tmp_path: Path) -> None:
    backend = pool_in_cpp(tmp_path, FORKED)
    assert backend.serves_again
    first = backend.open(DeviceProfile())
    first.ask("a = allocate 64")
    first.close()
    second = backend.open(DeviceProfile(capacity_bytes=1 << 20))
    assert second.program is first.program
    assert isinstance(second.ask("a = allocate 64").outcome, Allocated)
    assert isinstance(second.ask("b = allocate 2097152").outcome, OutOfMemory)
    second.close()
    conformance = examine(tmp_path / "pool")
    assert conformance.conforms, conformance.text()


def test_a_finding_is_shrunk_to_the_same_case_with_and_without_forks(tmp_path: Path) -> None:
    fault = {"live_bytes_ -= found->second.size;": "live_bytes_ -= live_.size() == 3 ? 0 : found->second.size;"}
    shrunk = []
    for name, changes in (("one", fault), ("forked", fault | FORKED)):
        discovery = run_campaign(pool_in_cpp(tmp_path, changes, name), seed=1, operations=5000).discovery
        assert discovery is not None
        shrunk.append((discovery.case.body, discovery.shrunk.rule, discovery.trials))
    assert shrunk[0] == shrunk[1]


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc tells a stack in these words")
def test_a_driver_that_dies_tells_its_stack_without_addresses(tmp_path: Path, *, forked: bool) -> None:
    backend = pool_in_cpp(tmp_path, {**DIES, **(FORKED if forked else {})})
    told = []
    for _ in range(2):
        context = backend.open(DeviceProfile())
        context.ask("a = allocate 64")
        with pytest.raises(BackendFault) as fault:
            context.ask("free a")
        assert fault.value.rule == SURVIVES
        assert "SIGABRT" in fault.value.observed
        told.append(fault.value.evidence)
    assert told[0] == told[1]
    assert "[0x" not in told[0]
    assert f"  {tmp_path / 'pool'}(" in told[0]
    if shutil.which("addr2line") is not None:
        assert "ExamplePool::free(" in told[0]


def test_backing_memory_is_that_of_a_device(tmp_path: Path) -> None:
    backend = pool_in_cpp(
        tmp_path,
        {"block.address, size);\n        return true": 'block.address, size, "device", 1);\n        return true'},
    )
    with pytest.raises(BackendFault, match="device 1, where 'open' gave 1") as fault:
        backend.open(DeviceProfile()).ask("a = allocate 64")
    assert fault.value.rule == IN_PROTOCOL


REQUESTS: Final = {
    "a = allocate 64": "allocate|a|64|device|global||||0|0|0|0|||0",
    "a[3] = allocate 64 pinned on s align=512 pool=p": "allocate|a[3]|64|pinned|global|s|p||512|0|0|0|||0",
    "free a on s": "free|a|0|device|global|s|||0|0|0|0|||0",
    "trim managed pool=p": "trim||0|managed|global||p||0|0|0|0|||0",
    "copy a to b on s size=7": "copy|a,b|0|device|global|s|||0|0|7|0|||0",
    "d = stage a on s": "stage|d,a|0|device|global|s|||0|0|0|0|||0",
    "fill a 255 on s": "fill|a|255|device|global|s|||0|0|0|0|||0",
    "launch": "launch||0|device|global||||0|0|0|0|||0",
    "launch on s reads=a,b writes=c arguments=9 instance=x": "launch||0|device|global|s||x|0|0|0|9|a,b|c|0",
    "p = create pool limit=0": "create pool|p|0|device|global||||0|0|0|0|||0",
    "destroy pool p": "destroy pool|p|0|device|global||||0|0|0|0|||0",
    "s = create stream": "create stream|s|0|device|global||||0|0|0|0|||0",
    "s = create stream nonblocking": "create stream nonblocking|s|0|device|global||||0|0|0|0|||0",
    "destroy stream s": "destroy stream|s|0|device|global||||0|0|0|0|||0",
    "synchronize stream": "synchronize stream||0|device|global||||0|0|0|0|||0",
    "synchronize stream s": "synchronize stream|s|0|device|global||||0|0|0|0|||0",
    "query stream s": "query stream|s|0|device|global||||0|0|0|0|||0",
    "e = create event": "create event|e|0|device|global||||0|0|0|0|||0",
    "destroy event e": "destroy event|e|0|device|global||||0|0|0|0|||0",
    "record event e on s": "record event|e|0|device|global|s|||0|0|0|0|||0",
    "wait event e": "wait event|e|0|device|global||||0|0|0|0|||0",
    "synchronize event e": "synchronize event|e|0|device|global||||0|0|0|0|||0",
    "query event e": "query event|e|0|device|global||||0|0|0|0|||0",
    "synchronize device": "synchronize device||0|device|global||||0|0|0|0|||0",
    "use device 1": "use device||1|device|global||||0|0|0|0|||0",
    "stall s": "stall|s|0|device|global||||0|0|0|0|||0",
    "release s": "release|s|0|device|global||||0|0|0|0|||0",
    "begin capture on s mode=relaxed": "begin capture||0|device|relaxed|s|||0|0|0|0|||0",
    "g = end capture on s": "end capture|g|0|device|global|s|||0|0|0|0|||0",
    "launch graph g on s": "launch graph|g|0|device|global|s|||0|0|0|0|||0",
    "destroy graph g": "destroy graph|g|0|device|global||||0|0|0|0|||0",
    "initialize": "initialize||0|device|global||||0|0|0|0|||0",
    "finalize": "finalize||0|device|global||||0|0|0|0|||0",
    "x = create instance on s": "create instance|x|0|device|global|s|||0|0|0|0|||0",
    "destroy instance x": "destroy instance|x|0|device|global||||0|0|0|0|||0",
    "x, y = partition instance=z": "partition|x,y|0|device|global|||z|0|0|0|0|||0",
    "create policy instance=x": "create policy||0|device|global|||x|0|0|0|0|||0",
    "n = node": "node|n|0|device|global||||0|0|0|0|||0",
    "n = node of a,b": "node|n,a,b|0|device|global||||0|0|0|0|||0",
    "hold n": "hold|n|0|device|global||||0|0|0|0|||0",
    "drop n": "drop|n|0|device|global||||0|0|0|0|||0",
    "backward n": "backward|n|0|device|global||||0|0|0|0|||0",
    "collect": "collect||0|device|global||||0|0|0|0|||0",
    "fail backing 3": "fail backing||3|device|global||||0|0|0|0|||0",
    "fail bookkeeper 1 with foreign-error": "fail bookkeeper||1|device|global||||0|0|0|0|||1",
}
"""Each request, and how every language reads it."""
VERBS: Final = tuple(dict.fromkeys(shown.split("|")[0] for shown in REQUESTS.values()))
"""In the order of the enumerations in C, where 1 is the first, and in Rust."""
NOT_REQUESTS: Final = (
    "frobnicate",
    "free",
    "free a b",
    "free a frobnicate=1",
    "a = allocate",
    "a = allocate x",
    "a = allocate 64 align=",
    "a = allocate 64 mode=relaxed",
    "trim on",
    "fail backing",
    "fail everything 1",
    "fail backing 1 with nothing",
    "n = node of",
)


def echo(folder: Path, language: str, capabilities: set[Capability], monkeypatch: pytest.MonkeyPatch) -> CommandBackend:
    BUILDS[language](DRIVERS / f"echo.{language}", folder / "echo")
    listed = ",".join(f'"{capability}"' for capability in sorted(capabilities))
    monkeypatch.setenv("HELLO", f'"name":"echo","version":"1","capabilities":[{listed}],"promises":[],"gauges":{{}}')
    monkeypatch.setenv("ECHO", str(folder / "requests"))
    return CommandBackend([str(folder / "echo")])


def test_the_requests_are_all_that_there_are() -> None:
    known = {type(parse_request(line)) for line in REQUESTS}
    assert known == set(get_args(ops.Operation)) - {ops.Mark}
    assert [format_request(parse_request(line)) for line in REQUESTS] == list(REQUESTS)


@pytest.mark.parametrize("language", BUILDS)
def test_every_request_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    context = echo(tmp_path, language, set(Capability), monkeypatch).open(DeviceProfile())
    for line in REQUESTS:
        context.ask(line)
    for line in NOT_REQUESTS:
        assert isinstance(context.ask(line).outcome, Unsupported), line
    context.close()
    read = [line.split("|", 1) for line in (tmp_path / "requests").read_text(encoding="utf-8").splitlines()]
    named = [f"{VERBS[int(verb) - 1] if verb.isdigit() else verb}|{rest}" for verb, rest in read]
    assert named == list(REQUESTS.values())


@pytest.mark.parametrize("language", BUILDS)
def test_an_option_that_is_not_claimed_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    backend = echo(tmp_path, language, {Capability.MEMORY, Capability.POOL}, monkeypatch)
    context = backend.open(DeviceProfile())
    for line in ("a = allocate 64 pinned", "a = allocate 64 on s", "a = allocate 64 align=512", "trim pool=p"):
        assert isinstance(context.ask(line).outcome, Unsupported), line
    context.close()
    assert (tmp_path / "requests").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("language", BUILDS)
def test_everything_that_was_seen_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    context = echo(tmp_path, language, set(Capability), monkeypatch).open(DeviceProfile())
    assert context.ask("synchronize device").observations == (DeviceSynchronized(0),)
    context.close()
