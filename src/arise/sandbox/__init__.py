"""Places where agent commands run confined; bubblewrap is the default."""

from arise.ports import SandboxLost
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.layout import SandboxUnavailable, find_bubblewrap
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.pool import BubblewrapPool, missing_limits
from arise.sandbox.tree import TreeRefused

__all__ = [
    "MIB",
    "BubblewrapPool",
    "BubblewrapSandbox",
    "Limits",
    "SandboxLost",
    "SandboxUnavailable",
    "TreeRefused",
    "find_bubblewrap",
    "missing_limits",
]
