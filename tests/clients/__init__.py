"""Stock clients of the simulated runtime: rows of data, an environment for each, and two programs that run in it."""
