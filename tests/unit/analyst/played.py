"""Traces written by hand: `"ls => in.csv check"` is a call and its answer, `"=> !text"` an answer that is an error."""

from arise.types import Observation, Rollout, StopReason, Task, ToolCall, Trajectory, Turn


def turn_of(step: str) -> Turn:
    """`say: text` speaks, everything else is a shell command with its answer."""
    if step.startswith("say: "):
        return Turn(step.removeprefix("say: "))
    command, _, answer = step.partition(" => ")
    error = answer.startswith("!")
    call = ToolCall("bash", {"command": command})
    return Turn(f"$ {command}", (call,), (Observation(answer.removeprefix("!"), error=error),))


def play(*steps: str, stop: StopReason = StopReason.FINISHED, system_prompt: str = "", name: str = "j1") -> Trajectory:
    """A trajectory of these steps."""
    return Trajectory(name, "t1", tuple(map(turn_of, steps)), stop, system_prompt)


def rollout(*steps: str, reward: float | None = 0.0, name: str = "j1", system_prompt: str = "") -> Rollout:
    """A rollout of these steps with any reward."""
    return Rollout(play(*steps, name=name, system_prompt=system_prompt), reward, None if reward is None else reward > 0)


def task(instruction: str, *skills: str) -> Task:
    return Task("t1", instruction, provided_skills=skills)
