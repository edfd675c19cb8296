"""Policies that sample and train. `local` is the PyTorch engine; only this package imports torch."""

import os

# Read by MKL at its first product: without it, some processors choose a product's order of sums by a tensor's address.
os.environ.setdefault("MKL_CBWR", "AUTO")
# Read by oneDNN at its first kernel: some virtual machines report AMX and fault on its first instruction, which
# torch's attention in half precision would use.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
