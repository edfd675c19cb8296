"""terminal-bench 1 trial folders: the verdict in `results.json`, the actions in the terminal log."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, lines, load, load_optional, mentions, text_of
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.analyze.messages import add_message
from arise.analyze.readers.inner import inner_attempt
from arise.types import StopReason, Trajectory

LONGEST_LOG = 2_000_000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>])|[\x00-\x08\x0b-\x1f]")
_PROMPT = re.compile(r"^[\w.-]+@[\w.-]+:[^\n#$]{0,200}[#$] ?(.*)$", re.MULTILINE)
_HARNESS = ("asciinema", "clear", "tmux", "source /installed-agent")
_SPEAKER = re.compile(r"^(System|User|(mini-swe-agent) \(step \d+, \$[\d.]+\)):[ ]*$", re.MULTILINE)
"""The headings of what mini-swe-agent prints."""
_SPINNER = re.compile(r"^\s*(?:[\u2800-\u28ff] .*|\u2500+)$\n?", re.MULTILINE)
_ABSENT = re.compile(r"^(?:/bin/)?(?:ba)?sh: (?:line \d+: )?([\w./-]+): (?:command )?not found", re.MULTILINE)
TAIL = 4000
_UNVERIFIED = {"test_timeout", "parse_error", "unknown_harness_error"}


class TerminalBenchReader:
    """Read a trial folder of terminal-bench 1."""

    name = "terminal-bench-1"

    def detect(self, path: Path) -> bool:
        file = path / "results.json"
        if not path.is_dir() or not file.is_file() or not mentions(file, '"is_resolved"', '"task_id"'):
            return False
        result = load_optional(file)
        return isinstance(result, Mapping) and ("is_resolved" in result or _summary_only(path, result))

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        file = path / "results.json"
        try:
            result = load(file)
        except Unreadable as error:
            yield Skipped(str(file), str(error))
            return
        if "is_resolved" not in result:
            yield from _summary(file, result, options)
            return
        task_id = str(result.get("task_id"))
        name = str(result.get("trial_name") or path.name)
        inner = inner_attempt(path / "agent-logs", options) or inner_attempt(path / "sessions", options)
        into = Conversation()
        into.add_user(result.get("instruction"))
        if inner is None:
            _terminal(into, path)
        trajectory = inner.trajectory if inner else into.trajectory(name, task_id)
        stop = StopReason.TIME_LIMIT if result.get("failure_mode") == "agent_timeout" else trajectory.stop
        yield Found(
            Trajectory(name, task_id, trajectory.turns, stop, trajectory.system_prompt),
            into.task(task_id, options.instructions), _unless_absent(triage(result), path, trajectory), str(path),
            self.name,
            model=inner.model if inner else "", attempt=name, notes=inner.notes if inner else into.notes,
        )  # fmt: skip


class TerminalBenchSummaryReader:
    """Read the summary of a job under any name; a summary next to its trials only repeats them."""

    name = "terminal-bench-1"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix != ".json" or not mentions(path, '"is_resolved"', '"trial_name"'):
            return False
        result = load_optional(path)
        return isinstance(result, Mapping) and isinstance(result.get("results"), list)

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        if not any(path.parent.glob("*/*/results.json")):
            yield from _summary(path, load(path), options)


def triage(result: Mapping[str, object]) -> Outcome:
    """Triage a trial: one that timed out but passed its tests has passed; null is no verdict."""
    resolved, mode = result.get("is_resolved"), str(result.get("failure_mode") or "")
    if not isinstance(resolved, bool):
        kind = Triage.UNVERIFIED if mode in _UNVERIFIED else Triage.MISSING
        return Outcome(kind, reason=mode or "is_resolved is null")
    if not resolved and mode in _UNVERIFIED:
        return Outcome(Triage.UNVERIFIED, reward=0.0, reason=mode)
    if not resolved and mode == "agent_timeout":
        return Outcome(Triage.TIME_LIMIT, False, 0.0, mode)
    if not resolved and mode in ("agent_installation_failed", "fatal_llm_parse_error", "unknown"):
        return Outcome(Triage.INFRASTRUCTURE, reward=0.0, reason=mode)
    return verdict(float(resolved), mode if mode not in ("unset", "none") else "")


def _unless_absent(outcome: Outcome, path: Path, trajectory: Trajectory) -> Outcome:
    """Return the outcome, unless the log shows that the agent's program never started: no verdict on an agent."""
    if outcome.passed or trajectory.turns:
        return outcome
    log = _ESCAPE.sub("", _log(path))
    absent = _ABSENT.search(log[-TAIL:])
    reason = f"the agent did not start: {absent.group(1)}: command not found" if absent else ""
    if outcome.reason == "unknown_agent_error" and not any(_commands(log)):
        reason = "unknown_agent_error before the agent typed anything"
    return Outcome(Triage.INFRASTRUCTURE, reward=outcome.reward, reason=reason) if reason else outcome


