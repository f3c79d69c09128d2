"""The device stopped the kernel, or its driver reported an error.

On a GPU the driver says so after the launch, with its own name for the error. The emulator of MI300X stops
at the instruction, here a trap in a kernel written by hand. Run the kernel on the CPU or in an emulator to
find the access or the assertion that is at fault.
"""

import numpy as np

from tilelab.emulate.gfx942 import run
from tilelab.runtime.hip_build import build_hip

SOURCE = """
extern "C" __attribute__((global)) void halve(int* numbers) {
  int i = __builtin_amdgcn_workitem_id_x();
  if (numbers[i] % 2) __builtin_trap();
  numbers[i] /= 2;
}
"""


def halve(numbers):
    built = build_hip(SOURCE, "gfx942")
    run(built.code_object, "halve", (1, 1, 1), (64, 1, 1), [numbers])  # error: TL506 executed s_trap
    return numbers


def fails():
    halve(np.full(64, 7, np.int32))


def works():
    assert (halve(np.full(64, 8, np.int32)) == 4).all()
