"""The demo: one line a target that starts with the target and ends in ok or in the reason, and a page."""

from __future__ import annotations

import re

import pytest

from tilelab.cli import demo, main
from tilelab.cli.demo import LEGS, LIMIT, Leg
from tilelab.errors import TileError

TARGETS = [leg.target for leg in LEGS]


@pytest.mark.slow
def test_the_demo_ends_in_ok_for_every_target(capsys, tmp_path):
    page = tmp_path / "demo.html"
    status = main(["demo", "--html", str(page)])
    out = capsys.readouterr().out
    last = out.strip().splitlines()[-3:]
    assert [line.partition(": ")[0] for line in last] == TARGETS
    assert all(line.endswith(" ok") for line in last), last
    for line in last:
        errors = [float(x) for x in re.findall(r"error (\S+) against", line)]
        assert len(errors) == 2
        assert all(0 < e < LIMIT for e in errors)
    assert "512×768×1024" in last[0]
    assert "509×767×1021" in last[0]
    assert "plan_layouts" in out
    assert status == 0
    from tilelab.cli.viewers import viewer

    if viewer("html") is not None:
        assert "<html" in page.read_text()


def test_a_target_that_fails_ends_in_the_reason_and_status_one(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "LEGS", (Leg("llvm", ((32, 32, 32),)), Leg("hip:gfx942", ((32, 32, 32),))))
    real = demo._one

    def fails_for_hip(matmul, target, sizes):
        if target.startswith("hip"):
            raise TileError("TL403", "no compiler for gfx942")
        return real(matmul, target, sizes)

    monkeypatch.setattr(demo, "_one", fails_for_hip)
    status = main(["demo", "--html", str(tmp_path / "demo.html")])
    first, second = capsys.readouterr().out.strip().splitlines()[-2:]
    assert status == 1
    assert first.startswith("llvm: ")
    assert first.endswith(" ok")
    assert second == "hip:gfx942: TL403: no compiler for gfx942"


def test_a_wrong_result_is_not_ok(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "LEGS", (Leg("llvm", ((32, 32, 32),)),))
    real = demo._one
    monkeypatch.setattr(demo, "_one", lambda *a: (*real(*a)[:2], float("nan")))
    assert main(["demo", "--html", str(tmp_path / "demo.html")]) == 1
    assert "not below 0.001" in capsys.readouterr().out
