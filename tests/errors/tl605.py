"""A proxy fence is missing before an asynchronous access.

On Hopper, TMA and wgmma reach shared memory by a way of their own, the async proxy. What threads have
written in the ordinary way may not be visible there yet, even after a barrier:
`T.fence(kind="proxy.async")` on the writing threads, before the barrier, makes it so. The example is IR as
it stands after insert_barriers, written by hand.
"""

import numpy as np

from tilelab.emulate import emulate
from tilelab.ir.text import parse_function
from tilelab.layout import shared_tile

IR = """
@T.prim_func
def store(A: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float16")):
    T.func_attr({"tl.stage": "synced", "tl.threads": 128})
    with T.launch_thread("threadIdx.x", 128) as tx:
        tile = T.alloc_buffer((64, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "SWIZZLED"})
        for i in T.serial(32):
            tile[tx // 2, tx % 2 * 32 + i] = A[tx // 2, tx % 2 * 32 + i]
        FENCE
        T.barrier()
        if tx == 0:
            T.issue(C[0:64, 0:64], tile[0:64, 0:64], row=ROW)  # error: TL605 proxy fence
            T.commit_group(kind="bulk")
            T.wait_group(kind="bulk", pending=0)
""".replace("SWIZZLED", str(shared_tile((64, 64), 16, 128))).replace(
    "ROW", '"tma.store.2d.64x64.float16.s128"'
)

A, C = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)


def fails():
    emulate(parse_function(IR.replace("FENCE", "")), [A, C])


def works():
    emulate(parse_function(IR.replace("FENCE", 'T.fence(kind="proxy.async")')), [A, C])
    assert (C == 1).all()
