"""A tool that builds for this target is not installed.

CUDA kernels are built by NVRTC (`pip install 'tilelab[cuda]'`) or nvcc, HIP kernels by the clang in the
package ziglang (`pip install 'tilelab[hip]'`) or hipcc. Without them the generated code and every pass can
still be looked at; `tilelab doctor` lists what is there. The example plays a machine that has no compiler
for HIP.
"""

from unittest import mock

from tilelab.runtime import hip_build

SOURCE = 'extern "C" __attribute__((global)) void nothing() {}'


def fails():
    with mock.patch.object(hip_build, "find_tool", return_value=None):
        hip_build.build_hip(SOURCE, "gfx942")  # error: TL403 no compiler for gfx942


def works():
    assert hip_build.build_hip(SOURCE, "gfx942").code_object
