"""``python -m quiesce.allocators.recording``: record what a device answers, and keep it as a file.

Every sequence and every probe has a process of its own, so that a crash, a hang or a device that fails for good takes
nothing else along; it is recorded as what it was. The file is complete after each of them: a run that is cut short
keeps what it had.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from quiesce.allocators.recording.recording import (
    RecordedProbe,
    RecordedSequence,
    Recording,
    corpus_programs,
    generated_programs,
    record,
    write_recording,
)
from quiesce.backends.command import CommandBackend, serve
from quiesce.model.backend import Description, Flavour
from quiesce.model.errors import QuiesceError

PROBES: Final[Mapping[str, str]] = dict.fromkeys(("cupy", "cupy-rocm", "cupy-async"), "quiesce.backends.cupy.probes")
"""The module that asks the runtime below a backend, by the backend's name."""
FACTS: Final = "facts"
WATCHDOG_SECONDS: Final = 120.0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m quiesce.allocators.recording", description="Record what a device answers."
    )
    parser.add_argument("--backend", default="cupy", metavar="NAME", help="what to record (default: cupy)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the file goes")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated sequences (default: 0)")
    parser.add_argument("--generated", type=int, default=40, metavar="N", help="how many of them (default: 40)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="sequences at a time (default: 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only sequences and probes with this in their name")
    return parser


def ask_probe(module: str, name: str) -> RecordedProbe:
    """Run one probe in a process of its own."""
    try:
        run = subprocess.run(  # noqa: S603 - this interpreter, and a module of quiesce
            [sys.executable, "-m", module, name], capture_output=True, text=True, timeout=WATCHDOG_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return RecordedProbe(name, {}, f"no answer within {WATCHDOG_SECONDS:g} seconds")
    lines = run.stdout.splitlines()
    if run.returncode or not lines:
        said = run.stderr.strip().splitlines()
        return RecordedProbe(name, {}, f"exit code {run.returncode}: {said[-1] if said else 'no word'}")
    return RecordedProbe(name, json.loads(lines[-1]))


def _probe_names(module: str) -> list[str]:
    run = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=True)  # noqa: S603
    names: list[str] = json.loads(run.stdout)
    return names


def file_name(backend: str, machine: Mapping[str, object], version: str) -> str:
    """Return a name that says what was recorded where: ``cupy-14.2.0-nvidia-h200.json``."""
    words = [backend, str(machine.get("cupy", version)), str(machine.get("device", ""))]
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(words).lower()).strip("-") + ".json"


def save(recording: Recording, path: Path) -> None:
    """Write the file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(write_recording(recording), encoding="utf-8")
    beside.replace(path)


def run(arguments: argparse.Namespace) -> Path:
    """Record everything that was asked for; return the file. Raises :class:`QuiesceError` where nothing can be."""
    name: str = arguments.backend
    served = serve(name, watchdog_seconds=WATCHDOG_SECONDS)
    description = served.describe()
    module = PROBES.get(name)
    machine = ask_probe(module, FACTS).answer if module else {}
    recording = Recording(
        backend=name,
        version=description.version,
        capabilities=description.capabilities,
        promises=description.promises,
        alignment_bytes=description.alignment_bytes,
        seed=arguments.seed,
        machine=machine,
    )
    path: Path = arguments.out / file_name(name, machine, description.version)
    flavour = Flavour(str(machine.get("flavour", Flavour.CUDA)))
    for probe in _probes(module, arguments.only):
        recording = replace(recording, probes=(*recording.probes, probe))
        _keep(recording, path, probe)
    for sequence in _sequences(served, description, flavour, arguments):
        recording = replace(recording, sequences=(*recording.sequences, sequence))
        _keep(recording, path, sequence)
    return path


def _keep(recording: Recording, path: Path, added: RecordedProbe | RecordedSequence) -> None:
    save(recording, path)
    sys.stderr.write(f"{added.name}: {added.end}\n")


def _probes(module: str | None, only: str) -> Iterable[RecordedProbe]:
    for name in _probe_names(module) if module else ():
        if only in name and name != FACTS:
            yield ask_probe(module or "", name)


def _sequences(
    served: CommandBackend, description: Description, flavour: Flavour, arguments: argparse.Namespace
) -> Iterable[RecordedSequence]:
    corpus = corpus_programs(description, flavour)
    generated = generated_programs(description, flavour, arguments.seed, arguments.generated)
    programs = [program for program in itertools.chain(corpus, generated) if arguments.only in program.name]
    with ThreadPoolExecutor(max(1, arguments.jobs)) as threads:  # each waits for a process
        yield from threads.map(partial(record, served), programs)


def main(words: list[str]) -> int:
    """Record and say where; return the exit code: 0 recorded, 2 could not."""
    arguments = build_parser().parse_args(words)
    try:
        path = run(arguments)
    except (QuiesceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{path.as_posix()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
