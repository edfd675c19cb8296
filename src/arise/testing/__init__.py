"""Shipped test doubles: a loopback server with OpenAI's interface, scripted faults, an expert that answers prompts.

A run imports this package only if its configuration asks for it.
"""

from arise.testing.dialects import DIALECTS, pages_of, speaking
from arise.testing.expert import Expert
from arise.testing.fake_llm import Action, Ask, CutOff, FakeLLM, Hang, RawBody, Say, Script, Status, Wire, in_thread
from arise.testing.scripts import always, honest, in_order, obeying, sometimes

__all__ = [
    "DIALECTS",
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
    "pages_of",
    "sometimes",
    "speaking",
]
