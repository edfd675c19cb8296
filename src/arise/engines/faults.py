"""The error of an engine that cannot continue."""


class EngineFault(RuntimeError):  # noqa: N818 - a fault, as in Rollout.fault
    """The engine cannot continue; its last saved state is valid."""
