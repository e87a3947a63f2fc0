"""The Python examples of the documents run as they are printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(document):
    """The Python blocks of a document, each after as many empty lines as precede it, so that errors name its lines."""
    text = document.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        yield "\n" * text.count("\n", 0, found.start(1)) + found.group(1)


@pytest.mark.parametrize("name", ["README.md", "docs/cookbook.md", "docs/python.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = ROOT / name
    programs = list(blocks(document))
    assert programs, f"{name} has no examples"
    namespace = {"__name__": "__main__"}
    for program in programs:
        exec(compile(program, str(document), "exec"), namespace)
