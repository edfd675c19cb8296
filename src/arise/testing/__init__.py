"""Test doubles that ship: a loopback server with OpenAI's interface, scripted faults, an expert that answers prompts.

Nothing here is imported by a run unless its configuration asks for it.
"""

from arise.testing.expert import Expert
from arise.testing.fake_llm import Action, Ask, CutOff, FakeLLM, Hang, RawBody, Say, Script, Status, Wire, in_thread
from arise.testing.scripts import always, honest, in_order, obeying, sometimes

__all__ = [
    "Action",
    "Ask",
    "CutOff",
    "Expert",
    "FakeLLM",
    "Hang",
    "RawBody",
    "Say",
    "Script",
    "Status",
    "Wire",
    "always",
    "honest",
    "in_order",
    "in_thread",
    "obeying",
    "sometimes",
]
