"""Try a device without loading the engine."""

import torch


def torch_on(device: str) -> str:
    """Return torch's version once it has computed on `device`; raise what it raises."""
    torch.zeros(1, device=device)
    return torch.__version__
