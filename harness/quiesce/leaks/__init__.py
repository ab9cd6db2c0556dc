"""Leak checks of code that is run several times: meters of a process, rounds, and the judgement of what grew.

Nothing here knows pytest. Bottom to top: ``quantities`` names what is counted; the meters read it (``memory``,
``descriptors``, ``threads``, ``contexts``, ``cupy_pools``, ``ledger_gauges``, ``own``); ``growth`` decides on readings;
``check`` runs the rounds and brings it together; ``causes`` says what leaks, once; ``plan`` is what the user asked for.
"""
