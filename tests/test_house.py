"""The house rules that no other tool checks: folders, locks, README, who imports what."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"trainer", "components", "pipelines", "infra", "tests", "requirements"}
REGISTRY = re.compile(r"https?://|index.url|find.links|trusted.host")


def tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.splitlines()


def imports(folder: str) -> Iterator[tuple[str, str]]:
    """Yields (file, module) for every import in a folder, also those inside functions."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((file.name, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield file.name, node.module


def test_the_top_level_holds_the_five_folders() -> None:
    top = {path.split("/")[0] for path in tracked() if "/" in path}
    assert {name for name in top if not name.startswith(".")} == FOLDERS


LOCKS = [path.stem for path in sorted((ROOT / "requirements").glob("*.txt"))]


@pytest.mark.parametrize("name", [name for name in LOCKS if name != "orbit"])
def test_a_lock_has_a_hash_for_everything_and_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert not REGISTRY.search(text)
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[a-z0-9._-]+(\[[a-z0-9,_-]+\])?==\S+ ", requirement), requirement
        assert "--hash=sha256:" in requirement


@pytest.mark.parametrize("build", ["cpu", "gpu"])
def test_the_images_have_the_versions_that_are_tested(build: str) -> None:
    """But for TensorFlow's build; tensorflow-tpu is another release, with versions of its own."""

    def versions(name: str) -> set[str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        lines = [line.split(" ")[0] for line in text.splitlines() if not line.startswith(" ")]
        return {line for line in lines if not line.startswith(("tensorflow-cpu", "nvidia-"))}

    assert versions(f"trainer-{build}") - {"tensorflow==2.21.0"} <= versions(f"castell-{build}")
    assert versions(f"castell-{build}") <= versions("dev")


def test_the_trainer_stands_alone() -> None:
    others = ("kfp", "google.cloud", "tfx_bsl", "pyarrow", "components", "pipelines")
    for file, module in imports("trainer"):
        assert not any(f"{module}.".startswith(f"{other}.") for other in others), (file, module)


def test_what_the_readme_tells_to_make_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"\bmake ([a-z]+)\b", (ROOT / document).read_text()))
        assert named
        assert named <= targets, document


def test_what_the_readme_tells_to_run_is_a_command() -> None:
    from pipelines.cli import COMMANDS

    named = set(re.findall(r"^castell ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)


def test_nothing_speaks_of_the_machine_it_was_written_on() -> None:
    machine = re.compile(r"(?<![\w./-])/(work|tmp/w|farm)/")
    for path in tracked():
        file = ROOT / path
        if file.suffix in {".py", ".md", ".toml", ".yaml", ".txt", ".jinja", ""}:
            assert not machine.search(file.read_text()), path
