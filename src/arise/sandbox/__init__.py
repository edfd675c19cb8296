"""Sandboxes that confine agent commands; bubblewrap is the default."""

from arise.ports import SandboxLost, TreeRefused
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.layout import SandboxUnavailable, find_bubblewrap
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.pool import BubblewrapPool, bubblewrap_capabilities, missing_limits
from arise.sandbox.verification import BubblewrapVerifierPool

__all__ = [
    "MIB",
    "BubblewrapPool",
    "BubblewrapSandbox",
    "BubblewrapVerifierPool",
    "Limits",
    "SandboxLost",
    "SandboxUnavailable",
    "TreeRefused",
    "bubblewrap_capabilities",
    "find_bubblewrap",
    "missing_limits",
]
