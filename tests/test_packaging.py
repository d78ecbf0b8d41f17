"""Facts about the distribution that users, or .ci/run, rely on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import gpuboost

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def distribution(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return name[0]


def test_hard_dependencies_need_no_gpu() -> None:
    names = {distribution(line) for line in PYPROJECT["project"]["dependencies"]}
    assert names == {"numpy", "numba", "scikit-learn", "click", "joblib", "tqdm"}


def test_extras() -> None:
    extras = {
        extra: {distribution(line) for line in lines} for extra, lines in PYPROJECT["project"]["optional-dependencies"].items()
    }
    assert extras["cuda12"] == {"cupy-cuda12x"}
    assert extras["cuda13"] == {"cupy-cuda13x"}
    assert extras["plot"] == {"matplotlib"}
    assert extras["dev"] >= {"gpuboost-ml", "ruff", "mypy"}


def test_version_stands_in_one_place() -> None:
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    source = ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]
    assert Path(gpuboost.__file__).resolve() == source
    versions = re.findall(r'^__version__ = "(.*)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    assert versions == [gpuboost.__version__]


def test_changelog_starts_with_this_version() -> None:
    headings = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == gpuboost.__version__


def test_package_is_marked_as_typed() -> None:
    assert (ROOT / "gpuboost" / "py.typed").is_file()


def test_readme_start_is_two_commands() -> None:
    section = re.search(r"^## Start\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert section is not None
    blocks = re.findall(r"^```sh\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    assert all(block.count("\n") == 1 and block.strip() for block in blocks)
    main_job, tests = blocks
    assert "-m gpuboost" in main_job
    assert tests.endswith("-m pytest\n")


def test_readme_names_the_right_distribution() -> None:
    """The distribution is gpuboost-ml; another name would fetch somebody else's package."""
    wrong = re.compile(r"pip install[^\n&|;`]*\bgpuboost\b(?!-ml\b)")
    assert wrong.search("pip install 'gpuboost[cuda12]'")
    assert not wrong.search("pip install -q . && python -m gpuboost demo; pip install gpuboost-ml")
    assert not wrong.search(README)
