"""The simulated CUDA/HIP runtime from Python's side: its build, its libraries, a run's folder and its logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.simulator.runtime.build import build_all as build_all
    from quiesce.simulator.runtime.build import build_library as build_library
    from quiesce.simulator.runtime.build import find_compiler as find_compiler
    from quiesce.simulator.runtime.build import is_library_built as is_library_built
    from quiesce.simulator.runtime.build import require_platform as require_platform
    from quiesce.simulator.runtime.cache import alone as alone
    from quiesce.simulator.runtime.cache import cache_folder as cache_folder
    from quiesce.simulator.runtime.cache import describe_replacement as describe_replacement
    from quiesce.simulator.runtime.clients import package_folders as package_folders
    from quiesce.simulator.runtime.device_code import NO_CODE as NO_CODE
    from quiesce.simulator.runtime.device_code import DeviceCode as DeviceCode
    from quiesce.simulator.runtime.device_code import ProgramSources as ProgramSources
    from quiesce.simulator.runtime.device_code import VariableLog as VariableLog
    from quiesce.simulator.runtime.device_code import keep_sources as keep_sources
    from quiesce.simulator.runtime.failed_calls import FailureLog as FailureLog
    from quiesce.simulator.runtime.failed_calls import LoggedFailure as LoggedFailure
    from quiesce.simulator.runtime.failed_calls import Refusal as Refusal
    from quiesce.simulator.runtime.failed_calls import RefusalKind as RefusalKind
    from quiesce.simulator.runtime.failed_calls import error_name as error_name
    from quiesce.simulator.runtime.failed_calls import read_failures as read_failures
    from quiesce.simulator.runtime.failed_calls import read_refusals as read_refusals
    from quiesce.simulator.runtime.flavours import COMPILER_PACKAGES as COMPILER_PACKAGES
    from quiesce.simulator.runtime.flavours import KNOWN as KNOWN
    from quiesce.simulator.runtime.flavours import Simulated as Simulated
    from quiesce.simulator.runtime.flavours import parse_flavour as parse_flavour
    from quiesce.simulator.runtime.kernel_compiler import INSTALL_KERNELS as INSTALL_KERNELS
    from quiesce.simulator.runtime.kernel_compiler import kernels_can_run as kernels_can_run
    from quiesce.simulator.runtime.kernel_logs import OPERAND as OPERAND
    from quiesce.simulator.runtime.kernel_logs import LoggedAccess as LoggedAccess
    from quiesce.simulator.runtime.kernel_logs import Piece as Piece
    from quiesce.simulator.runtime.kernel_logs import Place as Place
    from quiesce.simulator.runtime.kernel_logs import Touch as Touch
    from quiesce.simulator.runtime.kernel_logs import Touched as Touched
    from quiesce.simulator.runtime.kernel_logs import TouchedLog as TouchedLog
    from quiesce.simulator.runtime.kernel_logs import Uncomputed as Uncomputed
    from quiesce.simulator.runtime.kernel_logs import read_accesses as read_accesses
    from quiesce.simulator.runtime.kernel_logs import read_uncomputed as read_uncomputed
    from quiesce.simulator.runtime.kernel_logs import touched_beside as touched_beside
    from quiesce.simulator.runtime.launch import RECYCLING as RECYCLING
    from quiesce.simulator.runtime.launch import SCHEDULES as SCHEDULES
    from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE as SETTINGS_VARIABLE
    from quiesce.simulator.runtime.launch import Ended as Ended
    from quiesce.simulator.runtime.launch import MachineSettings as MachineSettings
    from quiesce.simulator.runtime.launch import Prepared as Prepared
    from quiesce.simulator.runtime.launch import check_settings as check_settings
    from quiesce.simulator.runtime.launch import device_options as device_options
    from quiesce.simulator.runtime.launch import ended_before as ended_before
    from quiesce.simulator.runtime.launch import prepare as prepare
    from quiesce.simulator.runtime.launch import process_of as process_of
    from quiesce.simulator.runtime.launch import run_program as run_program
    from quiesce.simulator.runtime.ledger import CALL_KINDS as CALL_KINDS
    from quiesce.simulator.runtime.ledger import OF_KERNELS as OF_KERNELS
    from quiesce.simulator.runtime.ledger import OF_LIBRARIES as OF_LIBRARIES
    from quiesce.simulator.runtime.ledger import Flag as Flag
    from quiesce.simulator.runtime.ledger import Full as Full
    from quiesce.simulator.runtime.ledger import Ledger as Ledger
    from quiesce.simulator.runtime.ledger import LiveThing as LiveThing
    from quiesce.simulator.runtime.ledger import Reach as Reach
    from quiesce.simulator.runtime.ledger import Record as Record
    from quiesce.simulator.runtime.ledger import Seen as Seen
    from quiesce.simulator.runtime.ledger import Thing as Thing
    from quiesce.simulator.runtime.ledger import open_ledger as open_ledger
    from quiesce.simulator.runtime.ledger import was_begun as was_begun
    from quiesce.simulator.runtime.library_server import INSTALL_LIBRARIES as INSTALL_LIBRARIES
    from quiesce.simulator.runtime.library_server import computed_functions as computed_functions
    from quiesce.simulator.runtime.library_server import libraries_can_run as libraries_can_run
    from quiesce.simulator.runtime.loads import Load as Load
    from quiesce.simulator.runtime.loads import Loaded as Loaded
    from quiesce.simulator.runtime.loads import read_loads as read_loads
    from quiesce.simulator.runtime.machine import Machine as Machine
    from quiesce.simulator.runtime.machine import require_addresses as require_addresses
    from quiesce.simulator.runtime.observed import observations_of as observations_of
    from quiesce.simulator.runtime.on_demand import serve_by_copies as serve_by_copies
    from quiesce.simulator.runtime.own_machine import OwnMachine as OwnMachine
    from quiesce.simulator.runtime.own_machine import own_ledger as own_ledger
    from quiesce.simulator.runtime.packages import POOLS_OFF as POOLS_OFF
    from quiesce.simulator.runtime.packages import Package as Package
    from quiesce.simulator.runtime.packages import owner_of as owner_of
    from quiesce.simulator.runtime.packages import without_pools as without_pools
    from quiesce.simulator.runtime.processes import Survivor as Survivor
    from quiesce.simulator.runtime.processes import members as members
    from quiesce.simulator.runtime.run_folder import OWNER as OWNER
    from quiesce.simulator.runtime.run_folder import DamagedFile as DamagedFile
    from quiesce.simulator.runtime.run_folder import LeftFolder as LeftFolder
    from quiesce.simulator.runtime.run_folder import is_owned as is_owned
    from quiesce.simulator.runtime.run_folder import is_run_folder as is_run_folder
    from quiesce.simulator.runtime.run_folder import left_folders as left_folders
    from quiesce.simulator.runtime.run_folder import read_left as read_left
    from quiesce.simulator.runtime.run_folder import refuse_open_to_others as refuse_open_to_others
    from quiesce.simulator.runtime.run_folder import refuse_other_kinds as refuse_other_kinds
    from quiesce.simulator.runtime.stacks import INTERPRETER as INTERPRETER
    from quiesce.simulator.runtime.stacks import CallStack as CallStack
    from quiesce.simulator.runtime.stacks import CallStacks as CallStacks
    from quiesce.simulator.runtime.stacks import open_stacks as open_stacks
    from quiesce.simulator.runtime.vendor_libraries import releases_of_functions as releases_of_functions
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "build": "build_all build_library find_compiler is_library_built require_platform",
            "cache": "alone cache_folder describe_replacement",
            "clients": "package_folders",
            "device_code": "DeviceCode NO_CODE ProgramSources VariableLog keep_sources",
            "failed_calls": "FailureLog LoggedFailure Refusal RefusalKind error_name read_failures read_refusals",
            "flavours": "COMPILER_PACKAGES KNOWN Simulated parse_flavour",
            "kernel_compiler": "INSTALL_KERNELS kernels_can_run",
            "library_server": "INSTALL_LIBRARIES computed_functions libraries_can_run",
            "kernel_logs": (
                "OPERAND LoggedAccess Piece Place Touch Touched TouchedLog Uncomputed read_accesses "
                "read_uncomputed touched_beside"
            ),
            "launch": (
                "Ended MachineSettings Prepared RECYCLING SCHEDULES SETTINGS_VARIABLE check_settings "
                "device_options ended_before prepare process_of run_program"
            ),
            "ledger": (
                "CALL_KINDS Flag Full Ledger LiveThing OF_KERNELS OF_LIBRARIES Reach Record Seen Thing open_ledger "
                "was_begun"
            ),
            "loads": "Load Loaded read_loads",
            "machine": "Machine require_addresses",
            "observed": "observations_of",
            "on_demand": "serve_by_copies",
            "own_machine": "OwnMachine own_ledger",
            "packages": "POOLS_OFF Package owner_of without_pools",
            "processes": "Survivor members",
            "run_folder": (
                "DamagedFile LeftFolder OWNER is_owned is_run_folder left_folders read_left "
                "refuse_open_to_others refuse_other_kinds"
            ),
            "stacks": "CallStack CallStacks INTERPRETER open_stacks",
            "vendor_libraries": "releases_of_functions",
        },
    )
