"""Build and run NVIDIA's cuda-samples: ``python -m tests.suites.cuda_samples CHECKOUT``; it needs no GPU."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.suites.cuda_samples.building import NotBuilt, build, configure
from tests.suites.cuda_samples.results import keep, read_results, table
from tests.suites.cuda_samples.running import Came, Outcome, run
from tests.suites.cuda_samples.scope import Sample, samples_of

_SECONDS: Final = 120


def main() -> None:
    """Run what has no result yet, or the samples that are named, and write the table."""
    arguments = _arguments()
    checkout = arguments.checkout.resolve()
    folder = arguments.results.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    samples = samples_of(checkout)
    kept = folder / "results.jsonl"
    results = read_results(kept)
    chosen = set(arguments.samples)
    unknown = chosen - {each.target for each in samples}
    if not samples or unknown:
        raise SystemExit(f"{arguments.checkout} has no samples {', '.join(sorted(unknown))}".rstrip())
    todo = [each for each in samples if (each.target in chosen if chosen else each.name not in results)]
    if any(not each.needs for each in todo):
        configure(checkout, [each for each in samples if not each.needs], folder)
    for number, sample in enumerate(todo, 1):
        print(f"[{number}/{len(todo)}] {sample.name}", end=" ", flush=True)
        came = _came(sample, folder, arguments.seconds)
        keep(kept, replace(came, why=tuple(each.replace(f"{checkout}/Samples/", "") for each in came.why)))
        print(f"{came.outcome} ({came.seconds} s)", flush=True)
    written = folder / "table.md"
    written.write_text(table([each.name for each in samples], read_results(kept)), encoding="utf-8")
    print(written.read_text(encoding="utf-8").splitlines()[-1])
    print(f"the table is in {written}")


def _came(sample: Sample, folder: Path, seconds: int) -> Came:
    if sample.needs:
        return Came(sample.name, Outcome.OUT_OF_SCOPE, (f"needs {', '.join(sample.needs)}",))
    try:
        program = build(sample, folder)
    except NotBuilt as why:
        return Came(sample.name, Outcome.UNBUILT, (str(why),))
    return run(sample.name, program, folder / "runs" / sample.name, seconds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of https://github.com/NVIDIA/cuda-samples")
    parser.add_argument("samples", nargs="*", help="run these again, such as simpleIPC (default: all without a result)")
    parser.add_argument("--results", type=Path, default=Path("cuda-samples-results"), help="where results are kept")
    text = "end a sample after so many seconds (default: %(default)s)"
    parser.add_argument("--seconds", type=int, default=_SECONDS, help=text)
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    main()
