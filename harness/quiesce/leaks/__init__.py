"""Leak checks of code that is run several times: meters of a process, rounds, and the judgement of what grew.

Nothing here knows pytest. The door is ``check``: ``LeakChecker(owners).check(run_round, plan)`` returns a judgement.
Bottom to top: ``quantities`` has a row for each gauge; ``meters`` count; ``readings`` say what grows; ``stages`` run
the rounds; ``explaining`` finds the line and what keeps the leak. ``plan`` is what the user asked for, and ``known``
what a project accepts for now.
"""
