"""outliving.py ALIVE [hangs]: proper; it holds the FIFO ALIVE open while it lives, and says there if its input ends.

With ``hangs`` it says there that it was asked for a block, and never answers.
"""

import os
import sys
import threading

from speaking import encode, proper_reply, write

alive = -1
for line in sys.stdin:
    request = line.rstrip("\n")
    if request == "quit":
        sys.exit(0)
    if request.startswith("open"):
        alive = os.open(sys.argv[1], os.O_WRONLY)
    if " = allocate " in request and sys.argv[2:] == ["hangs"]:
        os.write(alive, b"asked")
        threading.Event().wait()
    write(encode(proper_reply(request)))
os.write(alive, b"outlived")
