"""What kfp 2.17 does that our pipelines are shaped by; an upgrade that changes it shows here."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import pytest
from kfp import dsl, local

from components.image import with_image


@dsl.component(base_image="python", install_kfp_package=False)
def named() -> NamedTuple("Verdict", passed=bool):  # type: ignore[valid-type]
    return (True,)


@dsl.component(base_image="python", install_kfp_package=False)
def unnamed() -> bool:
    return True


@dsl.component(base_image="python", install_kfp_package=False)
def numbers(whole: int, inside: list, mapping: dict) -> str:  # type: ignore[type-arg]
    return f"{whole!r} {inside!r} {mapping!r}"


@dsl.component(base_image="python", install_kfp_package=False)
def after() -> None:
    print("it ran")


@dsl.pipeline(name="on-named")
def on_named() -> None:
    with dsl.If(named().outputs["passed"] == True):  # noqa: E712
        after()


@dsl.pipeline(name="on-unnamed")
def on_unnamed() -> None:
    with dsl.If(unnamed().outputs["Output"] == True):  # noqa: E712
        after()


def output_of(pipeline: object, root: Path, **arguments: object) -> str:
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(root))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        pipeline(**arguments)  # type: ignore[operator]
    return out.getvalue()


@pytest.mark.timeout(60)
def test_a_condition_on_a_named_output_is_taken_for_false(tmp_path: Path) -> None:
    assert "it ran" in output_of(on_unnamed, tmp_path)
    assert "it ran" not in output_of(on_named, tmp_path)


@pytest.mark.timeout(60)
def test_whole_numbers_inside_lists_and_mappings_arrive_as_floats(tmp_path: Path) -> None:
    out = output_of(numbers, tmp_path, whole=7, inside=[7], mapping={"a": 7})
    assert "7 [7.0] {'a': 7.0}" in out


def test_a_step_s_python_is_the_child_of_a_shell_unless_it_takes_its_place() -> None:
    """SIGTERM to a container reaches its first process alone."""
    theirs, ours = (
        " ".join(component.component_spec.implementation.container.command)
        for component in (after, with_image(after, "x"))
    )
    assert "_KFP_RUNTIME=true python3 -m kfp.dsl.executor_main" in theirs
    assert "_KFP_RUNTIME=true exec python3 -m kfp.dsl.executor_main" in ours
