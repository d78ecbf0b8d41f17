"""Compile the kernels ahead of time: ``python kernels/build.py DIR``.

Writes one fatbin for every ``.cu`` file beside this script, and ``manifest.json``, to DIR: all of them, or none. gpuboost finds
them if DIR is this folder, or if the environment variable GPUBOOST_FATBIN names it; NVRTC and CUDA headers are then not needed.
Needs ``nvcc`` of CUDA 12.8 or newer with its host compiler, but no GPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if (ROOT / "gpuboost").is_dir():  # a checkout, which need not be installed
    sys.path.insert(0, str(ROOT))

from gpuboost.backends.cuda import fatbin, kernels  # noqa: E402

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Compute capabilities with machine code; the last one also as PTX, which newer devices compile for themselves."""


def find_compiler() -> str:
    """Return nvcc: that of $NVCC, of $PATH, or of $CUDA_PATH."""
    cuda = os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    candidates = (os.environ.get("NVCC"), "nvcc", f"{cuda}/bin/nvcc")
    found = next((path for name in candidates if name and (path := shutil.which(name))), None)
    if found is None:
        sys.exit(
            f"build.py: nvcc was not found, neither in $NVCC nor in $PATH nor in {cuda}/bin. Install the CUDA toolkit "
            "(12.8 or newer), or build in an image that has it: nvidia/cuda:13.0.1-devel-ubuntu24.04. Without fatbins nothing "
            "is lost but start-up time: gpuboost then compiles its kernels at first use."
        )
    return found


def run(command: list[str]) -> str:
    """Run a compiler, and return what it prints; end the build with its messages if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"build.py: {' '.join(command)}\n{result.stdout}{result.stderr}\nbuild.py: failed, nothing was written")
    return result.stdout


def compile_file(nvcc: str, file: str, target: Path, scratch: Path) -> None:
    """Compile ``<file>.cu`` as it is compiled at run time: its headers pasted in, with the same options."""
    text = scratch / f"{file}.cu"
    text.write_text(kernels.source(file), encoding="utf-8")
    codes = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in ARCHITECTURES]
    newest = ARCHITECTURES[-1]
    codes.append(f"-gencode=arch=compute_{newest},code=compute_{newest}")
    run([nvcc, "-fatbin", *kernels.OPTIONS, *codes, "-o", str(target), str(text)])


def build(target: Path) -> dict[str, Any]:
    """Build everything beside the target folder's files, then move it there, the manifest last. Return the manifest."""
    nvcc = find_compiler()
    release = re.search(r"release ([\d.]+)", run([nvcc, "--version"]))
    target.mkdir(parents=True, exist_ok=True)
    files = sorted(path.stem for path in kernels.source_folder().glob("*.cu"))
    with tempfile.TemporaryDirectory(dir=target, prefix=".build-") as name:
        scratch = Path(name)
        for file in files:
            print(f"build.py: {file}.cu", flush=True)
            compile_file(nvcc, file, scratch / f"{file}.fatbin", scratch)
        content = {
            "nvcc": release[1] if release else "unknown",
            "options": list(kernels.OPTIONS),
            "architectures": list(ARCHITECTURES),
            "files": {
                file: {"source": fatbin.fingerprint(file), "fatbin": fatbin.checksum(scratch / f"{file}.fatbin")}
                for file in files
            },
        }
        (scratch / fatbin.MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        for built in (*(f"{file}.fatbin" for file in files), fatbin.MANIFEST):
            os.replace(scratch / built, target / built)
    return content


def main() -> None:
    """Build into the folder that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: python {sys.argv[0]} DIR\n\n{__doc__}")
    target = Path(sys.argv[1])
    content = build(target)
    size = sum((target / f"{file}.fatbin").stat().st_size for file in content["files"])
    print(f"build.py: {len(content['files'])} fatbins, {size / 1024:.0f} KB, by nvcc {content['nvcc']}, in {target}")


if __name__ == "__main__":
    main()
