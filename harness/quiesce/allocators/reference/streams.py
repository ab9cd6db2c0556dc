"""Streams and events: in-order queues of work that runs as soon as nothing holds it back.

The schedule is eager, except where the sequence stalls a stream: then its work stays pending until the stall is
released or a synchronisation forces it. Handles are recycled as eagerly as is legal; objects never are.
The default stream is CUDA's and HIP's legacy one: it and every blocking stream wait for each other.
"""

from __future__ import annotations

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.allocators.reference.objects import Event, Gate, Item, Record, Stream, Wait, Work
from quiesce.model.backend import Flavour
from quiesce.model.observations import (
    DEFAULT_STREAM,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleCreated,
    HandleDestroyed,
    HandleKind,
    StreamSynchronized,
    default_stream_of,
)
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED, INVALID_HANDLE


class Streams:
    """All streams and events of all devices. Every method may raise :class:`CallRejected`."""

    def __init__(self, devices: int, ledger: Ledger, captures: Captures, flavour: Flavour = Flavour.CUDA) -> None:
        self._ledger = ledger
        self._flavour = flavour
        self.captures = captures
        names = [default_stream_of(device) for device in range(devices)] if devices > 1 else [DEFAULT_STREAM]
        self.defaults = [Stream(name, 0, device, is_default=True) for device, name in enumerate(names)]
        self._busy: dict[Stream, None] = {}
        self._stream_handles = _Handles()
        self._event_handles = _Handles()
        self._internal = 0

    # -- handles ---------------------------------------------------------------------------------------------------

    def create_stream(self, name: str, device: int, *, nonblocking: bool = False) -> Stream:
        """Create a stream on ``device``."""
        stream = Stream(name, self._stream_handles.take(), device, nonblocking)
        self._ledger.see(HandleCreated(HandleKind.STREAM, name))
        return stream

    def destroy_stream(self, stream: Stream) -> None:
        """Destroy a stream; its pending work still completes, and its handle may be handed out again.

        CUDA returns "immediately and the resources associated with stream will be released automatically once the
        device has completed all work in stream" (``cudaStreamDestroy``); HIP "may wait for all commands queued to
        the stream before destroying it" (``hipStreamDestroy``), and here it does.
        """
        self.require(stream)
        self.captures.abandon(stream)
        if self._flavour is Flavour.HIP and stream.queue:
            self._ledger.see(StreamSynchronized(stream.name))
            self._force(self._mark(stream))
        stream.alive = False
        self._stream_handles.give_back(stream.handle)
        self._ledger.see(HandleDestroyed(HandleKind.STREAM, stream.name))

    def create_event(self, name: str, device: int) -> Event:
        """Create an event on ``device``."""
        event = Event(name, self._event_handles.take(), device)
        self._ledger.see(HandleCreated(HandleKind.EVENT, name))
        return event

    def create_internal_event(self, device: int) -> Event:
        """Create an event that a library uses for itself."""
        self._internal += 1
        return self.create_event(f"internal:{self._internal}", device)

    def destroy_event(self, event: Event) -> None:
        """Destroy an event; waits that were enqueued for it still hold."""
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        event.alive = False
        self._event_handles.give_back(event.handle)
        self._ledger.see(HandleDestroyed(HandleKind.EVENT, event.name))

    @staticmethod
    def require(stream: Stream) -> None:
        """Refuse a stream that was destroyed."""
        if not stream.alive:
            raise CallRejected(INVALID_HANDLE)

    # -- work ------------------------------------------------------------------------------------------------------

    def enqueue(self, stream: Stream) -> None:
        """Put work on ``stream``."""
        self.require(stream)
        self.order_with_default(stream)
        self._push(stream, Work())

    def runs_work(self, stream: Stream) -> bool:
        """Whether work enqueued on ``stream`` now would be accepted and run, rather than refused or captured."""
        blocked = stream.is_default and self.captures.block_default_of(stream.device)
        return stream.alive and stream.capture is None and not blocked

    def order_with_default(self, stream: Stream) -> None:
        """Apply the implicit order of the legacy default stream before an action on ``stream``.

        "The legacy stream first waits on all blocking streams, the action is queued in the legacy stream, and then
        all blocking streams wait on the legacy stream" (CUDA Runtime API, "Stream synchronization behavior"; HIP's
        null stream is the same). While a blocking stream is captured "any attempted use of the legacy stream is
        invalid" (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
        """
        if stream.nonblocking or stream.capture is not None:
            return
        if stream.is_default:
            self.captures.forbid_default_of(stream.device)
            others = [busy for busy in self.encompassed_by(stream) if busy is not stream]
        else:
            default = self.defaults[stream.device]
            others = [default] if default in self._busy else []
        for other in others:
            self._ledger.step()
            self._wait_for(stream, self._mark(other))

    def encompassed_by(self, default: Stream) -> list[Stream]:
        """Return the busy streams that the legacy default stream of their device stands for, itself included."""
        return [busy for busy in self._busy if busy.device == default.device and not busy.nonblocking]

    def _mark(self, stream: Stream) -> Record:
        record = Record(stream)
        self._push(stream, record)
        return record

    def _wait_for(self, stream: Stream, record: Record) -> None:
        if not record.complete:
            record.waiters.append(stream)
            self._push(stream, Wait(record))

    # -- events ----------------------------------------------------------------------------------------------------

    def record(self, event: Event, stream: Stream) -> None:
        """Record ``event`` behind the work of ``stream``.

        Both "must be on the same CUDA context", here: device (``cudaEventRecord``).
        """
        self.require(stream)
        if not event.alive or event.device != stream.device:
            raise CallRejected(INVALID_HANDLE)
        if stream.capture is None:
            self.order_with_default(stream)
            event.record = self._mark(stream)
        else:
            event.captured = stream.capture.progress_of(stream)
        event.last_stream = stream
        event.capture = stream.capture
        self._ledger.see(EventRecorded(event.name, stream.name))

    def wait(self, stream: Stream, event: Event) -> None:
        """Make later work of ``stream`` wait for the event's last recording.

        One never recorded holds nothing: the call "acts as if the record has already completed, and so is a
        functional no-op" (``cuStreamWaitEvent``). Otherwise it is an action in the order of the default stream.
        """
        self.require(stream)
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.wait(stream, event)
        if stream.is_default:
            self.captures.forbid_default_of(stream.device)
        if event.last_stream is not None:
            self.order_with_default(stream)
        self._see_wait(event, stream.name)
        if event.capture is None and event.record is not None:
            self._wait_for(stream, event.record)

    def is_complete(self, event: Event) -> bool:
        """Ask whether the event's last recording is complete; one never recorded is (``cudaEventQuery``).

        Illegal while a capture is not relaxed: a query from outside breaks it (upstream: pytorch/pytorch#146924).
        """
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.forbid_captured(event)
        self.captures.forbid_unsafe_call()
        if event.record is not None and not event.record.complete:
            return False
        self._ledger.see(EventCompleted(event.name))
        return True

    def synchronize_event(self, event: Event) -> None:
        """Block until the event's last recording is complete."""
        if not event.alive:
            raise CallRejected(INVALID_HANDLE)
        self.captures.forbid_captured(event)
        self.captures.forbid_unsafe_call()
        self._see_wait(event, None)
        if event.record is not None:
            self._force(event.record)

    def _see_wait(self, event: Event, waiter: str | None) -> None:
        alive = event.last_stream is None or event.last_stream.alive
        self._ledger.see(EventWaited(event.name, waiter, alive))

    # -- synchronisation -------------------------------------------------------------------------------------------

    def is_idle(self, stream: Stream) -> bool:
        """Ask whether everything enqueued on ``stream`` is complete.

        The legacy default stream "at all times encompasses" the blocking streams: "querying it or synchronizing it
        would query or synchronize" them (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
        """
        self.forbid_questions(stream)
        return not (self.encompassed_by(stream) if stream.is_default else stream.queue)

    def synchronize_stream(self, stream: Stream) -> None:
        """Block until ``stream`` is idle; the null stream waits "for other streams on the same device" as well.

        A blocking stream's own operations are waited for and no others (``hipStreamSynchronize``,
        ``cudaStreamSynchronize``): later work of the default stream is none of them.
        """
        self.require(stream)
        self.captures.forbid_on(stream)
        if stream.is_default:
            self.order_with_default(stream)
        self._ledger.see(StreamSynchronized(stream.name))
        if stream.queue:
            self._force(self._mark(stream))

    def forbid_questions(self, stream: Stream) -> None:
        """Refuse to ask or wait for a stream that is captured, or on CUDA while another one is and not relaxed.

        CUDA 13's driver does so. A copy that waits by itself is no question.
        """
        self.require(stream)
        self.captures.forbid_on(stream)
        if stream.is_default:
            self.captures.forbid_default_of(stream.device)
        if self._flavour is Flavour.CUDA and stream.capture is None:
            self.captures.forbid_unsafe_call()

    def synchronize_device(self, device: int) -> None:
        """Block until every stream of ``device`` is idle.

        It is invalid for "a broader handle which encompasses an active stream capture" (CUDA C++ Programming Guide),
        in every mode, and it breaks the captures of that device and no other (ROCm/rocm-systems#8338, run on CUDA).
        """
        captures = self.captures.on_device(device)
        if captures:
            for capture in captures:
                capture.invalid = True
            raise CallRejected(CAPTURE_UNSUPPORTED)
        self.finish_device(device)

    def finish_device(self, device: int) -> None:
        """Block as a free does that waits for the device, which a relaxed capture does not forbid."""
        self._ledger.see(DeviceSynchronized(device))
        for stream in [s for s in self._busy if s.device == device]:
            if stream.queue:
                self._force(self._mark(stream))

    def stall(self, stream: Stream) -> None:
        """Hold ``stream``: what is enqueued from now on stays pending."""
        self.require(stream)
        self.order_with_default(stream)
        gate = Gate()
        stream.gates[gate] = None
        self._push(stream, gate)

    def release(self, stream: Stream) -> None:
        """End every stall of ``stream``."""
        for gate in stream.gates:
            gate.open = True
        stream.gates.clear()
        self._advance(stream)

    def _force(self, record: Record) -> None:
        """Open what holds ``record`` back, the longest legal delay being over, until it completes."""
        needed = [record]
        while needed:
            self._ledger.step()
            stream = needed[-1].stream
            if needed[-1].complete:
                needed.pop()
                continue
            match stream.queue[0]:
                case Gate() as gate:
                    gate.open = True
                    stream.gates.pop(gate, None)
                    self._advance(stream)
                case Wait(awaited) if not awaited.complete:
                    needed.append(awaited)
                case _:
                    self._advance(stream)

    def _push(self, stream: Stream, item: Item) -> None:
        stream.queue.append(item)
        if len(stream.queue) == 1:
            self._busy[stream] = None
            self._advance(stream)

    def _advance(self, stream: Stream) -> None:
        """Run what can run on ``stream``, and on the streams that this wakes."""
        ready = [stream]
        while ready:
            current = ready.pop()
            while current.queue:
                self._ledger.step()
                match current.queue[0]:
                    case Gate(False):
                        break
                    case Wait(awaited) if not awaited.complete:
                        break
                    case Record() as record:
                        current.queue.popleft()
                        record.complete = True
                        ready.extend(record.waiters)
                        record.waiters.clear()
                    case _:
                        current.queue.popleft()
            if not current.queue:
                self._busy.pop(current, None)


class _Handles:
    """Small integers, the one given back last handed out first."""

    def __init__(self) -> None:
        self._next = 1
        self._free: list[int] = []

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def give_back(self, handle: int) -> None:
        self._free.append(handle)
