"""The offline analyst: judge and reflector that need no account and no language model.

It reads recorded traces of any harness with tool calls. It never sees a reward and knows no task and no world.
"""

from arise.analyst.judge import OfflineJudge
from arise.analyst.reflector import OfflineReflector

__all__ = ["OfflineJudge", "OfflineReflector"]
