"""Code that is run by another Python, which can import the modules of this folder."""

import os
import subprocess
import sys
from pathlib import Path


def run_python(*arguments, **environment):
    """Run ``-c CODE …`` or ``-m MODULE …``; the result has what was printed, as text."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        cwd=Path(__file__).parent,
        timeout=300,
    )
