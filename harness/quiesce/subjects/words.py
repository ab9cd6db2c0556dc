"""Words in braces that commands and environments of a manifest may hold: ``{build}/driver``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from quiesce.errors import ConfigurationError

Places = Mapping[str, str]
"""What stands for each word, such as ``source`` or ``version``."""

_BRACES: Final = re.compile(r"\{([a-z]+)\}")


def replace_words(texts: Sequence[str], places: Places) -> list[str]:
    """Return the texts with what their words stand for. Raises :class:`ConfigurationError` for an unknown one."""
    return [_BRACES.sub(lambda match: _place(match[1], places), text) for text in texts]


def replace_in_values(named: Mapping[str, str], places: Places) -> dict[str, str]:
    """Return a table with what the words of its values stand for; raises as :func:`replace_words` does."""
    return dict(zip(named, replace_words(list(named.values()), places), strict=True))


def _place(word: str, places: Places) -> str:
    if word not in places:
        known = ", ".join(f"{{{name}}}" for name in sorted(places))
        raise ConfigurationError(f"nothing stands for {{{word}}} here; write one of {known}")
    return places[word]
