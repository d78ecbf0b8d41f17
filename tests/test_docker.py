"""The files in docker/: what can be seen without building an image. docker/replay.py builds and tries it."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
DOCKER = ROOT / "docker"
sys.path.insert(0, str(DOCKER))

import dockerfile  # noqa: E402
import lock  # noqa: E402

sys.path.remove(str(DOCKER))

STAGES = dockerfile.stages(dockerfile.parse((DOCKER / "Dockerfile").read_text(encoding="utf-8")))
FINAL = STAGES[-1]
IGNORED = dockerfile.ignore_patterns((ROOT / ".dockerignore").read_text(encoding="utf-8"))


def texts(name: str, stage: dockerfile.Stage = FINAL) -> list[str]:
    """The texts of the instructions of a name in a stage."""
    return [item.text for item in stage.instructions if item.name == name]


def variables(stage: dockerfile.Stage) -> dict[str, str]:
    """What ENV sets in a stage."""
    return {name: value for item in stage.instructions if item.name == "ENV" for name, value in item.pairs().items()}


# ---- the reader --------------------------------------------------------------------------------------------------------------


def test_instructions_are_read() -> None:
    text = "# a remark\nFROM a:1 AS b\nRUN x \\\n    # inside\n    && y\nCOPY --from=b /p \\\n  q/\n"
    text += 'ENTRYPOINT ["e", "f g"]\nARG A=1 B\n'
    found = [(item.line, item.name, item.flags, item.words()) for item in dockerfile.parse(text)]
    assert found == [
        (2, "FROM", {}, ["a:1", "AS", "b"]),
        (3, "RUN", {}, ["x", "&&", "y"]),
        (6, "COPY", {"from": "b"}, ["/p", "q/"]),
        (8, "ENTRYPOINT", {}, ["e", "f g"]),
        (9, "ARG", {}, ["A=1", "B"]),
    ]
    assert dockerfile.parse("ENV A=1 B=\"x y\" C=''")[0].pairs() == {"A": "1", "B": "x y", "C": ""}
    assert dockerfile.substitute("$A-${B}-${C}-$", {"A": "1", "B": "2"}) == "1-2--$"


@pytest.mark.parametrize("text", ["MAINTAINER me", "RUN x \\", "RUN cat <<EOF"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        dockerfile.parse(text)


def test_ignored_files() -> None:
    patterns = ["*", "!a", "!b/c.txt", "**/skip", "**/*.o"]
    names = ["x", "x/y", "a", "a/b/c", "b/c.txt", "b/d.txt", "a/skip", "a/b/skip/c", "a/b.o", "a/b.oo"]
    assert [name for name in names if not dockerfile.ignored(name, patterns)] == ["a", "a/b/c", "b/c.txt", "a/b.oo"]


# ---- the image ---------------------------------------------------------------------------------------------------------------


def test_base_images_are_pinned() -> None:
    names = {stage.name for stage in STAGES}
    outside = [stage.base for stage in STAGES if stage.base not in names]
    assert outside
    for image in outside:
        assert re.fullmatch(r"nvidia/cuda:\d+\.\d+\.\d+-base-ubuntu24\.04@sha256:[0-9a-f]{64}", image), image
    (label,) = re.findall(r'base\.name="([^"]+)"', texts("LABEL")[0])
    assert outside == [image for image in outside if label == "docker.io/" + image.partition("@")[0]]


def test_the_final_image_is_not_run_by_root() -> None:
    (user,) = texts("USER")
    assert re.fullmatch(r"[1-9]\d*:0", user)
    last = [item.name for item in FINAL.instructions]
    assert "RUN" not in last[last.index("USER") :]
    assert "COPY" not in last[last.index("USER") :]


def test_the_entry_point_is_the_command_line() -> None:
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    (entry,) = [item for item in FINAL.instructions if item.name == "ENTRYPOINT"]
    assert entry.is_list()
    assert entry.words()[0] in scripts
    assert texts("STOPSIGNAL") == ["SIGINT"]  # which Python turns into KeyboardInterrupt, also in process 1


def test_what_is_copied_exists_and_is_in_the_context() -> None:
    n_copies = 0
    for stage in STAGES:
        for item in stage.instructions:
            if item.name == "COPY" and "from" not in item.flags:
                for source in item.words()[:-1]:
                    n_copies += 1
                    assert (ROOT / source).exists(), source
                    assert not dockerfile.ignored(source, IGNORED), source
            elif item.name == "COPY":
                assert item.flags["from"] in {other.name for other in STAGES}
    assert n_copies >= 6


def test_the_context_is_small() -> None:
    """Nothing but what is copied: no history, no data, no notes, no settings of an editor."""
    for name in (".git/config", ".env", "tests/test_docker.py", "docker/replay.py", "data/x.csv", "gpuboost/__pycache__/b.pyc"):
        assert dockerfile.ignored(name, IGNORED), name


def test_loops_are_compiled_where_and_as_they_are_looked_for() -> None:
    builder = next(stage for stage in STAGES if stage.name == "builder")
    names = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR")
    assert [variables(builder)[name] for name in names] == [variables(FINAL)[name] for name in names]
    assert texts("ARG", builder) == texts("ARG")
    assert variables(FINAL)["GPUBOOST_FATBIN"] in " ".join(texts("RUN", builder))
    copied = [word for text in texts("COPY") for word in text.split()]
    assert all(variables(FINAL)[name].startswith(copied[1] + "/") for name in ("NUMBA_CACHE_DIR", "GPUBOOST_FATBIN"))


# ---- versions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-build.txt"])
def test_locked_versions_are_those_that_the_project_asks_for(file: str) -> None:
    locked = {}
    for line in (DOCKER / file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"([a-z0-9.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line)
            assert match, line
            locked[match[1]] = match[2]
    for text in lock.wanted()[file]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[requirement.name]), text
    assert not {"nvidia-cuda-nvrtc", "pip"} & set(locked)


def test_nvcc_is_of_the_release_of_the_base_image() -> None:
    (release,) = re.findall(r"nvidia/cuda:([\d.]+)", STAGES[0].base)
    assert lock.NVCC.endswith(f"=={release}")


# ---- examples ----------------------------------------------------------------------------------------------------------------


def options_of_fit() -> set[str]:
    """The options of ``gpuboost fit``."""
    from gpuboost import cli

    command: Any = cli.main.commands["fit"]  # type: ignore[attr-defined]
    return {name for parameter in command.params for name in parameter.opts}


def test_compose_file() -> None:
    service = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]["fit"]
    assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DOCKER / "Dockerfile"
    assert service["volumes"] == [f"./data:{texts('WORKDIR')[0]}"]
    check_command(service["command"])


def test_kubernetes_job() -> None:
    job = yaml.safe_load((DOCKER / "job.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "OnFailure"
    assert str(pod["securityContext"]["runAsUser"]) == texts("USER")[0].partition(":")[0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert texts("WORKDIR")[0] in {mount["mountPath"] for mount in container["volumeMounts"]}
    check_command(container["args"])


def check_command(words: list[str]) -> None:
    """A training that goes on after an interruption, by options that there are."""
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert {"--checkpoint", "--resume", "--out"} <= options
    assert options <= options_of_fit()
    assert not any(fnmatch(word, "*:latest") for word in words)
