"""Recordings: what a backend on a real device answered to named sequences, and what holds the oracle to it."""
