"""What a machine lacks is said together with what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.subjects.build import require, states
from quiesce.subjects.manifest import Needs


@pytest.mark.parametrize(
    ("needs", "complaint"),
    [
        (Needs(programs={"no-such-program": "install it"}), "no program 'no-such-program'; install it"),
        (Needs(files={"/no/such/file": "install it"}), "no '/no/such/file'; install it"),
        (Needs(variables={"NO_SUCH_ROOT": "set it"}), "'NO_SUCH_ROOT' is not set; set it"),
        (Needs(python="<3.0"), "it needs Python <3.0, and this is"),
    ],
)
def test_what_is_missing_is_a_reason_with_a_remedy(needs: Needs, complaint: str) -> None:
    with pytest.raises(BackendUnavailable, match="host/example") as raised:
        require("host/example", needs)
    assert complaint in str(raised.value)


def test_what_is_there_is_told_apart_by_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("1", encoding="utf-8")
    monkeypatch.setenv("SOME_ROOT", "here")
    needs = Needs({"python3": ""}, {str(file): ""}, {"SOME_ROOT": ""}, ">=3.11")
    require("host/example", needs)
    before = list(states(needs))
    assert "Python 3" in before[0]
    file.write_text("22", encoding="utf-8")
    monkeypatch.setenv("SOME_ROOT", "there")
    assert [old == new for old, new in zip(before, states(needs), strict=True)] == [True, False, False]
