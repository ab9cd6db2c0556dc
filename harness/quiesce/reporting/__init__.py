"""Reporting: writers that take results and write them. They run nothing, judge nothing and import no pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.reporting.folder import FILE_NAMES as FILE_NAMES
    from quiesce.reporting.folder import ReportFolder as ReportFolder
    from quiesce.reporting.folder import clear_folder as clear_folder
    from quiesce.reporting.folder import read_folder as read_folder
    from quiesce.reporting.folder import replace_reports as replace_reports
    from quiesce.reporting.folder import write_reports as write_reports
    from quiesce.reporting.github import SUMMARY_BYTES_MAX as SUMMARY_BYTES_MAX
    from quiesce.reporting.github import annotation_lines as annotation_lines
    from quiesce.reporting.github import checkout as checkout
    from quiesce.reporting.github import finding_lines as finding_lines
    from quiesce.reporting.github import summary as summary
    from quiesce.reporting.glossary import RULES_BY_SUBJECT as RULES_BY_SUBJECT
    from quiesce.reporting.html import why_unavailable as why_unavailable
    from quiesce.reporting.json_values import RecordError as RecordError
    from quiesce.reporting.json_values import record_of as record_of
    from quiesce.reporting.json_values import value_from as value_from
    from quiesce.reporting.leak_checks import COMES_TO_A_VERDICT as COMES_TO_A_VERDICT
    from quiesce.reporting.leak_checks import KEEPS_TO_ITS_PEAK as KEEPS_TO_ITS_PEAK
    from quiesce.reporting.leak_checks import LEAVES as LEAVES
    from quiesce.reporting.leak_checks import MARKER_SAYS as MARKER_SAYS
    from quiesce.reporting.leak_checks import checks_in_short as checks_in_short
    from quiesce.reporting.leak_checks import leak_check_lines as leak_check_lines
    from quiesce.reporting.leak_checks import leak_in_short as leak_in_short
    from quiesce.reporting.leak_checks import shortened as shortened
    from quiesce.reporting.page.summary import named_backends as named_backends
    from quiesce.reporting.pytest_handover import HANDING_VARIABLE as HANDING_VARIABLE
    from quiesce.reporting.pytest_handover import Handing as Handing
    from quiesce.reporting.pytest_handover import Session as Session
    from quiesce.reporting.pytest_handover import read_sessions as read_sessions
    from quiesce.reporting.record import result_from_record as result_from_record
    from quiesce.reporting.record import result_record as result_record
    from quiesce.reporting.result_lists import ENDED as ENDED
    from quiesce.reporting.result_lists import NAMED as NAMED
    from quiesce.reporting.result_lists import PLANNED as PLANNED
    from quiesce.reporting.result_lists import SKIPPED as SKIPPED
    from quiesce.reporting.result_lists import UNREADABLE as UNREADABLE
    from quiesce.reporting.result_lists import count_by_backend as count_by_backend
    from quiesce.reporting.result_lists import executed_count as executed_count
    from quiesce.reporting.result_lists import last_attempts as last_attempts
    from quiesce.reporting.result_lists import merged_report as merged_report
    from quiesce.reporting.result_lists import ordered as ordered
    from quiesce.reporting.terminal import Chosen as Chosen
    from quiesce.reporting.terminal import align as align
    from quiesce.reporting.terminal import conclusions as conclusions
    from quiesce.reporting.terminal import empty_warnings as empty_warnings
    from quiesce.reporting.terminal import is_in_protocol as is_in_protocol
    from quiesce.reporting.terminal import left_out_lines as left_out_lines
    from quiesce.reporting.terminal import not_run_lines as not_run_lines
    from quiesce.reporting.terminal import opening_lines as opening_lines
    from quiesce.reporting.terminal import render_summary as render_summary
    from quiesce.reporting.terminal import summary_table as summary_table
    from quiesce.reporting.terminal import told_once as told_once
    from quiesce.reporting.text import COLOURED as COLOURED
    from quiesce.reporting.text import PLAIN as PLAIN
    from quiesce.reporting.text import Palette as Palette
    from quiesce.reporting.text import clean as clean
    from quiesce.reporting.text import clean_line as clean_line
    from quiesce.reporting.text import failure_text as failure_text
    from quiesce.reporting.text import finding_text as finding_text
    from quiesce.reporting.text import place as place
    from quiesce.reporting.text import rate as rate
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "folder": "FILE_NAMES ReportFolder clear_folder read_folder replace_reports write_reports",
            "github": "SUMMARY_BYTES_MAX annotation_lines checkout finding_lines summary",
            "glossary": "RULES_BY_SUBJECT",
            "html": "why_unavailable",
            "json_values": "RecordError record_of value_from",
            "leak_checks": (
                "COMES_TO_A_VERDICT KEEPS_TO_ITS_PEAK LEAVES MARKER_SAYS checks_in_short leak_check_lines "
                "leak_in_short shortened"
            ),
            "page.summary": "named_backends",
            "pytest_handover": "HANDING_VARIABLE Handing Session read_sessions",
            "record": "result_from_record result_record",
            "result_lists": (
                "ENDED NAMED PLANNED SKIPPED UNREADABLE count_by_backend executed_count last_attempts "
                "merged_report ordered"
            ),
            "terminal": (
                "Chosen align conclusions empty_warnings is_in_protocol left_out_lines not_run_lines "
                "opening_lines render_summary summary_table told_once"
            ),
            "text": "COLOURED PLAIN Palette clean clean_line failure_text finding_text place rate",
        },
    )
