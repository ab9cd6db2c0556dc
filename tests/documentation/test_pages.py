"""The reader of pages, and what runs them: they see files and commands, and what is not as a page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.documentation.pages import Command, ShownFile, shown
from tests.documentation.running import Difference, run_page

PAGE = """# A page

Save this as `hello.py`:

    print("hello", 0x10)
    print("one")
    print("two")

It says:

    $ python hello.py \\
        --twice
    hello 16
    …
    two

In a fenced block:

```sh
python hello.py  # exit code 0
```

```python
python = 1
```
"""


def test_files_and_commands_are_read_in_their_order() -> None:
    file, session, fenced = shown(PAGE)
    assert file == ShownFile(5, "hello.py", 'print("hello", 0x10)\nprint("one")\nprint("two")\n')
    assert session == Command(11, "python hello.py --twice", "", ("hello 16", "…", "two"))
    assert fenced == Command(20, "python hello.py", "# exit code 0", ())


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="commands are for a shell on Linux")


@on_linux
def test_a_page_that_is_true_is_accepted(tmp_path: Path) -> None:
    run_page("page.md", PAGE, tmp_path)


@on_linux
def test_a_part_of_a_line_can_be_left_out(tmp_path: Path) -> None:
    run_page("page.md", PAGE.replace("    hello 16\n", "    hel… 1…\n"), tmp_path)


@on_linux
def test_a_page_that_clones_the_repository_is_run_as_in_a_clone(tmp_path: Path) -> None:
    page = "    git clone https://example.org/quiesce\n    cat pyproject.toml cases/README.md\n"
    run_page("page.md", page, tmp_path)
    with pytest.raises(Difference, match=r"page.md:1"):
        run_page("page.md", "    cat pyproject.toml\n", tmp_path / "other")


@on_linux
@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("    hello 16\n", "    hello 17\n", "page.md:11"),
        ("    hello 16\n", "    hello … 17\n", "page.md:11"),
        ("    two\n", "    one\n    three\n", "page.md:11"),
        ("    hello 16\n    …\n    two\n", "    two\n    …\n    hello 16\n", "page.md:11"),
        ("# exit code 0", "# exit code 1", "page.md:20"),
        ("python hello.py  #", "python bye.py  #", "page.md:20"),
    ],
)
def test_a_page_that_is_wrong_is_refused_by_its_line(right: str, wrong: str, place: str, tmp_path: Path) -> None:
    assert right in PAGE
    with pytest.raises(Difference, match=place):
        run_page("page.md", PAGE.replace(right, wrong), tmp_path)


@on_linux
def test_a_part_of_a_file_of_the_repository_has_to_stand_in_it(tmp_path: Path) -> None:
    page = "As in `fixtures/example_plugin/pyproject.toml`:\n\n```toml\n{}\n```\n"
    run_page("page.md", page.format("quiesce_corpus = true"), tmp_path)
    with pytest.raises(Difference, match=r"page.md:4.*\n.*not in that file"):
        run_page("page.md", page.format("quiesce_corpus = maybe"), tmp_path)
