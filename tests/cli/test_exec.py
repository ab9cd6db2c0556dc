"""``quiesce exec`` runs a program, judges it, reports it, and says by its exit code what came of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.files import locked_folder
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("void *p; cudaMalloc(&p, 8); cudaFree(p); return 0;", ExitCode.NOTHING_FOUND, "2 calls recorded on cuda:12"),
        ("void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 0;", ExitCode.FINDINGS, "3 calls recorded"),
        ("void *p; cudaMalloc(&p, 8); cudaFree(p); return 4;", ExitCode.COULD_NOT_RUN, "ended with status 4"),
        ("void *p; cudaMalloc(&p, 8); abort();", ExitCode.COULD_NOT_RUN, "ended with SIGABRT"),
        ("return 0;", ExitCode.COULD_NOT_RUN, "never called the simulated runtime"),
    ],
)
def test_exit_codes(body: str, code: ExitCode, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, body)
    assert main(["exec", "--", str(program)]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "verdict", "reason"),
    [
        ("void *p; cudaMalloc(&p, 8); cudaFree(p); return 4;", "inconclusive", "the program ended with status 4"),
        ("void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 4;", "failed", ""),
    ],
)
def test_a_program_that_fails_has_not_passed(body: str, verdict: str, reason: str, tmp_path: Path) -> None:
    main(["exec", "--report", str(tmp_path / "out"), "--", str(compile_client(tmp_path, body))])
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert [(result["verdict"], result.get("reason", "")) for result in report["results"]] == [(verdict, reason)]


def test_a_finding_names_the_rule_and_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 0;")
    main(["exec", "--", str(program)])
    shown = capsys.readouterr().out
    assert f"{program}: call 2 on 'cuda:12': cudaFree" in shown
    assert "rule:      memory_is_freed_once" in shown


def test_stacks_say_where_a_block_was_allocated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 0;")
    main(["exec", "--", str(program)])
    shown = capsys.readouterr().out
    assert re.search(r"  allocated by cudaMalloc \(call 0\):\n    \S+/client\+0x[0-9a-f]+ in main\n", shown), shown
    main(["exec", "--no-stacks", "--", str(program)])
    assert "  allocated by cudaMalloc (call 0)\n" in capsys.readouterr().out


def test_nothing_runs_where_another_run_writes_its_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["exec", "--report", str(tmp_path), "--", "touch", "made"]
    with locked_folder(tmp_path):
        assert main(words) == ExitCode.COULD_NOT_RUN
        assert "another run of quiesce writes its reports here until it ends" in capsys.readouterr().err
        assert not (tmp_path / "made").exists()
    main(words)
    assert (tmp_path / "made").exists()


def test_the_report_of_an_older_run_is_gone_before_the_program_begins(tmp_path: Path) -> None:
    """The run may be killed, and an old report would look like its own."""
    folder = tmp_path / "out"
    main(["exec", "--report", str(folder), "--", str(compile_client(tmp_path, "return 0;"))])
    assert (folder / "report.json").exists()
    seen = tmp_path / "seen"
    main(["exec", "--report", str(folder), "--", "sh", "-c", f"ls {folder} > {seen}"])
    assert seen.read_text(encoding="utf-8") == ""
    assert (folder / "report.json").exists()


def test_reports_of_two_runs_are_the_same(tmp_path: Path) -> None:
    body = "for (int i = 0; i < 9; i++) { void *p; cudaMalloc(&p, 64); cudaFree(&p); } return 0;"
    program, texts = compile_client(tmp_path, body), []
    for name in ("first", "second"):
        arguments = [
            "exec",
            "--schedule",
            "seeded",
            "--seed",
            "4",
            "--at-exit",
            "all",
            "--report",
            str(tmp_path / name),
        ]
        assert main([*arguments, "--", str(program)]) == ExitCode.FINDINGS
        report = json.loads((tmp_path / name / "report.json").read_text(encoding="utf-8"))
        assert report.pop("run")
        (result,) = report["results"]
        texts.append([(finding["rule"], finding.get("seen", 1)) for finding in result["findings"]])
    assert texts[0] == texts[1] == [("only_own_memory_is_freed", 9), ("nothing_is_left_at_quiescence", 1)]


def test_options_reach_the_machine(tmp_path: Path) -> None:
    body = """
    void *p;
    return cudaMalloc(&p, 3000000) != 2 || cudaMalloc(&p, 64) != 46 || cudaMalloc(&p, 64) != 0 || cudaFree(p) != 0;"""
    arguments = ["exec", "--capacity", "2MiB", "--fail", "device:2=46", "--recycle", "never"]
    assert main([*arguments, "--", str(compile_client(tmp_path, body))]) == ExitCode.NOTHING_FOUND


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--flavour", "hip:4"], "flavour 'hip:4' is not simulated"),
        (["--fail", "a;b"], "leave the ';' out"),
        (["--fail", "devices:1"], "'fail' can't be 'devices:1': write KIND:N"),
        (["--fail", "device:1", "--fail", "event:1x", "--fail", "copy:1"], "'fail' can't be 'event:1x': write KIND:N"),
        (["--fail", "x" * 200], f"'fail' can't be '{'x' * 100}': write KIND:N"),
        (["--fail", "x"], "KIND is one of device, pinned, managed, stream, event, graph, copy, launch, synchronize"),
        (["--fail", "device:0"], "write KIND:N"),
        (["--fail", "device:1=0"], "write KIND:N"),
        (["--fail", "device:1=99999999999"], "write KIND:N"),
        (["--devices", "9"], "quiesce: 'devices' can't be '9': write a number from 1 to 8"),
        (["--ring", "0"], "'ring' can't be '0': write a number from 16"),
    ],
)
def test_what_is_asked_wrong_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", *arguments, "--", "true"]) == ExitCode.COULD_NOT_RUN
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "right"),
    [
        *((size, "bytes, such as 64MiB") for size in ("lots", "-1", "1MB2", "")),
        *(("2GB", "2GiB"), ("16g", "16GiB"), ("1 mb", "1MiB"), ("3Ki", "3KiB")),
    ],
)
def test_a_wrong_capacity_is_answered_with_a_right_one(
    size: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--capacity", size, "--", "true"])
    said = f"argument --capacity: '{size}' is not a size; write {right}; see 'quiesce exec --help'\n"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"), [("#!/there/is/none\n", "No such file or directory"), ("", "Exec format error")]
)
def test_a_program_that_can_not_be_started_is_said(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program"
    program.write_text(text)
    program.chmod(0o755)
    assert main(["exec", "--", str(program)]) == ExitCode.COULD_NOT_RUN
    assert f"{program} can't be started ({said})" in capsys.readouterr().err


def test_what_is_judged_at_exit_is_one_of_three(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--at-exit", "some", "--", "true"])
    assert "'some' is not one of lost, all, none" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_does_not_outlive_its_run(number: signal.Signals, tmp_path: Path) -> None:
    body = 'void *p; cudaMalloc(&p, 8); printf("%d\\n", (int)getpid()); fflush(stdout); for (;;) pause();'
    program = compile_client(tmp_path, body)
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        client = int(run.stdout.readline())
        run.send_signal(number)
        said = run.stderr.read()
        assert run.wait() == ExitCode.COULD_NOT_RUN
    assert f"ended with {number.name}" in said
    with pytest.raises(ProcessLookupError):
        os.kill(client, 0)


@pytest.mark.long
def test_a_first_run_without_a_home_says_where_the_library_is_kept_and_that_it_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    for name in ("QUIESCE_CACHE", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); return cudaFree(p);")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--", str(program)]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)
    )
    assert first.count("set QUIESCE_CACHE to choose another folder\n") == 1
    assert "compiling the simulated runtime; this is done once" in first
    assert "compiling" not in second


def test_an_interrupted_program_cleans_up_and_is_judged(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import ctypes, os, signal\n"
        "runtime, made = ctypes.CDLL('libcudart.so.12'), ctypes.c_void_p()\n"
        "assert runtime.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(4096)) == 0\n"
        "try:\n"
        "    os.killpg(0, signal.SIGINT)  # as a terminal does\n"
        "    while True: signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    assert runtime.cudaFree(made) == runtime.cudaFree(made) == 0, 'the second fails'\n"
        "finally:\n"
        "    print('saved')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--report", str(tmp_path / "out"), "--"]
    done = subprocess.run(
        [*command, sys.executable, str(script)], capture_output=True, text=True, start_new_session=True, check=False
    )
    assert (done.returncode, "saved" in done.stdout) == (ExitCode.FINDINGS, True)
    assert (tmp_path / "out" / "report.json").exists()


def test_the_page_of_one_finding_is_small_and_is_made_again_from_the_journal(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    program = compile_client(tmp_path, "void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 0;")
    out = tmp_path / "out"
    assert main(["exec", "--report", str(out), "--", str(program)]) == ExitCode.FINDINGS
    page = (out / "report.html").read_bytes()
    assert b'<h1 id="headline">1 double free</h1>' in page
    assert len(page) < 100_000
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == ExitCode.FINDINGS
    assert (out / "report.html").read_bytes() == page


def test_a_program_that_called_nothing_has_a_page_that_says_why(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    assert main(["exec", "--report", str(tmp_path / "out"), "--", "true"]) == ExitCode.COULD_NOT_RUN
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '<h1 id="headline">Inconclusive</h1>' in page
    assert "never called the simulated runtime" in page
    assert "quiesce exec -- true" in page
