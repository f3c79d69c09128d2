"""Turn gemms into the matrix instructions that `plan_gemms` chose: operand loads and one issue for each pair
of atoms.

Each warp walks its part of the tile: for each step in k it loads the A and B atoms it needs into registers
(by `ldmatrix` where rows are 16-byte chunks, else element by element as the register map says) and issues
every product. A warpgroup's instruction takes the shared tiles themselves: a fence, all products, one group,
and the wait for it. Without a matrix instruction each thread sums its own elements.

Before (cuda:sm_80, threads=32):

    As = T.alloc_buffer((16, 16), "float16", scope="shared.dyn", annotations={"tl.layout": "(16,16):(16,1)"})
    Bs = T.alloc_buffer((16, 8), "float16", scope="shared.dyn", annotations={"tl.layout": "(16,8):(8,1)"})
    acc = T.alloc_buffer((4,), scope="local", annotations={"tl.layout": "(16,8)@((4,8),(2,2)):((32,1),(16,8))"})
    T.gemm(As[0:16, 0:16], Bs[0:16, 0:8], acc[0:4], replication=1, repeats=[1, 1, 1], row="mma.m16n8k16.f32.f16", warps=[1, 1])

After:

    As = T.alloc_buffer((16, 16), "float16", scope="shared.dyn", annotations={"tl.layout": "(16,16):(16,1)"})
    Bs = T.alloc_buffer((16, 8), "float16", scope="shared.dyn", annotations={"tl.layout": "(16,8):(8,1)"})
    acc = T.alloc_buffer((4,), scope="local", annotations={"tl.layout": "(16,8)@((4,8),(2,2)):((32,1),(16,8))"})
    As_atoms = T.alloc_buffer((8,), "float16", scope="local")
    Bs_atoms = T.alloc_buffer((4,), "float16", scope="local")
    T.issue(As_atoms[0:8], As[tx % 16, tx // 16 * 8:tx // 16 * 8 + 8], row="ldmatrix.x4")
    T.issue(Bs_atoms[0:4], Bs[tx % 16, 0:8], row="ldmatrix.x2.trans")
    T.issue(acc[0:4], As_atoms[0:8], Bs_atoms[0:4], row="mma.m16n8k16.f32.f16")
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.hardware import GemmChoice, Register, bits
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, add
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.statements import seq
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Composed, parse
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, chip_of, slow
from tilelab.passes.nests import register_index
from tilelab.passes.plan_copies import alignment_of
from tilelab.passes.plan_gemms import choice_of
from tilelab.passes.share_out import fragment_loops, thread_number, warp_of

__all__ = ["lower_gemm"]


@dataclass
class _Operand:
    """A or B of a gemm: its region, whether k is its last axis, where a warp's part begins along m or n."""

    name: str
    region: Region
    k_last: bool
    register: Any
    atoms: int
    extent: int
    base: Any
    array: Var
    is_registers: bool

    def where(self, mn: Any, k: Any) -> list[Any]:
        """The indices of element (m or n, k) of the tile."""
        start = [r.min for r in self.region.region]
        pair = (mn, k) if self.k_last else (k, mn)
        return [*start[:-2], add(start[-2], pair[0]), add(start[-1], pair[1])]


