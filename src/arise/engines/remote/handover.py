"""Hand weights from the trainer to the servers: a folder of all weights, or of the adapters alone."""

from dataclasses import dataclass
from pathlib import Path

from arise.engines.remote.trainer import TrainerGroup
from arise.engines.vllm.untied import untie, untied_copy


@dataclass(frozen=True)
class Handover:
    """Writes each version into its own folder below `work`."""

    work: Path
    model: str
    adapters: bool
    """Whether servers keep the model that they started with and load only adapters for it."""
    untied: bool
    """Whether servers need a separate output layer in order to load all weights of a tied model."""

    def first(self) -> str:
        """Return the model that servers start with."""
        tied = self.untied and not self.adapters
        return untied_copy(self.model, self._folder(0)) if tied else self.model

    def write(self, group: TrainerGroup, version: int) -> str:
        """Write the trained weights as the servers can load them; return the folder."""
        folder = self._folder(version)
        group.call("export_adapter" if self.adapters else "export", folder=str(folder))
        if self.untied and not self.adapters:
            untie(folder)
        return str(folder)

    def _folder(self, version: int) -> Path:
        return self.work / f"weights-{version}"
