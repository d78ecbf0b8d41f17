"""Imagined machines: which driver, which CuPy and which devices `gpuboost.backends.cuda.availability` finds."""

from __future__ import annotations

import ctypes
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from gpuboost import devices
from gpuboost.backends.cuda import availability, cupy_gpu, fatbin, kernels, loss
from gpuboost.backends.reference.backend import NumpyBackend
from tests.fake_cupy import Cuda, RawModule


class CudaBackend(NumpyBackend):
    """Stands for the backend of CUDA devices; it trains the same model, as that must."""

    def __init__(self, gpu: cupy_gpu.CupyGpu) -> None:
        super().__init__()
        self.gpu, self.device = gpu, gpu.label


class Machine:
    """A machine without any trace of CUDA, and what can be put into it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.distributions: list[tuple[str, str]] = []
        self.cuda: Cuda | None = None
        self.questions = 0
        for cached in (
            availability.driver,
            availability.import_cupy,
            availability.cupy_distributions,
            availability.common_problem,
        ):
            cached.cache_clear()
        monkeypatch.delitem(sys.modules, "cupy", raising=False)
        metadata, util = types.SimpleNamespace(distributions=self.installed), types.SimpleNamespace(find_spec=self.spec)
        monkeypatch.setattr(availability, "importlib", types.SimpleNamespace(metadata=metadata, util=util))
        monkeypatch.setattr(
            availability, "ctypes", types.SimpleNamespace(CDLL=self.library, c_int=ctypes.c_int, byref=lambda x: x)
        )
        monkeypatch.setattr(availability, "initialised_in", None)
        monkeypatch.setattr(devices, "working", set())
        monkeypatch.setattr(devices, "told", set())
        monkeypatch.setattr(cupy_gpu, "FUNCTIONS", {})
        loss.LOST.clear()
        monkeypatch.setitem(sys.modules, "gpuboost.backends.cuda.backend", self.backend())
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        self.driver: Any = OSError("libcuda.so.1: cannot open shared object file: No such file or directory")
        self.files([])

    def files(self, names: list[str]) -> None:
        """Put files into /dev."""
        self.monkeypatch.setattr(availability, "device_files", lambda: names)

    def cupy(self, *distributions: str, **cuda: Any) -> Cuda:
        """Install distributions of CuPy and the devices they see."""
        self.distributions = [(name, "14.2.0") for name in distributions]
        self.cuda = Cuda(**cuda)
        self.monkeypatch.setitem(sys.modules, "cupy", self.cuda.module())
        return self.cuda

    def usable(self, n_devices: int = 1) -> Cuda:
        """Make it a machine where CUDA works."""
        self.driver = 13000
        self.files([f"/dev/nvidia{i}" for i in range(n_devices)])
        cuda = self.cupy("cupy-cuda13x", n_devices=n_devices)
        cuda.kernels["init_roots"] = number_rows
        return cuda

    def without_nvrtc(self, n_devices: int = 1) -> Cuda:
        """Make it a machine where CUDA works, but CuPy cannot compile."""
        cuda = self.usable(n_devices)
        cuda.nvrtc_version = missing = RuntimeError("CuPy failed to load libnvrtc.so.13")

        def load(module: RawModule) -> None:
            if module.code is not None:
                raise missing

        cuda.load = load
        return cuda

    def fatbins(self, folder: Path) -> None:
        """Compile all kernels ahead."""
        files = {}
        for file in {kernel.file for kernel in kernels.KERNELS.values()}:
            path = folder / f"{file}.fatbin"
            path.write_text(f"machine code of {file}")
            files[file] = {"source": fatbin.fingerprint(file), "fatbin": fatbin.checksum(path)}
        (folder / fatbin.MANIFEST).write_text(json.dumps({"architectures": [90], "files": files}))
        self.monkeypatch.setenv(fatbin.VARIABLE, str(folder))

    def spec(self, name: str) -> object | None:
        assert name == "cupy"
        return object() if self.distributions else None

    def installed(self) -> list[Any]:
        self.questions += 1
        others = [("numpy", "2.0"), (None, "0"), ("cupy-xarray", "0.1"), ("Cupyx_other", "1")]
        return [types.SimpleNamespace(metadata={"Name": name}, version=v) for name, v in others + self.distributions]

    def library(self, name: str) -> Any:
        assert name in ("libcuda.so.1", "nvcuda.dll")
        if isinstance(self.driver, Exception):
            raise self.driver

        def version(out: Any) -> int:
            if self.driver < 0:
                return int(-self.driver)
            out.value = self.driver
            return 0

        return types.SimpleNamespace() if self.driver == 0 else types.SimpleNamespace(cuDriverGetVersion=version)

    @staticmethod
    def backend() -> types.ModuleType:
        module: Any = types.ModuleType("gpuboost.backends.cuda.backend")
        module.CudaBackend = CudaBackend
        return module


def number_rows(rows: Any, *rest: Any) -> None:
    """What the first output of the kernel ``init_roots`` is, without its table."""
    assert kernels.KERNELS["init_roots"].parameters[0].name == "rows"
    n = rows.size
    rows.data.bytes(rows.nbytes).view("i4")[:] = range(n)
