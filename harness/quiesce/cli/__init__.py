"""The command line: ``quiesce COMMAND``, one file for each command."""
