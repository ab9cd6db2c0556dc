"""Leak checks of code that is run several times: meters of a process, rounds, and the judgement of what grew.

Nothing here knows pytest. Bottom to top: ``quantities`` names what is counted; ``meters`` read it; ``readings``
say what grows; ``stages`` run the rounds; ``explaining`` finds the line and what keeps the leak; ``check`` brings it
together. ``plan`` is what the user asked for, and ``known`` what a project accepts for now.
"""
