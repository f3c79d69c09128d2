"""Execute MI300X (gfx942) code objects on the CPU, instruction by instruction, on NumPy.

`run` takes the very bytes that a GPU would load, checks every memory access on the way, and reports what it
counted. It is a functional model: there is no time in it. Not modelled: scratch (register spills), the wait
states that some instruction pairs need (`s_nop`), sparse matrix instructions, and races between workgroups.
"""

from tilelab.emulate.gfx942.machine import run
from tilelab.emulate.gfx942.profile import Access, Diagnostic, Report

__all__ = ["Access", "Diagnostic", "Report", "run"]
