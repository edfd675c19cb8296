"""Write a judge of your own: rules in Python that look at the agent's commands.

A judge never raises; a verdict it cannot give is absent with a reason, never a fail. In a run: judge.kind = "import",
judge.path = "own_judge:CommandJudge". Run: python examples/own_judge.py
"""

import asyncio

import arise
from arise import Judge, Judgment, Pool, Rollout, Task, Verdict


class CommandJudge:
    """Judges `tests_after_edit`: once a file was edited, the tests must run afterwards."""

    identity = "command-judge/1"  # part of the record; change it when the rules change

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:  # noqa: ARG002
        commands = [str(c.arguments["command"]) for turn in rollout.trajectory.turns for c in turn.calls]
        verdicts, absent = {}, {}
        for rubric in pool.rubrics:
            if rubric.issue_tag == "tests_after_edit":
                verdicts[rubric.id] = self.tests_after_edit(commands)
            else:
                absent[rubric.id] = f"{self.identity} has no rule for {rubric.issue_tag}"
        return Judgment(pool.version, self.identity, verdicts, absent, diagnostic_absent="writes no diagnostics")

    def tests_after_edit(self, commands: list[str]) -> Verdict:
        edits = [n for n, command in enumerate(commands) if command.startswith("sed -i")]
        if not edits:
            return Verdict.NOT_APPLICABLE
        return Verdict.PASS if any("pytest" in command for command in commands[edits[-1] :]) else Verdict.FAIL


def attempt(name: str, *commands: str) -> Rollout:
    """Return a finished rollout that ran these commands."""
    turns = tuple(arise.Turn(f"$ {c}", (arise.ToolCall("bash", {"command": c}),)) for c in commands)
    return Rollout(arise.Trajectory(name, "fix-it", turns, arise.StopReason.FINISHED), 0.0, False)


if __name__ == "__main__":
    tests = arise.Rubric(
        "r001", "Run the tests after an edit.", "tests_after_edit", arise.Capability.VERIFICATION, "Edits.", "…"
    )
    other = arise.Rubric("r002", "Keep a backup.", "backup", arise.Capability.EXECUTION, "Overwrites a file.", "…")
    pool = Pool(
        (arise.Pair(tests, arise.Skill("Run pytest.")), arise.Pair(other, arise.Skill("Copy first."))), version=1
    )
    judge: Judge = CommandJudge()
    for rollout in (attempt("a", "sed -i s/1/2/ x.py", "pytest"), attempt("b", "sed -i s/1/2/ x.py"), attempt("c")):
        found = asyncio.run(judge.judge(Task("fix-it", "Fix x.py."), rollout, pool))
        print(rollout.trajectory.id, {**{k: str(v) for k, v in found.verdicts.items()}, **found.absent})
