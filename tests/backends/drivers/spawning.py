"""spawning.py GROUP ALIVE RELEASE: at the first allocation it starts a child that keeps its pipes open, and exits.

The child holds the FIFO ALIVE open while it lives, and ends when something is written to the FIFO RELEASE (then it
says so in ALIVE). GROUP is ``same`` or ``own``: whether the child stays in the driver's session.
"""

import os
import subprocess
import sys

from speaking import encode, proper_reply, serve

GROUP, ALIVE, RELEASE = sys.argv[1:]
CHILD = """
import os, select, sys
alive = int(sys.argv[1])
release = os.open(sys.argv[2], os.O_RDWR)
os.write(alive, b"born")
select.select([release], [], [])
os.write(alive, b"released")
"""


def reply(request: str) -> bytes:
    if " = allocate " in request:
        alive = os.open(ALIVE, os.O_WRONLY)
        subprocess.Popen(
            [sys.executable, "-S", "-c", CHILD, str(alive), RELEASE], pass_fds=[alive], start_new_session=GROUP == "own"
        )
        os._exit(3)
    return encode(proper_reply(request))


serve(reply)
