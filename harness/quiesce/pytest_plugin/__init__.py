"""The pytest surface: options, case items, fixtures, hooks and the record of a run. Nobody imports it but pytest."""
