"""pyproject.toml and constraints.txt agree, and pin what has to be pinned."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.pins import constraints, project, requirements

# The extra cuda12 stands apart: it pins its versions itself, since they contradict those for CUDA 13.
CONSTRAINED = ("cuda", "dev", "hip", "lab", "torch")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def environment(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.9"}


@pytest.mark.parametrize("name", ["apache-tvm", "apache-tvm-ffi"])
def test_tvm_is_pinned_exactly_in_the_dependencies(name: str) -> None:
    (requirement,) = (r for r in requirements(()) if r.name == name)
    assert [s.operator for s in requirement.specifier] == ["=="]


def test_every_constraint_is_one_exact_version() -> None:
    for pin in constraints():
        assert [s.operator for s in pin.specifier] == ["=="], str(pin)


@pytest.mark.parametrize("python", PYTHONS)
def test_no_package_is_pinned_twice_for_one_python(python: str) -> None:
    where = environment(python)
    names = [p.name for p in constraints() if p.marker is None or p.marker.evaluate(where)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_constraints_fulfil_every_requirement(python: str) -> None:
    where = environment(python)
    pins = {p.name: p for p in constraints() if p.marker is None or p.marker.evaluate(where)}
    for requirement in requirements(CONSTRAINED):
        if requirement.marker and not requirement.marker.evaluate(where):
            continue
        pin = pins[canonicalize_name(requirement.name)]
        (version,) = (s.version for s in pin.specifier)
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} against {pin}"


def test_the_cuda_12_extra_pins_its_own_versions() -> None:
    for line in project()["optional-dependencies"]["cuda12"]:
        assert [s.operator for s in Requirement(line).specifier] == ["=="]


def test_torch_is_no_dependency_of_the_compiler_or_the_course() -> None:
    assert "torch" not in {r.name for r in requirements(["cuda", "hip", "lab"])}


def test_the_extras_are_the_documented_ones() -> None:
    assert set(project()["optional-dependencies"]) == {"cuda", "cuda12", "dev", "hip", "lab", "torch"}
