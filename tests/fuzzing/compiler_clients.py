"""Clients of the compiler of kernels that send anything: each is answered, or its connection ends, in bounds."""

from __future__ import annotations

import random
import socket
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from tests.fuzzing.damage import damaged
from tests.fuzzing.limits import try_inputs

from quiesce.simulator.kernels.protocol import Asked, Packing, Request, read_request
from quiesce.simulator.kernels.server import Service

MODULE: Final = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { ret; }\n"
_SENT_MAX: Final = 100_000
"""So much is taken by a socket that nobody reads yet."""


class _Nothing:
    """A cache that keeps nothing."""

    def find(self, _: str) -> bytes | None:
        return None

    def keep(self, _: str, __: bytes) -> None:
        return None

    def alone(self, _: str) -> AbstractContextManager[None]:
        return nullcontext()


def conversation(generator: random.Random) -> bytes:
    """Return what a client sends: proper requests about one module, and a few changes."""
    packing = generator.choice((Packing.PLAIN, Packing.PLAIN, *Packing))
    plain = generator.choice((0, len(MODULE), 1 << 20, 1 << 31, 1 << 63))
    requests = [Request(Asked.MODULE, 1, damaged(generator, MODULE), packing, plain)]
    for _ in range(generator.randrange(1, 5)):
        asked = generator.choice([each for each in Asked if each is not Asked.TOOLKIT])
        name = generator.choice((b"k", b"../../k\0", b"", generator.randbytes(20)))
        requests.append(Request(asked, generator.choice((1, 1, 1, 2)), name, packing, plain))
    sent = b"".join(request.encode() for request in requests)
    return (damaged(generator, sent) if generator.random() < 0.7 else sent)[:_SENT_MAX]


def judge(number: int) -> None:
    """Serve a client. What the server takes for the end of a connection is right, as is every answer."""
    client, served = socket.socketpair()
    with client, served:
        client.sendall(conversation(random.Random(number)))
        client.shutdown(socket.SHUT_WR)
        service = Service(_Nothing())
        try:
            while (request := read_request(served)) is not None:
                answer = service.answer(request)
                if answer is not None and b"the compiler failed" in answer.content[:50]:
                    raise AssertionError(answer.content.decode())
        except ValueError as error:
            if isinstance(error, UnicodeError):
                raise


if __name__ == "__main__":
    sys.exit(try_inputs(int(sys.argv[1]), int(sys.argv[2]), judge) > 0)
