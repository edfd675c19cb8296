"""The one error of an engine that is nobody's bad input."""


class EngineFault(RuntimeError):  # noqa: N818 - a fault, as in Rollout.fault
    """The engine cannot go on; its last saved state is good."""
