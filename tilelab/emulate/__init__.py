"""The emulator: runs the IR of any stage on NumPy, under that stage's own way of executing, and finds its
faults.
"""

from __future__ import annotations

from tilelab.emulate.machine import emulate
from tilelab.emulate.report import Access, Race, Report

__all__ = ["Access", "Race", "Report", "emulate"]
