"""Find memory bugs, with or without a GPU: the door of the package. The names below are public.

``docs/reference/public_names.md`` says what each is for, and how long it stays. A name is loaded when it is first used
(PEP 562), because pytest imports quiesce in every project where it is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from quiesce.allocators.cases.case import Case as Case
    from quiesce.allocators.cases.parser import parse_case as parse_case
    from quiesce.allocators.cases.writer import write_case as write_case
    from quiesce.allocators.conformance import Conformance as Conformance
    from quiesce.allocators.conformance import run_conformance as run_conformance
    from quiesce.allocators.execution import run_case as run_case
    from quiesce.allocators.generation.campaign import run_campaign as run_campaign
    from quiesce.allocators.generation.corpus import with_kept_sequences as with_kept_sequences
    from quiesce.allocators.generation.saving import SequenceFailed as SequenceFailed
    from quiesce.allocators.generation.saving import check_sequence as check_sequence
    from quiesce.allocators.generation.sequence import GeneratedSequence as GeneratedSequence
    from quiesce.allocators.generation.sequence import sequence_of as sequence_of
    from quiesce.allocators.generation.strategies import allocation_sequences as allocation_sequences
    from quiesce.backends.command import CommandBackend as CommandBackend
    from quiesce.backends.registry import load_backend as load_backend
    from quiesce.backends.serving import serve as serve
    from quiesce.backends.serving import serve_again as serve_again
    from quiesce.model import operations as operations
    from quiesce.model.backend import Backend as Backend
    from quiesce.model.backend import BackendFault as BackendFault
    from quiesce.model.backend import Capability as Capability
    from quiesce.model.backend import Closing as Closing
    from quiesce.model.backend import Context as Context
    from quiesce.model.backend import Description as Description
    from quiesce.model.backend import DeviceProfile as DeviceProfile
    from quiesce.model.backend import Initialization as Initialization
    from quiesce.model.backend import Promise as Promise
    from quiesce.model.backend import Reply as Reply
    from quiesce.model.errors import BackendUnavailable as BackendUnavailable
    from quiesce.model.errors import CaseError as CaseError
    from quiesce.model.errors import ConfigurationError as ConfigurationError
    from quiesce.model.errors import QuiesceError as QuiesceError
    from quiesce.model.findings import Finding as Finding
    from quiesce.model.findings import Grade as Grade
    from quiesce.model.gauges import Gauge as Gauge
    from quiesce.model.gauges import Readings as Readings
    from quiesce.model.gauges import Source as Source
    from quiesce.model.observations import DEFAULT_STREAM as DEFAULT_STREAM
    from quiesce.model.observations import BackingAllocated as BackingAllocated
    from quiesce.model.observations import BackingFreed as BackingFreed
    from quiesce.model.observations import BackingRefused as BackingRefused
    from quiesce.model.observations import CopyEnqueued as CopyEnqueued
    from quiesce.model.observations import DeviceSynchronized as DeviceSynchronized
    from quiesce.model.observations import EventCompleted as EventCompleted
    from quiesce.model.observations import EventRecorded as EventRecorded
    from quiesce.model.observations import EventWaited as EventWaited
    from quiesce.model.observations import HandleCreated as HandleCreated
    from quiesce.model.observations import HandleDestroyed as HandleDestroyed
    from quiesce.model.observations import HandleKind as HandleKind
    from quiesce.model.observations import Observation as Observation
    from quiesce.model.observations import StreamSynchronized as StreamSynchronized
    from quiesce.model.operations import Allocate as Allocate
    from quiesce.model.operations import Backward as Backward
    from quiesce.model.operations import BeginCapture as BeginCapture
    from quiesce.model.operations import CaptureMode as CaptureMode
    from quiesce.model.operations import Collect as Collect
    from quiesce.model.operations import Copy as Copy
    from quiesce.model.operations import CreateEvent as CreateEvent
    from quiesce.model.operations import CreateInstance as CreateInstance
    from quiesce.model.operations import CreatePolicy as CreatePolicy
    from quiesce.model.operations import CreatePool as CreatePool
    from quiesce.model.operations import CreateStream as CreateStream
    from quiesce.model.operations import DestroyEvent as DestroyEvent
    from quiesce.model.operations import DestroyGraph as DestroyGraph
    from quiesce.model.operations import DestroyInstance as DestroyInstance
    from quiesce.model.operations import DestroyPool as DestroyPool
    from quiesce.model.operations import DestroyStream as DestroyStream
    from quiesce.model.operations import Drop as Drop
    from quiesce.model.operations import EndCapture as EndCapture
    from quiesce.model.operations import FailurePoint as FailurePoint
    from quiesce.model.operations import Fill as Fill
    from quiesce.model.operations import Finalize as Finalize
    from quiesce.model.operations import Free as Free
    from quiesce.model.operations import Hold as Hold
    from quiesce.model.operations import Initialize as Initialize
    from quiesce.model.operations import InjectedError as InjectedError
    from quiesce.model.operations import InjectFailure as InjectFailure
    from quiesce.model.operations import Launch as Launch
    from quiesce.model.operations import LaunchGraph as LaunchGraph
    from quiesce.model.operations import Mark as Mark
    from quiesce.model.operations import MemoryKind as MemoryKind
    from quiesce.model.operations import Node as Node
    from quiesce.model.operations import Operation as Operation
    from quiesce.model.operations import Partition as Partition
    from quiesce.model.operations import QueryEvent as QueryEvent
    from quiesce.model.operations import QueryStream as QueryStream
    from quiesce.model.operations import RecordEvent as RecordEvent
    from quiesce.model.operations import Release as Release
    from quiesce.model.operations import SelectDevice as SelectDevice
    from quiesce.model.operations import Slot as Slot
    from quiesce.model.operations import Stage as Stage
    from quiesce.model.operations import Stall as Stall
    from quiesce.model.operations import SynchronizeDevice as SynchronizeDevice
    from quiesce.model.operations import SynchronizeEvent as SynchronizeEvent
    from quiesce.model.operations import SynchronizeStream as SynchronizeStream
    from quiesce.model.operations import Trim as Trim
    from quiesce.model.operations import WaitEvent as WaitEvent
    from quiesce.model.outcomes import ALREADY_INITIALIZED as ALREADY_INITIALIZED
    from quiesce.model.outcomes import BACKING_ERROR as BACKING_ERROR
    from quiesce.model.outcomes import CAPTURE_IMPLICIT as CAPTURE_IMPLICIT
    from quiesce.model.outcomes import CAPTURE_INVALIDATED as CAPTURE_INVALIDATED
    from quiesce.model.outcomes import CAPTURE_ISOLATION as CAPTURE_ISOLATION
    from quiesce.model.outcomes import CAPTURE_MERGE as CAPTURE_MERGE
    from quiesce.model.outcomes import CAPTURE_UNJOINED as CAPTURE_UNJOINED
    from quiesce.model.outcomes import CAPTURE_UNSUPPORTED as CAPTURE_UNSUPPORTED
    from quiesce.model.outcomes import CAPTURED_EVENT as CAPTURED_EVENT
    from quiesce.model.outcomes import ERROR_CODES as ERROR_CODES
    from quiesce.model.outcomes import ILLEGAL_STATE as ILLEGAL_STATE
    from quiesce.model.outcomes import INVALID_HANDLE as INVALID_HANDLE
    from quiesce.model.outcomes import INVALID_VALUE as INVALID_VALUE
    from quiesce.model.outcomes import NOT_INITIALIZED as NOT_INITIALIZED
    from quiesce.model.outcomes import NOT_READY as NOT_READY
    from quiesce.model.outcomes import Allocated as Allocated
    from quiesce.model.outcomes import Done as Done
    from quiesce.model.outcomes import Flavour as Flavour
    from quiesce.model.outcomes import Outcome as Outcome
    from quiesce.model.outcomes import OutOfMemory as OutOfMemory
    from quiesce.model.outcomes import Rejected as Rejected
    from quiesce.model.outcomes import Unsupported as Unsupported
    from quiesce.model.results import Report as Report
    from quiesce.model.results import Result as Result
    from quiesce.model.results import Verdict as Verdict
    from quiesce.simulator.marking import mark as mark
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "model": "operations",  # the module, for adapters that name most of its classes
            "model.backend": (
                "Backend Context Description Capability Promise Initialization DeviceProfile Reply Closing BackendFault"
            ),
            "model.operations": (
                "Operation Slot MemoryKind CaptureMode FailurePoint InjectedError Allocate Free Trim Copy Stage Fill "
                "Launch CreatePool DestroyPool CreateStream DestroyStream SynchronizeStream QueryStream CreateEvent "
                "DestroyEvent RecordEvent WaitEvent QueryEvent SynchronizeEvent SynchronizeDevice Stall Release "
                "BeginCapture EndCapture LaunchGraph DestroyGraph SelectDevice Initialize Finalize CreateInstance "
                "DestroyInstance Partition CreatePolicy Node Hold Drop Backward Collect InjectFailure Mark"
            ),
            "model.outcomes": (
                "Allocated Done OutOfMemory Rejected Unsupported Outcome INVALID_VALUE NOT_INITIALIZED "
                "ALREADY_INITIALIZED INVALID_HANDLE ILLEGAL_STATE NOT_READY CAPTURE_UNSUPPORTED CAPTURE_INVALIDATED "
                "CAPTURE_MERGE CAPTURE_UNJOINED CAPTURE_ISOLATION CAPTURE_IMPLICIT CAPTURED_EVENT BACKING_ERROR "
                "ERROR_CODES Flavour"
            ),
            "model.observations": (
                "DEFAULT_STREAM HandleKind BackingAllocated BackingFreed BackingRefused CopyEnqueued EventRecorded "
                "EventWaited EventCompleted StreamSynchronized DeviceSynchronized HandleCreated HandleDestroyed "
                "Observation"
            ),
            "model.gauges": "Gauge Source Readings",
            "model.findings": "Finding Grade",
            "model.results": "Result Report Verdict",
            "model.errors": "QuiesceError CaseError ConfigurationError BackendUnavailable",
            "allocators.cases.case": "Case",
            "allocators.cases.parser": "parse_case",
            "allocators.cases.writer": "write_case",
            "allocators.execution": "run_case",
            "allocators.conformance": "Conformance run_conformance",
            "allocators.generation.campaign": "run_campaign",
            "allocators.generation.sequence": "GeneratedSequence sequence_of",
            "allocators.generation.strategies": "allocation_sequences",
            "allocators.generation.saving": "SequenceFailed check_sequence",
            "allocators.generation.corpus": "with_kept_sequences",
            "backends.command": "CommandBackend",
            "backends.registry": "load_backend",
            "backends.serving": "serve serve_again",
            "simulator.marking": "mark",
        },
    )
