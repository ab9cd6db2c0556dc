"""Subjects: real upstream releases under test, with what each is expected to show.

Bottom-up: ``manifest`` holds values, ``tables`` and ``parser`` read them, ``catalogue`` finds them; ``storage`` keeps
what was made, ``tools``, ``packages`` and ``build`` make it; ``driver`` and ``programs`` run it; ``row`` runs one
release in one variant, ``expectations`` says whether that is as expected, ``matrix`` writes it down.
"""
