"""The CUDA backend: kernels queued on a device."""