class _Gemm:
    """One gemm being lowered, for one thread of the block."""

    def __init__(self, call: TileCall, f: PrimFunc, scope: Scope, layouts: dict[Var, Any]) -> None:
        self.call, self.layouts, self.bounds = call, layouts, scope.bounds
        self.config = b.plain(call.config)
        self.choice: GemmChoice = choice_of(call)
        self.row = self.choice.row
        self.thread = thread_number(f, scope)
        self.warp, self.lane = warp_of(self.thread, self.row.scope.threads)
        self.accumulator = operand(call, "C").source
        self.chip = chip_of(f)

    def simple(self, value: Any) -> Any:
        return self.bounds.simplify(value)

    # ---- matrix instructions

    def by_atoms(self) -> Stmt:
        choice, (atoms_m, atoms_n, atoms_k) = self.choice, self.choice.repeats
        m, n, k = self.row.shape
        along_m = b.floormod(self.warp, choice.warps[0])
        along_n = b.floormod(b.floordiv(self.warp, choice.warps[0]), choice.warps[1])
        a = self._operand("A", not self.config.get("transpose_A"), self.row.a, atoms_m, m, along_m)
        right = self._operand("B", bool(self.config.get("transpose_B")), self.row.b, atoms_n, n, along_n)
        step = b.var("kk")
        at_k = step if atoms_k > 1 else 0
        inner = self.bounds.with_variables([(step, 0, atoms_k)] if atoms_k > 1 else [])
        body = seq(
            self._load(a, at_k, k, inner), self._load(right, at_k, k, inner), self._products(a, right, at_k)
        )
        if atoms_k > 1:
            body = b.for_(step, atoms_k, body, b.UNROLLED)
        made = [b.alloc(o.array) for o in (a, right) if not o.is_registers]
        return seq(*made, body)

    def _operand(
        self, name: str, k_last: bool, register: Any, atoms: int, extent: int, warp: Any
    ) -> _Operand:
        region = operand(self.call, name)
        is_registers = str(region.source.scope()) == "local"
        assert isinstance(register, Register)
        array = (
            region.source
            if is_registers
            else b.buffer(f"{region.source.name}_atoms", (atoms * register.values,), register.dtype, "local")
        )
        base = self.simple(warp * (atoms * extent))
        return _Operand(name, region, k_last, register, atoms, extent, base, array, is_registers)

    def _load(self, side: _Operand, at_k: Any, k: int, bounds: Bounds) -> Stmt:
        if side.is_registers:
            return seq()
        first_k = at_k * k if not isinstance(at_k, int) else 0
        if self._can_ldmatrix(side):
            return self._load_by_ldmatrix(side, first_k, bounds)
        return self._load_by_elements(side, first_k, bounds)

    def _can_ldmatrix(self, side: _Operand) -> bool:
        if self.row.family != "mma" or bits(side.register.dtype) != 16:
            return False
        layout = self.layouts.get(side.region.source)
        chunk = alignment_of(side.region, self.bounds, layout)
        if chunk >= 16 and (not isinstance(layout, Composed) or layout.swizzle.base >= 3):
            return True
        slow(
            f"{side.region.source.name} is read element by element: "
            f"ldmatrix needs rows of 16-byte chunks, these are aligned to {chunk} bytes",
            self.call.span,
        )
        return False

    def _load_by_ldmatrix(self, side: _Operand, first_k: Any, bounds: Bounds) -> Stmt:
        lane, low, half, quarter = self.lane, self.lane % 8, self.lane // 8 % 2 * 8, self.lane // 16 * 8
        suffix = "" if side.k_last else ".trans"
        index = b.var("i")
        is_a = side.name == "A"
        # A takes one atom of four matrices at a time; B's atoms are two matrices, so that two go together.
        per_issue = 1 if is_a else 2
        pairs = side.atoms // per_issue

        def issue(number: Any, count: int, mn: Any, k: Any) -> Stmt:
            start = add(side.base, number * side.extent if not isinstance(number, int) or number else 0)
            inner = bounds.with_variables([(index, 0, max(pairs, 1))])
            where = [inner.simplify(w) for w in side.where(add(start, mn), add(first_k, k))]
            address = b.region(side.region.source, [*((w, 1) for w in where[:-1]), (where[-1], 8)])
            first = number * side.register.values
            registers = b.region(side.array, [(first, 2 * count)])
            return b.tile("issue", registers, address, row=f"ldmatrix.x{count}{suffix}")

        if is_a:
            mn, k = (lane % 16, quarter) if side.k_last else (half, low + quarter)
        else:
            mn, k = (low + quarter, half) if side.k_last else (quarter, low + half)
        parts: list[Stmt] = []
        if pairs > 1:
            parts.append(b.for_(index, pairs, issue(index * per_issue, 4, mn, k), b.UNROLLED))
        elif pairs == 1:
            parts.append(issue(0, 4, mn, k))
        if side.atoms % per_issue:
            mn, k = (low, half) if side.k_last else (0, low + half)
            parts.append(issue(side.atoms - 1, 2, mn, k))
        return seq(*parts)

    def _load_by_elements(self, side: _Operand, first_k: Any, bounds: Bounds) -> Stmt:
        fragment = side.register.fragment
        index = b.var("i")
        inner = bounds.with_variables([(index, 0, side.atoms)] if side.atoms > 1 else [])
        number = index if side.atoms > 1 else 0
        start = add(side.base, number * side.extent if side.atoms > 1 else 0)
        size = bits(dtype_of(side.region.source)) // 8
        aligned = max(1, alignment_of(side.region, self.bounds, self.layouts.get(side.region.source)) // size)
        vector = min(fragment.vector(1), aligned) if side.k_last else 1
        converts = dtype_of(side.region.source) != side.register.dtype

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            where = [inner.simplify(w) for w in side.where(add(start, point[0]), add(first_k, point[1]))]
            loaded = b.load(side.region.source, where)
            register = add(number * side.register.values if side.atoms > 1 else 0, value)
            return b.store(
                side.array, b.cast(side.register.dtype, loaded) if converts else loaded, [register]
            )

        body = fragment_loops(fragment, vector, self.lane, inner, make)
        return b.for_(index, side.atoms, body, b.UNROLLED) if side.atoms > 1 else body

    def _products(self, a: _Operand, right: _Operand, at_k: Any) -> Stmt:
        atoms_k = self.choice.repeats[2]
        i, j = b.var("i"), b.var("j")
        row, column = (i if a.atoms > 1 else 0), (j if right.atoms > 1 else 0)

        def atom(side: _Operand, number: Any) -> Region:
            # Whole operands in registers keep all steps in k; loaded ones only the current.
            place = add(number * atoms_k, at_k) if side.is_registers else number
            return b.region(side.array, [(_times(place, side.register.values), side.register.values)])

        assert isinstance(self.row.d, Register)
        values = self.row.d.values
        place = add(_times(row, right.atoms), column)
        d = b.region(self.accumulator, [(_times(place, values), values)])
        body: Stmt = b.tile("issue", d, atom(a, row), atom(right, column), row=self.row.name)
        if right.atoms > 1:
            body = b.for_(j, right.atoms, body, b.UNROLLED)
        return b.for_(i, a.atoms, body, b.UNROLLED) if a.atoms > 1 else body

    # ---- a warpgroup's instructions

    def by_tiles(self) -> Stmt:
        """Every product of the tile issued on its regions in shared memory, and waited for."""
        atoms, warps, size = self.choice.repeats, self.choice.warps, self.row.shape
        number = [
            b.var(name) if count > 1 else 0 for name, count in zip(("i", "j", "kk"), atoms, strict=True)
        ]
        i, j, step = number
        along = (b.floormod(self.warp, warps[0]), b.floormod(b.floordiv(self.warp, warps[0]), warps[1]))
        known = [(v, 0, n) for v, n in zip(number, atoms, strict=True) if not isinstance(v, int)]
        inner = self.bounds.with_variables(known)

        def part(name: str, axis: int, index: Any, k_last: bool) -> Region:
            region = operand(self.call, name)
            if str(region.source.scope()) == "local":
                values = self.row.a.values  # type: ignore[union-attr] - only A can be in registers
                return b.region(region.source, [(_times(add(_times(index, atoms[2]), step), values), values)])
            first = add(_times(along[axis], atoms[axis] * size[axis]), _times(index, size[axis]))
            moved = [(first, size[axis]), (_times(step, size[2]), size[2])]
            *slot, one, two = [r.min for r in region.region]
            ranges = [
                (inner.simplify(add(at, by)), n)
                for at, (by, n) in zip((one, two), moved if k_last else moved[::-1], strict=True)
            ]
            return b.region(region.source, [*((s, 1) for s in slot), *ranges])

        values = self.row.d.values  # type: ignore[union-attr] - a matrix row's D is in registers
        place = add(_times(i, atoms[1]), j)
        operands = [
            b.region(self.accumulator, [(_times(place, values), values)]),
            part("A", 0, i, not self.config.get("transpose_A")),
            part("B", 1, j, bool(self.config.get("transpose_B"))),
        ]
        body: Stmt = b.tile("issue", *operands, *self._keeps(step), row=self.row.name)
        for v, count in reversed(list(zip(number, atoms, strict=True))):
            if not isinstance(v, int):
                body = b.for_(v, count, body, b.UNROLLED)
        return seq(
            b.tile("fence", kind="wgmma"),
            body,
            b.tile("commit_group", kind="wgmma"),
            b.tile("wait_group", kind="wgmma", pending=0),
        )

    def _keeps(self, step: Any) -> list[Any]:
        """The predicate by which a product adds to D or overwrites it; nothing where it always adds."""
        clear = self.config.get("clear_accum")
        if clear is None or clear is False:
            return []
        later = b.const(False, "bool") if isinstance(step, int) else step > 0
        return [later if clear is True else b.any_of([b.negation(clear), later])]

    # ---- one multiplication at a time

    def by_elements(self) -> Stmt:
        a, right = operand(self.call, "A"), operand(self.call, "B")
        k_extent = self.choice.repeats[2]
        share, dtype = self.choice.d, dtype_of(self.accumulator)
        k = b.var("k")
        at_k = k if k_extent > 1 else 0
        a_in_registers = str(a.source.scope()) == "local"

        def element(region: Region, k_last: bool, mn: Any) -> Any:
            start = [r.min for r in region.region]
            pair = (mn, at_k) if k_last else (at_k, mn)
            where = [*start[:-2], add(start[-2], pair[0]), add(start[-1], pair[1])]
            return b.cast(dtype, b.load(region.source, where))

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            if a_in_registers:
                axes = (("nest", 0), ("inner", k_extent))
                index = register_index(self.choice.a, axes, share, value, [None, at_k])
                left = b.cast(dtype, b.load(a.source, [index]))
            else:
                left = element(a, not self.config.get("transpose_A"), point[0])
            term = left * element(right, bool(self.config.get("transpose_B")), point[1])
            return b.store(self.accumulator, b.load(self.accumulator, [value]) + term, [value])

        inner = self.bounds.with_variables([(k, 0, k_extent)])
        body = fragment_loops(share, 1, self.thread, inner, make)
        return b.for_(k, k_extent, body) if k_extent > 1 else body

    def cleared(self) -> Stmt:
        clear = self.config.get("clear_accum")
        if clear is None or clear is False:
            return seq()
        count, v = self.choice.d.values, b.var("v")
        zero = b.const(0, dtype_of(self.accumulator))
        return b.if_(clear, b.for_(v, count, b.store(self.accumulator, zero, [v]), b.UNROLLED))


def _times(value: Any, factor: int) -> Any:
    return value * factor if not isinstance(value, int) or value else 0


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "gemm":
            return None
        found.append(node)
        gemm = _Gemm(node, f, scope, layouts)
        if gemm.row.family == "wgmma":
            return gemm.by_tiles()
        if gemm.row.family in ("mma", "mfma"):
            return seq(gemm.cleared(), gemm.by_atoms())
        slow(
            f"no matrix instruction: each of the threads sums its own elements by {gemm.row.name}", node.span
        )
        return seq(gemm.cleared(), gemm.by_elements())

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no gemm")
    return new


lower_gemm = Pass("lower_gemm", run, needs="threaded", gives="threaded")
