"""Find the layouts that follow from one another: what gemms fix, what flows from it, what starts a flow."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.errors import TileError
from tilelab.hardware import bits
from tilelab.ir import build as b
from tilelab.ir.nodes import For, PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import allocations
from tilelab.ir.spans import place_of
from tilelab.ir.statements import children
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Composed, Fragment, crosswise_tile, linear, shared_tile, widest_swizzle
from tilelab.passes.annotations import fragment_of, layout_text
from tilelab.passes.base import decide, slow, threads_of
from tilelab.passes.nests import (
    Access,
    Nest,
    accesses,
    axes_of,
    carried_to_buffer,
    carried_to_nest,
    is_nest,
    nest_of,
)
from tilelab.passes.plan_gemms import choice_of

__all__ = ["LayoutFlow", "constant_shape", "is_fragment"]

_SWIZZLED = ("mma", "mfma", "wgmma")


@dataclass(frozen=True)
class _Use:
    """A fragment in a nest: the buffer, how its axes follow the nest, and the access."""

    buffer: Var
    axes: tuple[tuple[str, Any], ...]
    access: Access


class LayoutFlow:
    """Layouts known so far, why, and the operations through which they flow."""

    def __init__(self, f: PrimFunc) -> None:
        self.threads = threads_of(f)
        self.shapes = {a.buffer: constant_shape(a.buffer) for a in allocations(f)}
        self.fragments = [a for a in allocations(f) if str(a.buffer.scope()) == "local.fragment"]
        self.known: dict[Var, Fragment] = {}
        self.why: dict[Var, tuple[str, Any]] = {}
        self.shared: dict[Var, str] = {}
        self.shares: dict[For, Fragment] = {}
        self.nests: list[tuple[Nest, list[_Use]]] = []
        self.ops: list[TileCall] = []
        for allocation in allocations(f):
            if layout_text(allocation) and str(allocation.buffer.scope()) == "local.fragment":
                self.fix(
                    allocation.buffer, fragment_of(allocation), "the kernel's annotation", allocation.span
                )
        self._collect(f.body)

    def _collect(self, node: Stmt) -> None:
        if is_nest(node):
            nest = nest_of(node)
            self.nests.append((nest, [_use(a, nest) for a in accesses(nest.body) if is_fragment(a.buffer)]))
            return
        if isinstance(node, TileCall):
            self.ops.append(node)
        for child in children(node):
            self._collect(child)

    def fix(self, buffer: Var, fragment: Fragment, reason: str, span: Any) -> bool:
        """Set a layout, or check that the one already set serves; True when something new is known."""
        fragment = fragment.coalesce()
        if buffer not in self.known:
            self.known[buffer] = fragment
            self.why[buffer] = (reason, span)
            decide(
                f"{buffer.name}: {fragment}, from {reason}",
                span,
                buffer=str(buffer.name),
                layout=str(fragment),
            )
            return True
        if not self.known[buffer].holds(fragment):
            self._clash(buffer, fragment, reason, span)
        return False

    def _clash(self, buffer: Var, fragment: Fragment, reason: str, span: Any) -> None:
        first, first_span = self.why[buffer]
        places = [p for p in (place_of(span), place_of(first_span, f"{first} fixed it first")) if p]
        raise TileError(
            "TL202",
            f"{buffer.name} is laid out as {self.known[buffer]} by {first}, but {reason} needs {fragment}",
            places=tuple(places),
            help=f"copy {buffer.name} through a T.alloc_shared tile between the two, or use "
            "policy=T.GemmWarpPolicy.FullRow on both gemms so that warps own whole rows",
        )

    # ---- one step of the flow

    def from_gemms(self) -> None:
        for call in self.ops:
            if op_of(call).name != "gemm":
                continue
            choice = choice_of(call)
            reason = f"the accumulator of {choice.row.name}"
            self.fix(operand(call, "C").source, choice.d, reason, call.span)
            a = operand(call, "A").source
            if is_fragment(a):
                self.fix(a, choice.a, f"operand A of {choice.row.name}", call.span)
            for name, buffer in (("A", a), ("B", operand(call, "B").source)):
                if str(buffer.scope()) == "shared.dyn":
                    self._shared_operand(name, buffer, choice.row, call)

    def _shared_operand(self, name: str, buffer: Var, row: Any, call: TileCall) -> None:
        shape, size = self.shapes[buffer], bits(dtype_of(buffer))
        width = widest_swizzle(shape[-1], size) if row.family in _SWIZZLED and len(shape) > 1 else 0
        # Lanes of mfma read 8 bytes along k each, sixteen rows at a time: chunks of 8 bytes keep these apart.
        goes_along_k = (name == "B") == bool(b.plain(call.config).get(f"transpose_{name}"))
        chunk = 8 if row.family == "mfma" and goes_along_k and size == 16 else 16
        text = str(shared_tile(shape, size, width, chunk_bytes=chunk))
        if self.shared.setdefault(buffer, text) == text:
            small = f" of {chunk}-byte chunks" if chunk < 16 else ""
            kind = f"{width}-byte swizzle{small}" if width else "plain rows"
            decide(f"{buffer.name}: {kind} for operand {name} of {row.name}", call.span, layout=text)

    def from_crosswise_nests(self) -> None:
        """Swizzle the shared tiles that some nest goes through across their rows, one bank else."""
        for nest, _ in self.nests:
            loops = reversed(list(zip(nest.loop_vars, nest.extents, strict=True)))
            last = next((v for v, n in loops if n > 1), None)
            for access in accesses(nest.body):
                buffer = access.buffer
                if last is None or str(buffer.scope()) != "shared.dyn" or buffer in self.shared:
                    continue
                along = [b.moves_by_one(i, last) for i in access.indices]
                if along[-1] or not any(along):
                    continue
                layout = crosswise_tile(self.shapes[buffer], bits(dtype_of(buffer)))
                self.shared[buffer] = str(layout)
                kind = (
                    "4-byte words swizzled"
                    if isinstance(layout, Composed)
                    else "plain, since its rows are odd"
                )
                decide(
                    f"{buffer.name}: {kind}, since {last.name} goes across its rows",
                    access.node.span or nest.loop.span,
                    layout=str(layout),
                )

    def flow(self) -> bool:
        """Pass what is known through every operation once; True when something new became known."""
        moved = False
        for call in self.ops:
            moved |= self._through_op(call)
        for nest, uses in self.nests:
            moved |= self._through_nest(nest, uses, partial=False)
        return moved

    def _through_op(self, call: TileCall) -> bool:
        name = op_of(call).name
        if name not in ("copy", "reduce", "cumsum"):
            return False
        src, dst = operand(call, "src").source, operand(call, "dst").source
        if not (is_fragment(src) and is_fragment(dst)):
            return False
        if name == "reduce":
            if src not in self.known:
                return False
            axis = int(b.plain(call.config)["dim"]) % len(self.shapes[src])
            keep = len(self.shapes[src]) == len(self.shapes[dst])
            return self.fix(
                dst, self.known[src].reduce(axis, keep), f"the reduction of {src.name}", call.span
            )
        if self.shapes[src] != self.shapes[dst]:
            return False
        if dst not in self.known and src in self.known:
            return self.fix(dst, self.known[src], f"the copy from {src.name}", call.span)
        if src not in self.known and dst in self.known:
            return self.fix(src, self.known[dst], f"the copy to {dst.name}", call.span)
        return False

    def _through_nest(self, nest: Nest, uses: list[_Use], *, partial: bool) -> bool:
        moved = False
        if nest.loop not in self.shares:
            share = self._share_from(nest, uses, partial)
            if share is None:
                return False
            self.shares[nest.loop] = share
            moved = True
        share = self.shares[nest.loop]
        for use in uses:
            wanted = carried_to_buffer(share, use.axes, self.shapes[use.buffer])
            moved |= self.fix(
                use.buffer, wanted, "the element-wise loops", use.access.node.span or nest.loop.span
            )
        return moved

    def _share_from(self, nest: Nest, uses: list[_Use], partial: bool) -> Fragment | None:
        wide = {i for i, n in enumerate(nest.extents) if n > 1}
        best: tuple[int, Fragment] | None = None
        for use in uses:
            covered = {at for kind, at in use.axes if kind == "nest"}
            if use.buffer not in self.known or (not partial and not wide <= covered):
                continue
            share = carried_to_nest(self.known[use.buffer], use.axes, nest.extents)
            if share is not None and (best is None or len(covered) > best[0]):
                best = (len(covered), share)
        return best[1] if best else None

    # ---- where nothing flows from

    def start_somewhere(self) -> bool:
        """Give the largest unknown buffer or nest a layout of its own; False when everything is known.

        What only a fill touches comes last: it says nothing of how the elements are used.
        """
        starts: list[tuple[bool, int, int, Any]] = []
        for nest, uses in self.nests:
            if nest.loop not in self.shares and any(u.buffer not in self.known for u in uses):
                starts.append(
                    (True, prod(nest.extents), -len(starts), lambda n=nest, u=uses: self._start_nest(n, u))
                )
        for call in self.ops:
            used = op_of(call).name != "fill"
            for region in (a for a in call.args if isinstance(a, Region)):
                buffer = region.source
                if is_fragment(buffer) and buffer not in self.known:
                    size = prod(self.shapes[buffer])
                    starts.append(
                        (used, size, -len(starts), lambda x=buffer, c=call: self._start_buffer(x, c.span))
                    )
        if starts:
            return max(starts, key=lambda s: s[:3])[3]()
        for nest, uses in self.nests:
            if nest.loop not in self.shares:
                self._through_nest(nest, uses, partial=True)
                if nest.loop not in self.shares:
                    self.shares[nest.loop] = self._plain(
                        nest.extents, _vector(nest), nest.loop.span, bool(uses)
                    )
                return True
        return False

    def _start_nest(self, nest: Nest, uses: list[_Use]) -> bool:
        # A buffer that a reduction or gemm will read decides better than the nest that fills it.
        full = [u for u in uses if len({at for k, at in u.axes if k == "nest"}) == len(nest.extents)]
        widest = max((bits(dtype_of(u.buffer)) for u in uses), default=32)
        vector = min(_vector(nest), 128 // widest) if full else 1
        self.shares[nest.loop] = self._plain(nest.extents, vector, nest.loop.span)
        return self._through_nest(nest, uses, partial=False) or True

    def _start_buffer(self, buffer: Var, span: Any) -> bool:
        shape = self.shapes[buffer]
        vector = _dividing(128 // bits(dtype_of(buffer)), shape[-1])
        return self.fix(buffer, self._plain(shape, vector, span), "the plain coalesced layout", span)

    def _plain(self, shape: tuple[int, ...], vector: int, span: Any, is_tied: bool = True) -> Fragment:
        """The coalesced fragment of a shape; a nest not tied to fragments goes in chunks if it must."""
        vector = _dividing(vector, shape[-1])
        while vector > 1 and prod(shape) // vector < self.threads:
            vector //= 2
        # Where the extents divide badly, narrower vectors may occupy more threads.
        widths = [vector >> n for n in range(vector.bit_length())]
        fragment = min((linear(shape, self.threads, w) for w in widths), key=lambda x: x.replication)
        if is_tied and fragment.replication > 1 and prod(shape) >= self.threads:
            slow(
                f"{'x'.join(map(str, shape))} elements do not divide over {self.threads} threads: "
                f"each is held by {fragment.replication} threads",
                span,
            )
        return fragment


def _dividing(limit: int, extent: int) -> int:
    width = max(1, limit)
    while extent % width:
        width //= 2
    return max(1, width)


def _vector(nest: Nest) -> int:
    """The widest vector (elements) that some access of the nest could move along the last loop: up to 16
    bytes.
    """
    last = nest.loop_vars[-1]
    widths = [
        128 // bits(dtype_of(a.buffer))
        for a in accesses(nest.body)
        if not is_fragment(a.buffer) and a.indices and b.moves_by_one(a.indices[-1], last)
    ]
    return min(widths, default=1)


def constant_shape(buffer: Var) -> tuple[int, ...]:
    """The shape of a tile. Raises TL104 where it is not known when the kernel is compiled."""
    sizes = [b.as_int(n) for n in buffer.shape]
    if any(s is None for s in sizes):
        raise TileError(
            "TL104", f"the shape of {buffer.name} is not known when the kernel is compiled",
            help="tiles need constant shapes; only tensors may have dynamic ones",
        )  # fmt: skip
    return tuple(sizes)  # type: ignore[arg-type] - None was refused above


def is_fragment(buffer: Var) -> bool:
    return str(buffer.scope()) == "local.fragment"


def _use(access: Access, nest: Nest) -> _Use:
    axes = axes_of(access, nest)
    if axes is None:
        where = place_of(access.node.span or nest.loop.span)
        raise TileError(
            "TL205",
            f"{access.buffer.name} is a fragment and is indexed with {', '.join(map(str, access.indices))}; "
            "each index must be a loop variable of its own of the parallel nest (plus an offset), a variable "
            "of a loop inside it, or 0",
            places=(where,) if where else (),
            help="index a T.alloc_shared tile instead, or copy the fragment there first",
        )
    return _Use(access.buffer, axes, access)
