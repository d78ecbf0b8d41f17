"""Write requirements.txt and requirements-build.txt beside this file: ``python docker/lock.py``.

The first has what pyproject.toml asks for, with the extras cuda13 and plot, in the newest versions; the second has nvcc and the
build back end. Both are for the Python and the architecture of the image, with one hash a file: pip then installs just these.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent

EXTRAS = ("cuda13", "plot")

NOT_IN_IMAGE = ("cuda-toolkit",)
"""NVRTC and headers compile kernels, which the image has compiled. (The CUDA run-time is in CuPy itself.)"""

NVCC = "cuda-toolkit[nvcc,crt,nvvm,cudart]==13.0.2"
"""The compiler, and the headers that it includes, of the base image's CUDA: every driver from 580 on takes its PTX."""

PLATFORM = ["--python-version", "3.12", "--implementation", "cp", "--only-binary", ":all:"]
PLATFORM += [f"--platform=manylinux_2_{minor}_x86_64" for minor in range(39, 16, -1)]
PLATFORM += ["--platform=manylinux2014_x86_64", "--platform=manylinux2010_x86_64"]


def wanted() -> dict[str, list[str]]:
    """Return the requirements of each file."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    run = [*project["project"]["dependencies"]]
    for extra in EXTRAS:
        run += project["project"]["optional-dependencies"][extra]
    run = [line for line in run if not line.startswith(NOT_IN_IMAGE)]
    return {"requirements.txt": run, "requirements-build.txt": [*project["build-system"]["requires"], NVCC]}


def resolve(requirements: list[str]) -> list[str]:
    """Return the lines of a requirements file: name, version and hash of everything that pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", *PLATFORM]
        command += ["--target", folder, "--report", f"{folder}/report.json", *requirements]
        subprocess.run(command, check=True)
        report = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"]
        lines.append(f"{name}=={version} --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}\n")
    return sorted(lines)


def main() -> None:
    """Write both files."""
    for file, requirements in wanted().items():
        lines = resolve(requirements)
        (HERE / file).write_text("# Written by lock.py; not edited by hand.\n" + "".join(lines), encoding="utf-8")
        print(f"lock.py: {len(lines)} packages in {file}")


if __name__ == "__main__":
    main()
