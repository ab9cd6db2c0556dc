"""Subjects: real upstream releases under test, with what each is expected to show.

Bottom-up: ``manifest`` holds values, ``parser`` reads them, ``catalogue`` finds them; ``storage`` keeps what was made,
``commands`` and ``build`` make it; ``driver`` and ``programs`` run it; ``row`` runs one release in one variant and
compares it with what is expected, ``schedule`` runs several rows at once, ``matrix`` writes them down.
"""
