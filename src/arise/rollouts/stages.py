"""The stages of a task: its steps run in sequence in one sandbox, each verified before the next; most have one."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arise.ports import Sandbox
from arise.rollouts.verifier import SUCCESS, Verifier, VerifierResult
from arise.sandbox.health import NotReady, become_healthy
from arise.types import StepSpec, TaskSpec

SETUP_SECONDS = 600.0
Act = Callable[[TaskSpec], Awaitable[str]]
"""Works on one stage in the sandbox; returns a fault, or "" on success."""


def stages(task: TaskSpec) -> tuple[TaskSpec, ...]:
    """Return one task per step; a task without steps is its only stage."""
    return tuple(_stage(task, step) for step in task.steps) or (task,)


def _stage(task: TaskSpec, step: StepSpec) -> TaskSpec:
    agent = replace(
        task.agent,
        timeout=step.agent.timeout or task.agent.timeout,
        user=step.agent.user or task.agent.user,
        network=step.agent.network or task.agent.network,
    )
    return replace(
        task,
        task=replace(task.task, instruction=step.instruction),
        verifier=step.verifier,
        agent=agent,
        solution=step.solution,
        artifacts=(*task.artifacts, *step.artifacts),
        steps=(),
    )


async def run_stages(task: TaskSpec, sandbox: Sandbox, verifier: Verifier, act: Act) -> VerifierResult:
    """Run `act` on each stage and verify it; stop after a stage below its minimum reward."""
    found: list[VerifierResult] = []
    every, steps = stages(task), task.steps or (None,)
    for stage, step in zip(every, steps, strict=True):
        if step is not None:
            try:
                await _enter(task.directory / "steps" / step.name / "workdir", step, sandbox)
            except NotReady as error:
                if not found:
                    raise
                found.append(VerifierResult(0.0, False, reason=f"step {step.name} could not begin: {error}"))
                break  # the agent may have broken it in an earlier step
        if fault := await act(stage):
            return VerifierResult(None, None, fault)
        found.append(await verifier.verify(sandbox, stage, last=stage is every[-1]))
        if found[-1].reward is None or (step is not None and not _passes(found[-1], step.min_reward)):
            break
    return found[0] if not task.steps else combine(found, task.reward_strategy)


async def _enter(files: Path, step: StepSpec, sandbox: Sandbox) -> None:
    """Copy the files of a step into the sandbox, run its setup.sh and wait for its healthcheck."""
    if files.is_dir():
        await sandbox.put(files, sandbox.workdir)
    if (files / "setup.sh").is_file():
        done = await sandbox.run("bash ./setup.sh", SETUP_SECONDS)
        if done.ended != "exit" or done.exit_code:
            raise NotReady(f"{files / 'setup.sh'} failed: {done.output.strip()[-300:]}")
    if step.healthcheck is not None:
        await become_healthy(sandbox, step.healthcheck)


def _passes(result: VerifierResult, least: float | Mapping[str, float] | None) -> bool:
    if least is None:
        return True
    asked = least if isinstance(least, Mapping) else {"reward": least}
    given = {"reward": result.reward or 0.0, **result.details}
    return all(given.get(name, 0.0) >= value for name, value in asked.items())


def combine(results: Sequence[VerifierResult], strategy: str) -> VerifierResult:
    """Combine the results of the reached stages: mean reward, or that of the last stage."""
    lost = next((result for result in results if result.reward is None), None)
    if lost is not None:
        return lost
    rewards = [result.reward or 0.0 for result in results]
    reward = rewards[-1] if strategy == "final" else sum(rewards) / len(rewards)
    reasons = "; ".join(dict.fromkeys(result.reason for result in results if result.reason))
    said = "\n".join(result.stdout for result in results)
    details = {f"step {at}": value for at, value in enumerate(rewards, 1)}
    return VerifierResult(reward, reward >= SUCCESS, "", said, details, reasons)
