"""Policies that sample and train: the embedded PyTorch engine and its models. Only this package imports torch."""

import os

# Read by MKL at its first product: without it, some processors choose a product's order of sums by a tensor's address.
os.environ.setdefault("MKL_CBWR", "AUTO")
