"""The exercises of the course: checkers that run a reader's kernel and say what they found.

    from tilelab_puzzles import check
    check(my_kernel, reference, inputs)

The puzzles themselves are not part of this version; the notebooks use `check` for
their exercises and `badges` to say where a kernel ran.
"""

from __future__ import annotations

from tilelab_puzzles.badges import badges
from tilelab_puzzles.checking import Verdict, check

__all__ = ["Verdict", "badges", "check"]
