"""The one error of an engine that is nobody's bad input."""


class EngineFault(RuntimeError):
    """The engine cannot go on; its last saved state is good."""
