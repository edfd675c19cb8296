"""Run a scripted worker through a harness: the demonstrations of a warm start, in the harness's own format."""

from collections.abc import Callable
from dataclasses import dataclass

from arise.endpoint.exchange import Ask
from arise.endpoint.rehearsal import Conversation, Rehearsal, Rewritten
from arise.harnesses.launch import Launcher, silence
from arise.harnesses.spec import Shell
from arise.ports import Sandbox, SandboxLost
from arise.types.chat import FunctionCall, Message

DONE = Message("assistant", "Done.")
Worker = Callable[[str | None], str | None]
"""Receives what the last command printed, None at first; returns the next command, None when its work is done."""


@dataclass
class ScriptedSpeaker:
    """Turns the commands of a worker into the calls of a harness."""

    worker: Worker
    shell: Shell
    turns: int = 0

    def __call__(self, ask: Ask) -> Message:
        """Return the next turn: the call that runs the worker's next command, or the end of the work."""
        command = self.worker(ask.messages[-1].text if self.turns else None)
        self.turns += 1
        if command is None and not self.shell.finish:
            return DONE
        arguments = {self.shell.argument: command or self.shell.finish, **self.shell.also}
        return Message("assistant", calls=(FunctionCall(f"call_{self.turns:05d}_0", self.shell.tool, arguments),))


async def rehearse(
    launcher: Launcher, sandbox: Sandbox, instruction: str, worker: Worker, window: int, max_tokens: int
) -> Conversation:
    """Return the conversation of one scripted attempt; raise SandboxLost if the harness cannot be rehearsed."""
    session = Rehearsal(ScriptedSpeaker(worker, launcher.harness.shell))
    ended = await launcher.run(session, sandbox, instruction, window, max_tokens)
    if not session.calls:
        raise SandboxLost(silence(launcher.harness, ended))
    try:
        return session.conversation()
    except Rewritten as error:
        raise SandboxLost(f"{launcher.harness.name} rewrites its history: {error}") from None
