"""The offline analyst: a judge and a reflector that need no account and no language model.

It reads recorded traces of any harness with tool calls. It never sees a reward and knows nothing of tasks or worlds.
"""

from arise.analyst.judge import OfflineJudge
from arise.analyst.reflector import OfflineReflector

__all__ = ["OfflineJudge", "OfflineReflector"]
