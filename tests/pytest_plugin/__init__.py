"""Acceptance tests of the plugin: each runs pytest on a project of its own."""
