"""How much of a prompt skills may take: what keeps its place, what is left out, and that nothing is lost silently."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from arise.analyst.catalogue import wordings
from arise.analyst.reflector import first_skill
from arise.config import AgentConfig, Config, SamplingConfig
from arise.engines.chat import ChatFormat
from arise.engines.local.small_model import small_model
from arise.ports import Engine
from arise.rollouts.collect import Collector, Journal
from arise.rollouts.guidance import SHARE_OF_WINDOW, SkillLimit, guessed_tokens
from arise.sandbox import BubblewrapPool
from arise.types import Need, Pair, Rollout, ShownSkill, Task
from arise.world.shell_agent import SYSTEM, ShellAgent
from arise.world.wording import vocabulary
from tests.builders import a_pair
from tests.scripted import ScriptedEngine, WordChat
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

TASK = Task("t", "List the files .")


def words(text: str) -> int:
    return len(text.split())


def needed(name: str, length: int = 19, need: Need | None = None) -> Pair:
    """A pair whose skill takes `length` words beside its dash."""
    pair = a_pair(name, active=True)
    return replace(pair, skill=replace(pair.skill, text=" ".join([name] * length), need=need))


def ids(pairs: Sequence[Pair]) -> list[str]:
    return [pair.rubric.id for pair in pairs]


def test_what_fits_is_shown_as_it_was_given() -> None:
    shown = [needed("a"), needed("b"), needed("c")]
    assert SkillLimit(2 + 3 * 20, words).fit(shown) == (tuple(shown), ())
    assert SkillLimit(1, words).fit([]) == ((), ())


def test_the_newest_need_keeps_its_place_and_the_weakest_among_equals() -> None:
    shown = [
        needed("old", need=Need(10, 0, 8)),
        needed("new-weak", need=Need(20, 1, 8)),
        needed("unknown"),
        needed("new-weaker", need=Need(20, 0, 8)),
    ]
    kept = {room: ids(SkillLimit(2 + 20 * room, words).fit(shown)[0]) for room in range(1, 5)}
    assert kept[1] == ["new-weaker"]
    assert kept[2] == ["new-weak", "new-weaker"]
    assert kept[3] == ["old", "new-weak", "new-weaker"]
    assert kept[4] == ids(shown)


def test_without_needs_the_newest_pair_keeps_its_place() -> None:
    assert ids(SkillLimit(2 + 20, words).fit([needed("r001"), needed("r002")])[0]) == ["r002"]


def test_a_text_that_does_not_fit_leaves_room_for_a_shorter_one() -> None:
    seen, left_out = SkillLimit(30, words).fit([needed("short", 9), needed("long", 90, Need(20, 0, 8))])
    assert (ids(seen), ids(left_out)) == (["short"], ["long"])


def test_a_limit_is_a_share_of_the_window_unless_it_is_set() -> None:
    assert SkillLimit.of(0, 2048, words).tokens == int(SHARE_OF_WINDOW * 2048)
    assert SkillLimit.of(100, 2048, words).tokens == 100
    assert guessed_tokens("x" * 300) == 101
    assert Config().guidance.max_tokens == 0


def test_the_default_never_binds_in_the_embedded_world() -> None:
    """Even with a skill for every behaviour of the catalogue shown at once, in the longest words of its birth."""
    loaded = small_model([SYSTEM, *10 * vocabulary()], hidden=16, layers=1, heads=2, kv_heads=2)
    count, window = ChatFormat(loaded.tokenizer).count, loaded.model.config.max_position_embeddings
    texts = [max((first_skill(w, miss) for miss in w.misses), key=count) for w in wordings().values()]
    pairs = [replace(pair, skill=replace(pair.skill, text=text)) for text in texts for pair in [a_pair("r")]]
    assert len(pairs) == 20
    assert SkillLimit.of(0, window, count).fit(pairs)[1] == ()


def attempted(tmp_path: Path, shown: Sequence[Pair], limit: SkillLimit | None) -> tuple[Rollout, ScriptedEngine]:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt")
    chat = WordChat()
    engine = ScriptedEngine(chat, ["$ submit"])
    agent = ShellAgent(cast(Engine, engine), chat, AgentConfig(), SamplingConfig())
    task = replace(bare_task(tests), task=TASK)

    async def run() -> Rollout:
        async with BubblewrapPool(1) as sandboxes, bubblewrap_verifier(1) as verifier:
            tasks = {TASK.id: task}
            collector = Collector(agent, sandboxes, verifier, tasks, cast(Journal, None), 0, limit, SYSTEM)
            return await collector.attempt(task, shown, "k0/t/0")

    return asyncio.run(run()), engine


@pytest.mark.parametrize("limited", [True, False])
def test_three_long_skills_in_a_small_window_do_not_lose_the_rollout(tmp_path: Path, limited: bool) -> None:
    shown = [needed("r001"), needed("r002", need=Need(20, 0, 8)), needed("r003")]
    limit = SkillLimit.of(0, 60, words) if limited else None
    rollout, engine = attempted(tmp_path, shown, limit)
    if not limited:
        assert "the model's window is 60" in rollout.fault, "what a limit is there to prevent"
        return
    assert (rollout.fault, rollout.reward) == ("", 1.0)
    assert rollout.trajectory.shown_skills == (ShownSkill("r002", 0),)
    assert rollout.trajectory.left_out == (ShownSkill("r001", 0), ShownSkill("r003", 0))
    assert "r002 r002" in engine.prompts[0]
    assert "r001" not in engine.prompts[0]
    assert rollout.trajectory.system_prompt.count("\n- ") == 1
