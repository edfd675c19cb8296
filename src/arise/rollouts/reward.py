"""The reward of one run of test.sh, parsed from its two reward files."""

import json
import math
from collections.abc import Mapping, Sequence

from arise.types import RewardFile
from arise.types.sandbox import MAX_REWARD_BYTES, REWARD_JSON, REWARD_TEXT


class RewardError(ValueError):
    """The reward files hold no valid reward."""


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RewardError(f"{name} is not a finite number: {value!r}")
    return float(value)


def parse_json_reward(text: bytes) -> dict[str, float]:
    """Parse reward.json: a flat object of finite numbers."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not found:
            raise RewardError("reward.json is not an object with at least one number")
        return {name: _finite(f"reward.json: {name}", value) for name, value in found.items()}
    except (ValueError, RecursionError, OverflowError) as error:
        raise error if isinstance(error, RewardError) else RewardError(f"reward.json is not JSON: {error}") from error


def parse_text_reward(text: bytes) -> dict[str, float]:
    """Parse reward.txt: one finite number."""
    words = text.decode("utf-8", "replace").split()
    if not words:
        raise RewardError("reward.txt is empty")
    try:
        value = float(words[0]) if len(words) == 1 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RewardError(f"reward.txt is not one finite number: {' '.join(words)[:80]!r}")
    return {"reward": value}


def choose_reward(numbers: Mapping[str, float]) -> float:
    """Return the number named `reward`, or the only number."""
    if "reward" in numbers:
        return numbers["reward"]
    if len(numbers) > 1:
        raise RewardError(f"reward.json has several numbers and none is called reward: {', '.join(sorted(numbers))}")
    return next(iter(numbers.values()))


def _parsed(file: RewardFile) -> dict[str, float]:
    if file.handed_to:
        raise RewardError(
            f"{file.name} was open in {file.handed_to}, which may run files of the attempt; "
            "let test.sh keep its result and write the reward itself"
        )
    if len(file.data) > MAX_REWARD_BYTES:
        raise RewardError(f"{file.name} has more than {MAX_REWARD_BYTES} bytes")
    return parse_json_reward(file.data) if file.name == REWARD_JSON else parse_text_reward(file.data)


def final_reward(
    files: Sequence[RewardFile], bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, dict[str, float]]:
    """Return the reward and all numbers of its file; reward.json takes precedence.

    Raise RewardError if reward.txt was written later and disagrees, because the intended reward is ambiguous.
    """
    found = {file.name: file for file in files if file.name in (REWARD_JSON, REWARD_TEXT)}
    if not found:
        raise RewardError("test.sh wrote neither reward.json nor reward.txt")
    chosen = found.get(REWARD_JSON) or found[REWARD_TEXT]
    numbers = _parsed(chosen)
    reward = choose_reward(numbers)
    other = found.get(REWARD_TEXT)
    if other is not None and other.order > chosen.order:
        said = choose_reward(_parsed(other))
        if said != reward:
            raise RewardError(f"reward.json says {reward:g}, and reward.txt, written after it, says {said:g}")
    low, high = bounds
    if not low <= reward <= high:
        raise RewardError(f"the reward {reward:g} is outside {low:g} to {high:g}, the range of the task")
    return reward, numbers
