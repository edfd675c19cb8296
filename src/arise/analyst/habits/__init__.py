"""Habits: behaviours that `arise analyze` counts in addition to the catalogue; training never uses them."""

from collections.abc import Mapping

from arise.analyst.habits import dialogue, work
from arise.analyst.habits.scene import Habit, HabitFinding, Scene
from arise.analyst.habits.texts import HabitText, habit_texts

HABITS: Mapping[str, Habit] = {habit.id: habit for habit in (*work.HABITS, *dialogue.HABITS)}


def find_habits(scene: Scene) -> dict[str, HabitFinding]:
    """Return the finding of every habit for which the attempt gave an opportunity."""
    found = {name: habit.find(scene) for name, habit in HABITS.items()}
    return {name: finding for name, finding in found.items() if finding is not None}


__all__ = ["HABITS", "Habit", "HabitFinding", "HabitText", "Scene", "find_habits", "habit_texts"]
