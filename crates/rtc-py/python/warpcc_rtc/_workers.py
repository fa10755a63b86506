"""How ``compile_many`` starts another process of this Python, where it is certain that this is possible."""

from __future__ import annotations

import os
import re
import sys
from typing import List, Optional

from . import _native


def command() -> Optional[List[str]]:
    """The command of a process that compiles; None if sys.executable may be something else than the Python that runs here.

    That is so in a program that embeds Python or was frozen: started again, it would do its own work.
    """
    program = sys.executable
    if not program or getattr(sys, "frozen", False) or not re.fullmatch(r"python[0-9.]*[a-z]*", os.path.basename(program)):
        return None
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_worker.py")
    native = os.path.abspath(_native.__file__)
    try:
        # A program of another name or version may be first in PATH, and a wrapper may need its own environment.
        if not os.path.samefile(program, "/proc/self/exe") or not os.path.isfile(script):
            return None
    except OSError:
        return None
    # Neither the user's variables nor the site's packages are needed, and to load them takes time.
    return [os.path.abspath(program), "-I", "-S", script, native]
