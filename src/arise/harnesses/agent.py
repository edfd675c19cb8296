"""A harness as the agent of a rollout: its own prompts, tools and loop, with every policy token recorded."""

from dataclasses import dataclass, replace

from arise.endpoint.policy import Policy
from arise.endpoint.rows import BrokenRecord, Export, export
from arise.endpoint.sessions import CallLimits, Session
from arise.harnesses.launch import Ended, Launcher, silence
from arise.ports import PolicyLost, Sandbox, SandboxLost
from arise.rollouts.time_limit import UP
from arise.types import ShownSkill, StopReason, Task, Trajectory


@dataclass(frozen=True)
class HarnessAgent:
    """Run a harness in the sandbox of an attempt; `base` is the prompt to which guidance is appended.

    The harness has its own system prompt, so only the text after `base` is passed to it.
    """

    launcher: Launcher
    policy: Policy
    limits: CallLimits
    base: str = ""

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Run one attempt; a session that lost a call is a fault, because its row would have a gap."""
        guidance = system.removeprefix(self.base).strip()
        session = Session(self.policy, self.limits, key, seed, guidance)
        ended = await self.launcher.run(
            session, sandbox, task.instruction, self.policy.window, self.limits.tokens_per_call
        )
        if session.fault:
            raise PolicyLost(session.fault)
        if not session.history.calls:
            raise self._unheard(session, ended)
        try:
            record = export(session.history)
        except BrokenRecord as error:
            raise PolicyLost(f"the token record contradicts itself: {error}") from error
        return _trajectory(task, key, record, stop_of(session, ended), shown)

    def _unheard(self, session: Session, ended: Ended) -> Exception:
        """Return the fault of an attempt in which the policy sampled nothing, which it cannot have caused."""
        if not session.overflows:
            return SandboxLost(silence(self.launcher.harness, ended))
        return PolicyLost(
            f"the first prompt of {self.launcher.harness.name} does not fit into the model's window of "
            f"{self.policy.window} tokens: raise sampling.context_length, or shorten the instruction or the prompt"
        )


def _trajectory(task: Task, key: str, record: Export, stop: StopReason, shown: tuple[ShownSkill, ...]) -> Trajectory:
    trajectory = Trajectory(key, task.id, record.turns, stop, record.system_prompt, record.rows)
    return replace(trajectory, shown_skills=shown)


def stop_of(session: Session, ended: Ended) -> StopReason:
    """Return why an attempt ended: session limit, time limit, full context window, or the harness's own exit."""
    if session.stop is not None:
        return session.stop
    if ended.how in ("timeout", UP):
        return StopReason.TIME_LIMIT
    return StopReason.CONTEXT_LIMIT if session.overflows else StopReason.FINISHED
