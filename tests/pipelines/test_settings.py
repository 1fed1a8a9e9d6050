"""Settings of targets: flag before environment before file; each mistake is one line."""

from pathlib import Path

import pytest

from pipelines import settings
from pipelines.submit.platform import SENT
from pipelines.targets.vertex.settings import VertexSettings
from trainer.errors import UsageError


def read(
    file: Path | None = None, flags: dict[str, str] | None = None, **environ: str
) -> VertexSettings:
    found = settings.read("vertex", flags or {}, file=str(file) if file else None, environ=environ)
    assert isinstance(found, VertexSettings)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text("vertex: {project: of-file, location: asia-east1, disk_gigabytes: 200}\n")
    return path


def test_a_flag_goes_before_the_environment_before_the_file(file: Path) -> None:
    found = read(file, {"project": "of-flag"}, CASTELL_VERTEX_PROJECT="of-environment")
    assert found.project == "of-flag"
    found = read(file, CASTELL_VERTEX_PROJECT="of-environment")
    assert (found.project, found.location) == ("of-environment", "asia-east1")
    assert read(file).project == "of-file"


def test_the_file_of_this_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read().project == ""
    Path("castell.yaml").write_text("vertex: {project: here}\nkfp: {host: http://x}\n")
    assert read().project == "here"


def test_texts_become_what_the_setting_is() -> None:
    found = read(
        flags={
            "evaluator": "true",
            "disk_gigabytes": "200",
            "labels": "{team: a}",
            "reserved_ip_ranges": "[one, two]",
            "nfs_mounts": "[{server: 10.0.0.1, path: /x, mount_point: x}]",
        }
    )
    assert (found.evaluator, found.disk_gigabytes, found.labels) == (True, 200, {"team": "a"})
    assert found.reserved_ip_ranges == ("one", "two")
    assert found.nfs_mounts[0].server == "10.0.0.1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("vertex: {projct: x}", "vertex.projct: no such setting, did you mean 'project'?"),
        ("vertx: {project: x}", "no section 'vertx', did you mean 'vertex'?"),
        ("vertex: x", "section vertex: must hold keys"),
        ("[vertex]", "must hold sections"),
        ("vertex: {project: 1}", "vertex.project (1): input should be a valid string"),
        ("vertex: {disk_gigabytes: 1}", "vertex.disk_gigabytes (1): input should be greater"),
        ("vertex: {nfs_mounts: [{server: x}]}", "vertex.nfs_mounts"),
        ("a: [", "is not YAML"),
        ("vertex: {labels: {a: 2026-13-45}}", "is not YAML: month must be"),
        ("vertex: {labels: " + "[" * 3000, "nested too deeply"),
        ("vertex: {project: a, project: b}", "'project' stands there twice"),
        ("vertex: {}\nvertex: {}", "'vertex' stands there twice"),
        ("vertex: {timeout_hours: .inf}", "vertex.timeout_hours (inf): input should be"),
        ("vertex: {max_wait_hours: 1.0e+300}", "vertex.max_wait_hours (1e+300): input should be"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "castell.yaml"
    file.write_text(content)
    with pytest.raises(UsageError) as raised:
        read(file)
    assert says in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match="CASTELL_VERTEX_PROJCT: no such setting, did you mean"):
        read(CASTELL_VERTEX_PROJCT="x")
    with pytest.raises(UsageError, match=r"--labels .*: no YAML list or mapping"):
        read(flags={"labels": "{a"})
    with pytest.raises(UsageError, match="--host: no setting of target vertex"):
        read(flags={"host": "x"})
    with pytest.raises(UsageError, match="--host: target local has no settings"):
        settings.read("local", {"host": "x"})


def test_what_counts_when_a_run_is_sent_is_a_setting() -> None:
    for target, keys in SENT.items():
        model = settings.model_of(target)
        assert model
        assert keys <= set(model.model_fields)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"labels": "{a: 2026-13-45}"}, "--labels is not YAML: month must be in 1..12"),
        ({"labels": "{a: " + "[" * 3000}, "--labels is nested too deeply"),
        ({"labels": "team"}, "write KEY=VALUE,KEY=VALUE or {KEY: VALUE, …}"),
        ({"labels": "a=1,a=2"}, "a key stands there twice"),
        ({"nfs_mounts": "here"}, "write [{KEY: VALUE, …}, …]"),
        ({"timeout_hours": "inf"}, "--timeout-hours (inf): input should be a finite number"),
        ({"max_wait_hours": "nan"}, "--max-wait-hours (nan): input should be a finite number"),
    ],
)
def test_a_mistake_in_a_flag_is_named(flags: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(flags=flags)
    assert says in str(raised.value)
    assert len(str(raised.value)) < 400


def test_texts_with_commas_are_lists_and_mappings() -> None:
    found = read(flags={"labels": "team=ml, env=a=b", "reserved_ip_ranges": "one,two"})
    assert found.labels == {"team": "ml", "env": "a=b"}
    assert found.reserved_ip_ranges == ("one", "two")
    assert read(flags={"labels": ""}).labels == {}
    assert read(flags={"project": "[a, b"}).project == "[a, b"


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    text = "[SECRET, a]"
    found = settings.read("kfp", {}, environ={"CASTELL_KFP_TOKEN": text})
    assert found.token == text
    file = tmp_path / "castell.yaml"
    for content in ("[SECRET, a]", "{SECRET: 1", "[SECRET", "SECRET: a: b"):
        file.write_text(f"kfp:\n  token: {content}\n")
        with pytest.raises(UsageError) as raised:
            settings.read("kfp", {}, file=str(file), environ={})
        assert "SECRET" not in str(raised.value)


def test_a_section_without_keys_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "castell.yaml"
    file.write_text("vertex:\n  # project: x\n")
    assert read(file).project == ""
    file.write_text("")
    assert read(file).project == ""


def test_a_directory_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("castell.yaml").mkdir()
    with pytest.raises(UsageError, match=r"castell.yaml: Is a directory: must be a file"):
        read()


def test_a_variable_of_no_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    read(CASTELL_VERTX_PROJECT="x")
    said = capsys.readouterr().err
    assert said == (
        "castell: CASTELL_VERTX_PROJECT is ignored: no target 'vertx', did you mean 'vertex'?\n"
    )
    ours = ("IMAGE", "WORKER_HOSTS", "RUN_COPIES", "DOCKER", "GOLDEN", "KFP_HOST")
    settings.read("vertex", {}, environ={f"CASTELL_{name}": "x" for name in ours})
    assert not capsys.readouterr().err
