"""How models write conversations: `Format` of `arise.ports` for any chat template, and for known model families."""
