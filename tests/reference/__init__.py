"""Tests of the reference, part by part, and of the whole machine on random sequences."""
