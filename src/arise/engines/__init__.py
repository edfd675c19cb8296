"""Policies that sample and train: the embedded PyTorch engine and its models. Only this package imports torch."""
