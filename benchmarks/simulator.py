"""What a call to the simulated runtime costs beside the C library's, with its ledger on; nothing is asserted."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from quiesce.errors import BackendUnavailable
from quiesce.simulator.build import build_library, find_compiler


def main() -> int:
    """Compile the measurement and run it; nothing where the runtime can't be built."""
    try:
        library = build_library()
    except BackendUnavailable as error:
        print(f"not measured: {error}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "simulator"
        source = Path(__file__).with_suffix(".c")
        options = ["-O2", "-fno-builtin", "-pthread", f"-Wl,-rpath,{library.parent}"]
        command = [*find_compiler(), *options, str(source), str(library), "-o", str(program)]
        subprocess.run(command, check=True)  # noqa: S603 - a list, no shell
        return subprocess.run([str(program), folder], check=False).returncode  # noqa: S603 - a list, no shell


if __name__ == "__main__":
    sys.exit(main())