def _log(path: Path) -> str:
    """Return what the terminal showed: its log, else its recording, else the end of it that a pane kept."""
    sessions = path / "sessions"
    log = text_of(sessions / "agent.log", LONGEST_LOG) or _recorded(sessions / "agent.cast")
    return log or text_of(path / "panes" / "post-agent.txt") or ""


def _recorded(file: Path) -> str:
    """Return the output of an asciicast: JSON lines of time, kind and text."""
    shown, size = [], 0
    for _, row in lines(file) if file.is_file() else ():
        if isinstance(row, list) and len(row) == 3 and row[1] == "o" and isinstance(row[2], str):
            shown.append(row[2])
            size += len(row[2])
            if size > LONGEST_LOG:
                break
    return "".join(shown).replace("\r\n", "\n").replace("\r", "\n")


def _commands(log: str) -> Iterator[str]:
    """Yield what was typed at shell prompts, without the commands of the harness."""
    for prompt in _PROMPT.finditer(log):
        command = prompt.group(1).strip()
        if command and not command.startswith(_HARNESS):
            yield command


def _summary_only(path: Path, result: Mapping[str, object]) -> bool:
    """Return whether a job's summary is all there is; usually it only repeats the results of its trials."""
    return isinstance(result.get("results"), list) and not any(path.glob("*/*/results.json"))


def _summary(file: Path, result: Mapping[str, Any], options: Options) -> Iterator[Item]:
    """Yield the outcomes of a summary, without trajectories."""
    for row in result["results"]:
        if isinstance(row, Mapping) and "is_resolved" in row:
            into = Conversation()
            into.add_user(row.get("instruction"))
            into.note("no trajectory")
            task_id, name = str(row.get("task_id")), str(row.get("trial_name") or row.get("id") or "")
            yield Found(
                into.trajectory(name, task_id), into.task(task_id, options.instructions), triage(row),
                f"{file}#{name}", TerminalBenchReader.name, attempt=name, notes=into.notes,
            )  # fmt: skip


def _terminal(into: Conversation, path: Path) -> None:
    """Split the log into commands and output at shell prompts; an installed agent's output belongs to its command."""
    raw = _log(path)
    if not raw:
        into.note("no trajectory")
        return
    log = _ESCAPE.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"))
    if _console(into, log):
        return
    prompts = list(_PROMPT.finditer(log))
    for place, prompt in enumerate(prompts):
        end = prompts[place + 1].start() if place + 1 < len(prompts) else len(log)
        command = prompt.group(1).strip()
        if not command or command.startswith(_HARNESS):
            continue
        into.add_agent("")
        into.add_call("bash", {"command": command})
        into.add_result(log[prompt.end() : end].strip("\n"))
    if len(into.drafts) < 2:  # an installed agent is one command: the terminal log does not show its actions
        into.drafts.clear()
        into.note("no trajectory")


def _console(into: Conversation, log: str) -> bool:
    """Read the messages that mini-swe-agent prints; return whether there were any."""
    heads = list(_SPEAKER.finditer(log))
    if not any(head.group(2) for head in heads):
        return False
    for place, head in enumerate(heads):
        end = heads[place + 1].start() if place + 1 < len(heads) else len(log)
        text = _SPINNER.sub("", log[head.end() : end]).strip()
        if head.group(2):
            add_message(into, {"role": "assistant", "content": text}, fenced=True)
        elif head.group(1) == "User" and into.drafts:
            add_message(into, {"role": "user", "content": text}, fenced=True)
    return True
