"""The examples of the documentation run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/python"


@pytest.mark.parametrize("name, picture", [("cluster", "png"), ("train", "svg"), ("correct", "svg")])
def test_example(name, picture, tmp_path):
    pytest.importorskip("matplotlib")
    words = [sys.executable, EXAMPLES / f"{name}.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "Agg"})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{name}.{picture}").exists() and "BCubed F" in done.stdout
