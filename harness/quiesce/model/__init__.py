"""The values that every other package passes on: operations, outcomes, gauges, findings, results, errors."""
