"""The hand-built Hopper matmul printed, built by NVRTC, and launched through a recording driver."""

from __future__ import annotations

import pytest

from tests.kernels.hopper import HopperMatmul
from tests.runtime.test_cuda_driver import Recorder
from tilelab.codegen.cuda import cuda_text
from tilelab.runtime.cuda_driver import Cuda
from tilelab.runtime.cuda_kernel import CudaKernel
from tilelab.runtime.nvrtc import build_cuda
from tilelab.runtime.plan import code_from_json, code_to_json, plan_of


@pytest.mark.parametrize("roles", [1, 2])
@pytest.mark.parametrize("b_major", ["k", "mn"])
@pytest.mark.parametrize("clear", ["fill", "first step"])
def test_it_compiles_without_spills_or_complaints(roles: int, b_major: str, clear: str) -> None:
    code = cuda_text(HopperMatmul(m=256, n=512, k=4096, roles=roles, b_major=b_major, clear=clear).device())
    binary = build_cuda(code.text, "sm_90a")
    (found,) = binary.resources
    assert found.is_clean, binary.log
    assert "C75" not in binary.log
    assert found.registers == 168  # 65536 over 384 threads, in eights: what setmaxnreg shares out


def test_it_prints_in_the_measured_form(check_text) -> None:
    code = cuda_text(HopperMatmul(m=256, n=512, k=4096).device())
    check_text(
        code.text,
        """
# CHECK: __launch_bounds__(384, 1) matmul(
# CHECK: const __grid_constant__ CUtensorMap A_map,
# CHECK: mbarrier_init(ring_full + slot, 1);
# CHECK-NEXT: mbarrier_init(ring_empty + slot, 8);
# CHECK: fence_mbarrier_init();
# CHECK: __syncthreads();
# CHECK: if (warpgroup == 0) {  // producer
# CHECK: set_max_registers_down<40>();
# CHECK-NEXT: if (tx == 0) {
# CHECK: mbarrier_wait(ring_empty + load_slot, load_phase);
# CHECK-NEXT: mbarrier_expect(ring_full + load_slot, 49152);
# CHECK: tma_load_2d(A_shared + load_slot * 8192, &A_map, ring_full + load_slot, ko * 64, by * 128);
# CHECK: if (load_slot == 3) {
# CHECK: else {  // consumers
# CHECK: set_max_registers_up<232>();
# CHECK: mbarrier_wait(ring_full + use_slot, use_phase);
# CHECK: wgmma_fence();
# CHECK: wgmma_m64n256k16_f32_f16_ss_k_k(C_local, wgmma_descriptor(A_shared +{{.*}}(warpgroup * 64 - 64) * 64
# CHECK: wgmma_commit();
# CHECK-NEXT: wgmma_wait<0>();
# CHECK: if (tx % 32 == 0) {
# CHECK-NEXT: mbarrier_arrive(ring_empty + use_slot);
# CHECK: fence_proxy_async();
# CHECK-NEXT: named_barrier(2, 256);
# CHECK: if (tx == 128) {
# CHECK: tma_store_2d(&C_map, C_shared +
# CHECK: tma_store_commit();
# CHECK-NEXT: tma_store_wait_read<0>();
""",
    )
    assert code.shared_bytes == 3 * 49152 + 65536 + 152


# ---- the launch


def test_the_launch_plan_keeps_the_recipes_of_its_tensor_maps() -> None:
    code = cuda_text(HopperMatmul(m=256, n=512, k=4096, b_major="mn").device())
    plan = plan_of(code_from_json(code_to_json(code)), 16)
    assert [r.kind for r in plan.rows] == ["tensor_map"] * 3
    recipes = {r.name: r.tensor_map for r in plan.rows}
    assert (recipes["A_map"].shape, recipes["A_map"].box) == (("256", "4096"), (128, 64))
    assert (recipes["B_map"].shape, recipes["B_map"].box) == (("4096", "512"), (64, 64))
    assert (recipes["C_map"].strides, recipes["C_map"].box) == (("512", "1"), (128, 64))
    assert {r.swizzle_bytes for r in recipes.values()} == {128}
    assert plan.grid_at({}) == (2, 2, 1)


def test_a_launch_encodes_its_tensor_maps_and_passes_them() -> None:
    api = Recorder()
    kernel = CudaKernel(Cuda(api), cuda_text(HopperMatmul(m=256, n=512, k=4096).device()), b"cubin")
    kernel.bind([0x10000, 0x20000, 0x30000])()
    maps = api.named("cuTensorMapEncodeTiled")
    assert [m[2] for m in maps] == [0x10000, 0x20000, 0x30000]
    assert [(m[3], m[4], m[5]) for m in maps] == [
        ([4096, 256], [8192], [64, 128]), ([4096, 512], [8192], [64, 256]), ([512, 256], [1024], [64, 128]),
    ]  # fmt: skip
    (launch,) = api.named("cuLaunchKernel")
    assert launch[1:8] == (2, 2, 1, 384, 1, 1, 3 * 49152 + 65536 + 152)
