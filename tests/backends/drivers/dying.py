"""dying.py REQUEST HOW [WRITTEN]: proper, but at REQUEST it writes WRITTEN and ends by signal or exit code HOW."""

import os
import signal
import sys

from speaking import encode, proper_reply, serve, write

REQUEST, HOW, WRITTEN = sys.argv[1], sys.argv[2], (sys.argv[3] if len(sys.argv) > 3 else "")


def reply(request: str) -> bytes:
    if not request.startswith(REQUEST):
        return encode(proper_reply(request))
    sys.stderr.write(f"pid {os.getpid()}: last words\n")
    sys.stderr.flush()
    write(WRITTEN.encode())
    if HOW.isdigit():
        os._exit(int(HOW))
    if HOW == "closes":
        os.close(1)
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), getattr(signal, HOW))
    return b""


serve(reply)
if REQUEST == "quit":
    sys.stderr.write("leaked 64 bytes\n")
    sys.exit(int(HOW))
