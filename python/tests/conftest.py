import os
import sys

import pytest

import kinfolk


@pytest.fixture(scope="session")
def small():
    """Rows and labels of 40 identities."""
    return kinfolk.synth(identities=40, dim=64, seed=3)


@pytest.fixture(scope="session")
def command():
    """The command line of the Rust program, if it was built, or else of the one in the wheel."""
    built = os.environ.get("KINFOLK")
    return [built] if built else [sys.executable, "-m", "kinfolk"]
