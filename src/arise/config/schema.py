"""Every setting, with the paper's value as its default (Table 2 and Sec. 3). A TOML file lists only the changes.

Must never read a file or the environment: `config.file` loads, this module only validates.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from arise.config.agent import AgentChoice, ShellAgentConfig
from arise.config.base import Count, Fraction, LengthAdjustment, Positive, Section, ShownTexts
from arise.config.baselines import ElicitedCriteria, ResponseCredit, Scaffold
from arise.config.engine import EngineChoice, PolicyConfig
from arise.config.evaluation import EvaluationConfig
from arise.config.imported import Imported
from arise.config.llm import BudgetConfig, FakeJudging, ModelJudge, ModelReflector, SameAsJudge
from arise.config.pool import EvidenceConfig, PoolConfig, WatchConfig
from arise.config.records import SandboxChoice, SandboxConfig, StorageConfig, TrackersConfig
from arise.config.sampler import CapabilitySampling, ImportedSampler, UniformSampling, VadeSampling
from arise.config.tasks import TaskNeed


class TrainConfig(Section):
    """The budget: iterations of B tasks with G rollouts each."""

    iterations: Count = 150
    tasks_per_iteration: Count = 32
    group_size: Annotated[int, Field(ge=2)] = 8
    seed: Annotated[int, Field(ge=0)] = 0
    max_staleness: Annotated[int, Field(ge=0)] = 0
    """Iterations that rollouts may start ahead, and thus the maximum policy lag of a token; 0 is synchronous."""

    @model_validator(mode="after")
    def _learns_in_between(self) -> Self:
        if self.max_staleness >= self.iterations:
            raise ValueError(
                f"max_staleness ({self.max_staleness}) must be below iterations ({self.iterations}): "
                "all rollouts would start before anything is learned"
            )
        return self


class SamplingConfig(Section):
    """Sampling in training; the update uses the same temperature for log-probs. Evaluation has its own settings."""

    context_length: Count = 131_072
    temperature: Positive = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0

    @model_validator(mode="after")
    def _whole_distribution(self) -> Self:
        if self.top_p < 1.0:
            raise ValueError(
                f"top_p ({self.top_p}) must be 1.0 in training: a token outside of the nucleus has no behaviour "
                "probability, so its importance ratio (Eq. 18) is not defined; set evaluation.top_p to evaluate with it"
            )
        return self


class OptimizerConfig(Section):
    """AdamW, linear warm-up to `learning_rate` over `warmup_updates`, then constant."""

    learning_rate: Positive = 2e-6
    warmup_updates: Annotated[int, Field(ge=0)] = 40
    precision: Literal["bf16", "fp32"] = "bf16"
    beta1: Fraction = 0.9
    beta2: Fraction = 0.999
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    max_grad_norm: Positive = 1.0


class LossConfig(Section):
    """Eq. 19: strict importance-ratio bounds and the dual-clip coefficient."""

    min_ratio: Annotated[float, Field(ge=0.0)] = 0.5
    max_ratio: Positive = 5.0
    dual_clip: Positive = 3.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_ratio >= self.max_ratio:
            raise ValueError(f"min_ratio ({self.min_ratio}) must be below max_ratio ({self.max_ratio})")
        return self


class SeparateCredit(LengthAdjustment):
    """Eqs. 15-16: lambda, and the length adjustment of positive rewards."""

    kind: Literal["separate"] = "separate"
    rubric_weight: Fraction = 0.3
    compared: Literal["group", "prompt"] = "group"
    """Whose rewards and verdicts normalise an advantage (Eq. 15): those of the whole group, as in the paper, or those
    of its rollouts with the same skills in the prompt."""
    min_minority: Count = 1
    """How often the rarer verdict must occur among the compared rollouts before a rubric enters Eq. 16; 1 is the
    paper's rule, 2 ignores a rubric that one verdict alone, perhaps a wrong one, makes informative."""


