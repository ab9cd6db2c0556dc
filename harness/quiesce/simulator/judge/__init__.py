"""Judges the ledgers of programs, and the reports of native leak checkers."""
