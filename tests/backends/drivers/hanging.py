"""hanging.py REQUEST: proper, but at REQUEST it falls silent, deaf to signals, even when its input ends."""

import os
import signal
import sys
import threading

from speaking import encode, proper_reply, serve


def reply(request: str) -> bytes:
    if request.startswith(sys.argv[1]):
        sys.stderr.write(f"pid {os.getpid()}: waiting for a lock\n")
        sys.stderr.flush()
        threading.Event().wait()
    return encode(proper_reply(request))


for name in ("SIGTERM", "SIGINT", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
serve(reply)
if sys.argv[1] == "quit":
    threading.Event().wait()