class WorldTasks(Section):
    """Tasks of the embedded world; `mix` weights task types (empty: equally), type `held_out` is not trained on."""

    kind: Literal["world"] = "world"
    seed: Annotated[int, Field(ge=0)] = 0
    train_tasks: Count = 120
    eval_tasks: Count = 60
    held_out: str = "anomaly-and-outlier-detection"
    mix: dict[str, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    difficulty: Literal["easy", "normal", "hard"] = "normal"
    corrections: Fraction = 1.0
    """Share of the notes that correct the specification; the others refer back to it."""
    depth: Annotated[int, Field(ge=0, le=6)] = 0
    """How many behaviours every task requires at once; 0 is the mixed world, whose types differ in difficulty."""

    @model_validator(mode="after")
    def _one_difficulty(self) -> Self:
        if self.depth and (self.difficulty != "normal" or self.corrections != 1.0):
            raise ValueError("tasks.depth sets the difficulty: leave out difficulty and corrections, or set depth = 0")
        return self


class HarborTasks(Section):
    """Folders of custom Harbor or BenchFlow task directories."""

    kind: Literal["harbor"] = "harbor"
    train: str
    evaluation: str
    allow_overlap: list[str] = Field(default_factory=list)
    """Ids of held-out tasks that training tasks may repeat; any other overlap is an error before the run starts."""
    ignore: list[TaskNeed] = Field(default_factory=list)
    """Needs of tasks that may stay unmet; a task with any other unmet need is an error."""
    refuse_forgeable: bool = False
    """At the start, check as `arise tasks check --cheat` whether attempts can forge their reward; raise if so."""


class SmallModel(Section):
    """A small Llama, trained from scratch on scripted demonstrations of the embedded world."""

    kind: Literal["small"] = "small"
    hidden: Count = 128
    layers: Count = 2
    heads: Count = 8
    """Attention heads, which share `hidden` evenly; vLLM on a CPU needs heads of 32 values or more."""
    demonstrations: Count = 900
    epochs: Count = 8


class PretrainedModel(Section):
    """Any Hugging Face causal model: `smollm2-135m`, a local folder or a hub name; LoRA unless rank is 0."""

    kind: Literal["pretrained"] = "pretrained"
    name: str = "smollm2-135m"
    lora_rank: Annotated[int, Field(ge=0)] = 16
    demonstrations: Annotated[int, Field(ge=0)] = 0
    epochs: Count = 2
    format: str = "auto"
    """The chat format: `auto` detects the model's family by its name, `generic` uses its chat template,
    or the name of a family, such as `qwen3`, for a renamed or fine-tuned model of it."""
    template_options: dict[str, JsonValue] = Field(default_factory=dict)
    """Variables of the chat template, such as `{enable_thinking = false}`."""


class OfflineJudging(Section):
    """The offline analyst as judge and reflector; the two rates add deliberate errors."""

    kind: Literal["offline"] = "offline"
    flip_rate: Fraction = 0.0
    miss_rate: Fraction = 0.0


class OfflineReflection(Section):
    """The offline analyst as reflector, with any judge."""

    kind: Literal["offline"] = "offline"


class NoJudging(Section):
    """No verdicts at all: outcome-only training."""

    kind: Literal["none"] = "none"


class SkillGuidance(ShownTexts):
    """Active skills are in the system prompt of this share of a group's training rollouts; 0 means of none."""

    kind: Literal["skills"] = "skills"
    share: Fraction = 1.0
    dose: Literal["fixed", "fading", "unsolved"] = "fixed"
    """`fixed`, as in the paper: the share is the same for every task. `fading`: it shrinks with the success rate of
    recent rollouts without skills at tasks of the same types. `unsolved`: it is 0 once one of these succeeds."""
    trained_with: bool = True
    """Whether the update of a guided rollout keeps the skills in its prompt, as in the paper, or removes them."""


class PoolCriteria(Section):
    """Rollouts are judged by the rubrics of the pool."""

    kind: Literal["pool"] = "pool"


SamplerChoice = Annotated[
    CapabilitySampling | UniformSampling | VadeSampling | ImportedSampler, Field(discriminator="kind")
]
CreditChoice = Annotated[SeparateCredit | ResponseCredit | Imported, Field(discriminator="kind")]
CriteriaChoice = Annotated[PoolCriteria | ElicitedCriteria, Field(discriminator="kind")]
GuidanceChoice = Annotated[SkillGuidance | Scaffold, Field(discriminator="kind")]
TasksChoice = Annotated[WorldTasks | HarborTasks, Field(discriminator="kind")]
ModelChoice = Annotated[SmallModel | PretrainedModel, Field(discriminator="kind")]
JudgeChoice = Annotated[OfflineJudging | NoJudging | ModelJudge | FakeJudging | Imported, Field(discriminator="kind")]
ReflectorChoice = Annotated[SameAsJudge | OfflineReflection | ModelReflector | Imported, Field(discriminator="kind")]


class Config(Section):
    """A whole run. `Config()` is the paper's ARISE."""

    train: TrainConfig = TrainConfig()
    sampling: SamplingConfig = SamplingConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    loss: LossConfig = LossConfig()
    credit: CreditChoice = SeparateCredit()
    pool: PoolConfig = PoolConfig()
    evidence: EvidenceConfig = EvidenceConfig()
    sampler: SamplerChoice = CapabilitySampling()
    guidance: GuidanceChoice = SkillGuidance()
    criteria: CriteriaChoice = PoolCriteria()
    watch: WatchConfig = WatchConfig()
    judge: JudgeChoice = OfflineJudging()
    reflector: ReflectorChoice = SameAsJudge()
    budget: BudgetConfig = BudgetConfig()
    tasks: TasksChoice = WorldTasks()
    model: ModelChoice = SmallModel()
    policy: EngineChoice = PolicyConfig()
    agent: AgentChoice = ShellAgentConfig()
    sandbox: SandboxChoice = SandboxConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    storage: StorageConfig = StorageConfig()
    trackers: TrackersConfig = TrackersConfig()

    @model_validator(mode="after")
    def _window_spans_an_update(self) -> Self:
        if self.evidence.window < self.pool.update_every:
            raise ValueError(
                f"evidence.window ({self.evidence.window}) must be at least pool.update_every "
                f"({self.pool.update_every}): pass rates count every verdict since the previous update"
            )
        return self

    @model_validator(mode="after")
    def _scored_as_sampled(self) -> Self:
        if self.train.max_staleness and not self.guidance.trained_with:
            raise ValueError(
                f"train.max_staleness ({self.train.max_staleness}) must be 0 with guidance.trained_with = false: "
                "bare prompts are scored by the weights in training, which move while later rollouts run"
            )
        return self

    @model_validator(mode="after")
    def _rows_of_one_prompt(self) -> Self:
        if not self.guidance.trained_with and self.agent.kind != "shell":
            raise ValueError(
                f"guidance.trained_with = false needs agent.kind = 'shell', not {self.agent.kind!r}: only its rows can "
                "be rebuilt with the bare prompt"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _default_kinds(cls, values: Any) -> Any:
        """Set the default kind of sections that do not name one."""
        if not isinstance(values, dict):
            return values
        defaults = {
            name: field.default.kind for name, field in cls.model_fields.items() if hasattr(field.default, "kind")
        }
        if _kind_of(values.get("model")) == "pretrained":  # the shell protocol is only for the embedded world
            defaults["agent"] = "tools"
            values = {"agent": {}} | values
        return {
            name: {"kind": defaults[name]} | value if name in defaults and isinstance(value, dict) else value
            for name, value in values.items()
        }


def _kind_of(section: Any) -> Any:
    return section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
