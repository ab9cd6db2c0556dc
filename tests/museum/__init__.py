"""Tests of the museum: each fault is one part replaced, and red on its own case."""
