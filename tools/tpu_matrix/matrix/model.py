"""The claims as typed, frozen models; JSON Schema for editors is generated from them.

Every description below is what an editor shows while somebody writes a row.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

SLUG_PATTERN = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")

Slug = Annotated[str, StringConstraints(pattern=f"^{SLUG_PATTERN.pattern}$", max_length=80)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Checkpoint = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$", max_length=200)
]
Link = Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
Count = Annotated[int, Field(ge=1)]
MetricName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]

Tier = Literal["per-pr", "nightly", "component", "recipe"]
Dtype = Literal[
    "float32", "bfloat16", "float16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "mxfp4", "nvfp4"
]
ComputeDtype = Literal["auto", "float32", "bfloat16", "float16"]
KvCacheDtype = Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"]
CheckName = Literal["accuracy", "throughput", "virtual"]
Promise = Literal["recommended", "experimental"]


class Claim(BaseModel):
    """The base of everything a person writes: unknown keys and loose types are findings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TierPromise(Claim):
    """What a reader is promised about the rows of one tier."""

    id: Tier
    promise: Text
    scheduled: Literal["per-pr", "nightly", "never"]
    fresh_for_days: Count = Field(description="Evidence older than this no longer counts.")


class TierFile(Claim):
    """support_matrix/tiers.yaml, strongest tier first."""

    tiers: tuple[TierPromise, ...]


class Generation(Claim):
    """One chip generation; all numbers are per chip or per device as their names say."""

    id: Slug
    title: Text
    device_kinds: tuple[Text, ...] = Field(
        min_length=1, description="The names by which the runtime reports a device."
    )
    cores_per_chip: Count
    devices_per_chip: Count = Field(
        description="Devices the runtime shows; one where a chip's cores work as one device."
    )
    hbm_per_device_gib: Count
    native_dtypes: tuple[Dtype, ...] = Field(
        min_length=1, description="Matrix operands the chip multiplies without converting."
    )
    continuous_ci: bool = Field(description="Whether runs on this generation are scheduled.")


class Slice(Claim):
    """A unit of hardware that a row runs on."""

    id: Slug
    generation: Slug
    cores: Count
    chips: Count
    hosts: Count = 1
    status: Promise


class HardwareFile(Claim):
    """support_matrix/hardware.yaml."""

    generations: tuple[Generation, ...]
    slices: tuple[Slice, ...]


class Feature(Claim):
    """Something a row can switch on, with the vLLM arguments for both states."""

    id: Slug
    title: Text
    kind: Literal["scheduling", "memory", "parallelism", "decoding", "input", "adapter"]
    on: tuple[Text, ...] = Field(default=(), description="Arguments when a row claims it.")
    off: tuple[Text, ...] = Field(
        default=(), description="Arguments when a row does not, if vLLM may enable it by itself."
    )
    requires: tuple[Slug, ...] = ()
    conflicts: tuple[Slug, ...] = ()


class FeatureFile(Claim):
    """support_matrix/features.yaml."""

    features: tuple[Feature, ...]


class Model(Claim):
    """A model as people name it, with the checkpoints a row may test under that name."""

    name: Text = Field(description="The display name.")
    link: Link
    architecture: Text = Field(description="The class name in the checkpoint's config.json.")
    checkpoints: tuple[Checkpoint, ...] = Field(min_length=1)


class Parallel(Claim):
    """How a row uses the devices of its slice: tp x dp x pp + idle = devices."""

    tp: Count = Field(default=1, description="Tensor parallel size.")
    dp: Count = Field(default=1, description="Data parallel size.")
    pp: Count = Field(default=1, description="Pipeline parallel size.")
    ep: bool = Field(default=False, description="Expert parallel.")
    idle: int = Field(default=0, ge=0, description="Devices left unused on purpose.")

    @property
    def devices(self) -> int:
        """Devices at work."""
        return self.tp * self.dp * self.pp


class Check(Claim):
    """A test behind a row: a metric of a task and the value it has to reach."""

    task: MetricName
    metric: MetricName
    at_least: float = Field(description="The smallest passing value; above zero.")

    @property
    def metric_key(self) -> str:
        """The name under which a record reports this metric."""
        return f"{self.task}.{self.metric}"


class Quarantine(Claim):
    """A row that runs but does not block, until a date."""

    owner: Text
    issue: Link
    until: dt.date
    reason: Text


class RowDefaults(Claim):
    """What the rows of a file share; a row overrides it key by key."""

    revision: Text | None = Field(default=None, description="A branch, tag or commit.")
    weights: Dtype = Field(default="bfloat16", description="What the checkpoint stores.")
    quantization: Text | None = Field(
        default=None, description="vLLM's --quantization, where it is not in the checkpoint."
    )
    dtype: ComputeDtype = "auto"
    kv_cache_dtype: KvCacheDtype = "auto"
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    features: tuple[Slug, ...] = ()
    serve_args: dict[Slug, str | int | float | bool] = Field(
        default={}, description="Further options without their dashes; true is a bare option."
    )


class Row(RowDefaults):
    """One claim: this checkpoint, on this hardware, served in exactly this way."""

    id: Slug
    checkpoint: Checkpoint
    hardware: Slug
    tier: Tier
    parallel: Parallel = Parallel()
    checks: dict[CheckName, Check] = {}
    quarantine: Quarantine | None = None
    note: Text | None = None


class Tombstone(Claim):
    """What remains of a row that was removed."""

    id: Slug
    date: dt.date
    reason: Text
    replacement: Slug | None = None


class FamilyFile(Claim):
    """support_matrix/models/<family>.yaml: the models of a family and their rows."""

    family: Slug
    title: Text
    models: dict[Slug, Model] = Field(min_length=1)
    defaults: RowDefaults = RowDefaults()
    rows: tuple[Row, ...] = ()
    removed: tuple[Tombstone, ...] = ()
