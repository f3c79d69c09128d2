"""Operations that finish later: queues of committed groups, and what their landing does.

In mode "late" an operation takes effect when a wait that covers it is executed, and until then its
destination holds nothing; in mode "early" it takes effect when it is issued. Both are allowed by the
hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Operation", "Queue"]


@dataclass
class Operation:
    """An asynchronous operation under way: its row, its issuers, its destination, and its effect."""

    name: str
    span: Any
    threads: np.ndarray
    target: Any
    effect: Callable[[], None]
    poison: Callable[[], None]
    size: int = 0
    landed: bool = False
    clock: Any = None

    def land(self) -> None:
        """Take effect, once."""
        if not self.landed:
            self.landed = True
            self.effect()


@dataclass
class Queue:
    """Operations of one kind that a role has issued: the open ones, then the committed groups, oldest
    first.
    """

    open: list[Operation] = field(default_factory=list)
    groups: list[list[Operation]] = field(default_factory=list)

    def commit(self, threads: np.ndarray) -> None:
        """Close the open group on behalf of the active threads."""
        mine = [op for op in self.open if np.isin(op.threads, threads).all()]
        self.open = [op for op in self.open if not any(op is m for m in mine)]
        self.groups.append(mine)

    def wait(self, pending: int, threads: np.ndarray) -> list[Operation]:
        """Land every group but the newest `pending`, as far as the waiting threads issued them."""
        done: list[Operation] = []
        keep = self.groups[len(self.groups) - pending :] if pending else []
        for group in self.groups[: len(self.groups) - pending if pending else None]:
            left = []
            for op in group:
                if np.isin(op.threads, threads).all():
                    op.land()
                    done.append(op)
                else:
                    left.append(op)
            if left:
                keep = [left, *keep]
        self.groups = keep
        # What is still under way keeps its destination unreadable.
        for group in [*self.groups, self.open]:
            for op in group:
                if not op.landed:
                    op.poison()
        return done

    def under_way(self) -> list[Operation]:
        """Operations that have not landed."""
        return [op for group in [*self.groups, self.open] for op in group if not op.landed]
