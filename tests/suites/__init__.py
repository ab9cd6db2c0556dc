"""Peers' own test suites with kernels that compute: each release's tests, in an environment of its own."""
