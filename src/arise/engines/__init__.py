"""Policies that sample and train. `local` is the PyTorch engine; only this package imports torch."""

import os

# MKL reads this at its first matmul. Without it, some CPUs choose the summation order by memory alignment.
os.environ.setdefault("MKL_CBWR", "AUTO")
# oneDNN reads this at its first kernel. Some virtual machines report AMX but fault on it, and half-precision attention
# would use it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
