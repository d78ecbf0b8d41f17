"""Facts about the distribution that users, or .ci/run, rely on."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import gpuboost
from gpuboost import doctor
from gpuboost.__main__ import main
from gpuboost.backends.cuda import availability, kernels
from gpuboost.registry import ALGORITHMS

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def distribution(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return name[0]


def test_hard_dependencies_need_no_gpu() -> None:
    names = {distribution(line) for line in PYPROJECT["project"]["dependencies"]}
    assert names == {"numpy", "numba", "scikit-learn", "click", "joblib", "tqdm", "pyarrow"}


def test_extras() -> None:
    extras = {
        extra: {distribution(line) for line in lines} for extra, lines in PYPROJECT["project"]["optional-dependencies"].items()
    }
    assert extras["cuda12"] == {"cupy-cuda12x", "cuda-toolkit"}
    assert extras["cuda13"] == {"cupy-cuda13x", "cuda-toolkit"}
    assert extras["plot"] == {"matplotlib"}
    assert extras["dev"] >= {"gpuboost-ml", "ruff", "mypy"}


def lower_bound(requirement: Requirement) -> Version:
    (bound,) = [specifier for specifier in requirement.specifier if specifier.operator in (">=", "==")]
    return Version(bound.version.removesuffix(".*"))


def test_the_lowest_versions_are_the_bounds() -> None:
    """A bound that nobody installs is a guess."""
    lines = (GITHUB / "lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = {pin.name: pin for pin in map(Requirement, (line for line in lines if line and not line.startswith("#")))}
    extras = PYPROJECT["project"]["optional-dependencies"]
    bounded = [*PYPROJECT["project"]["dependencies"]]
    for extra in ("plot", "onnx", "treelite", "shap", "test"):
        bounded += extras[extra]
    assert bounded
    for requirement in map(Requirement, bounded):
        pin = lowest[requirement.name]
        assert requirement.specifier.contains(lower_bound(pin)), f"{pin} is not {requirement}"
        assert lower_bound(pin) == lower_bound(requirement), f"{requirement} promises what {pin} does not test"


def test_the_workflow_tests_every_python() -> None:
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    tested = {*matrix["python"], *(job["python"] for job in matrix["include"])}
    heading = "Programming Language :: Python :: 3."
    named = {line.rpartition(" ")[2] for line in PYPROJECT["project"]["classifiers"] if line.startswith(heading)}
    assert tested == named
    assert PYPROJECT["project"]["requires-python"] == f">={min(named, key=Version)}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(GITHUB.glob("*.md"))], ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_no_other_extra_brings_cupy() -> None:
    """Two CuPy wheels overwrite each other's files, so nobody may get one without asking for it."""
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert [extra for extra, lines in extras.items() if any("cupy" in line for line in lines)] == [
        "cuda12",
        "cuda13",
    ]


def test_the_doctor_misses_what_the_package_needs() -> None:
    assert list(doctor.NEEDED) == [Requirement(line).name for line in PYPROJECT["project"]["dependencies"]]


def test_the_command_is_what_the_module_runs() -> None:
    """Its import needs no other package, so that it can say what is missing."""
    assert PYPROJECT["project"]["scripts"] == {"gpuboost": f"{main.__module__}:{main.__name__}"}


def test_the_toolkit_is_of_the_wheels_cuda() -> None:
    for major in ("12", "13"):
        lines = PYPROJECT["project"]["optional-dependencies"][f"cuda{major}"]
        assert f"cuda-toolkit[nvrtc,cudart]=={major}.*" in lines


def test_messages_advise_what_the_extras_bring() -> None:
    """Neither a checkout nor an index with gpuboost-ml is at hand for all who read them."""
    extras = PYPROJECT["project"]["optional-dependencies"]
    for version, extra in ((12040, "cuda12"), (13000, "cuda13")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(availability, "driver", lambda version=version: (version, ""))
            assert shlex.split(availability.install()) == ["pip", "install", *extras[extra]]
    package = Path(gpuboost.__file__).parent
    sources = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert [name for name, source in sources.items() if "gpuboost-ml[" in source and not name.startswith("cli/")] == []


def test_the_wheel_has_the_kernels_where_they_are_looked_for() -> None:
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"kernels": "gpuboost/kernels"}
    package = Path(gpuboost.__file__).resolve().parent
    assert kernels.source_folder() in (ROOT / "kernels", package / "kernels")


def test_version_stands_in_one_place() -> None:
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    source = ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]
    assert Path(gpuboost.registry.__file__).resolve() == source
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
    assert main_job.endswith(".venv/bin/gpuboost demo\n")
    assert tests.endswith("-m pytest -n auto\n")


def test_readme_names_the_right_distribution() -> None:
    """The distribution is gpuboost-ml; another name would fetch somebody else's package."""
    wrong = re.compile(r"pip install[^\n&|;`]*\bgpuboost\b(?!-ml\b)")
    assert wrong.search("pip install 'gpuboost[cuda12]'")
    assert not wrong.search("pip install -q . && python -m gpuboost demo; pip install gpuboost-ml")
    assert not wrong.search(README)


def test_the_readme_lists_every_algorithm_and_its_estimator() -> None:
    rows = [line.split("|") for line in README.splitlines() if line.startswith("|")]
    listed = {}
    for cells in rows:
        if len(cells) == 7 and "Classifier`" in cells[3]:
            names, classes = (re.findall(r"`([^`]+)`", cells[i]) for i in (4, 3))
            listed |= dict(zip([name.strip('"') for name in names], classes, strict=True))
    assert listed == {name: algorithm.estimator for name, algorithm in ALGORITHMS.items()}
