"""Strangers that map and unmap wrongly: a prefix that stays, granules in part, in flight, twice for two markers."""

from __future__ import annotations

from .mapped import GRANULE_BYTES, MappedSegments, Segment
from .pool import Piece, round_up


class PrefixesStay(MappedSegments):
    """What was mapped before a map failed stays mapped, and nobody knows (as in pytorch/pytorch#188008)."""

    def take_back(self, made: list[int]) -> None:
        for granule in made:
            self.held -= self.chunks.pop(granule)


class PartsAreUnmapped(MappedSegments):
    """A granule that is free in part is unmapped."""

    def whole(self, low: int, high: int) -> tuple[int, int]:
        return low // GRANULE_BYTES * GRANULE_BYTES, round_up(high, GRANULE_BYTES)


class UnmapsInFlight(MappedSegments):
    """The segment's own stream is not waited for before its memory goes."""

    def settle_segment(self, segment: Segment) -> None:
        pass


class JoinsForEveryMarker(MappedSegments):
    """A span that is behind work of several streams is free as soon as one of them is done."""

    def poll(self) -> None:
        waiting, self.waiting = self.waiting, []
        for piece in waiting:
            before = len(piece.behind)
            if self.is_idle(piece) or len(piece.behind) < before:
                self.join(piece)
                for marker in piece.behind:
                    self.runtime.retire(marker)
            else:
                self.waiting.append(piece)


class FailedRequestsPollOnly(MappedSegments):
    """Out of memory is reported while freed memory waits for other streams, which nobody waits for."""

    def release_all(self) -> None:
        self.release()


class LastGranuleIsLost(MappedSegments):
    """A freed span that ends where another begins is not joined with it where a granule begins there too."""

    def join(self, piece: Piece) -> None:
        free = self.segments[piece.chunk].free
        end = piece.address + piece.size
        if end % GRANULE_BYTES == 0 and any(low == end for low, _ in free) and piece.size > GRANULE_BYTES:
            piece.size -= self.unit
        super().join(piece)
