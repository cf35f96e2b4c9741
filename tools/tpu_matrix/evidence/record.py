"""The record: what one run of one row found, as a closed, versioned JSON object."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tpu_matrix.matrix.identity import ROW_ID_PATTERN, SHORT_HASH_LENGTH
from tpu_matrix.matrix.model import Checkpoint

SCHEMA_VERSION = 1
VIRTUAL_DEVICE_KIND = "virtual"
UNKNOWN_COMMIT = "unknown"

Kind = Literal["hardware", "compiles", "virtual"]
Outcome = Literal["pass", "fail", "oom", "timeout", "infra-error", "skipped", "blocked"]
OUTCOMES_WITH_REASON = ("skipped", "blocked")

Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*\S[^\r\n]*$", max_length=1000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}(-dirty)?|unknown)$")]
RowId = Annotated[str, StringConstraints(pattern=f"^{ROW_ID_PATTERN.pattern}$")]
MetricKey = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]+$", max_length=100)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Versions(_Part):
    """The software a run used, as its packages report it."""

    vllm: Line
    torch: Line
    torch_tpu: Line
    jax: Line
    libtpu: Line


class Detected(_Part):
    """The hardware a run found under itself, which is not the name of its queue."""

    device_kind: Line = Field(
        description="What the runtime reports; 'virtual' without a TPU; the target of `compiles`."
    )
    devices: int = Field(ge=1)


class Record(_Part):
    """One run of one row; `id` follows from the fields that make a run unique."""

    schema_version: Literal[1] = SCHEMA_VERSION
    row_id: RowId
    args_hash: Sha256
    kind: Kind
    outcome: Outcome
    reason: Line | None = Field(default=None, description="Why it was skipped, or what blocked it.")
    checkpoint: Checkpoint = Field(description="The checkpoint that really ran.")
    metrics: dict[MetricKey, float] = {}
    commit: Commit
    versions: Versions
    detected: Detected
    started: AwareDatetime
    finished: AwareDatetime
    attempt: int = Field(default=1, ge=1)
    log: Line = Field(description="A path or URL of the log.")
    producer: Line = Field(description="Who ran it, such as a pipeline or `make demo`.")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.finished < self.started:
            raise ValueError("finished lies before started")
        if self.outcome in OUTCOMES_WITH_REASON and self.reason is None:
            raise ValueError(f"an outcome {self.outcome!r} needs a reason")
        if self.row_id.rpartition(":")[2] != self.args_hash[:SHORT_HASH_LENGTH]:
            raise ValueError("row_id does not end with the start of args_hash")
        return self

    @property
    def id(self) -> str:
        """The identity of the run: reporting it twice changes nothing."""
        identity = [
            self.row_id,
            self.args_hash,
            self.kind,
            self.commit,
            _utc(self.started),
            self.attempt,
            self.producer,
        ]
        return hashlib.sha256(json.dumps(identity).encode("ascii")).hexdigest()

    @property
    def day(self) -> str:
        """The UTC date on which the run finished."""
        return self.finished.astimezone(dt.UTC).date().isoformat()

    def to_line(self) -> bytes:
        """Returns the record as one canonical JSON line with its newline."""
        data = self.model_dump(mode="json", exclude_none=True, exclude={"stored_id"})
        data["started"], data["finished"] = _utc(self.started), _utc(self.finished)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return f'{{"id":"{self.id}",{text[1:]}\n'.encode("ascii")


class StoredRecord(Record):
    """A record as it stands in the store, with the id that was written beside it."""

    stored_id: Sha256 = Field(alias="id")

    @model_validator(mode="after")
    def _keeps_its_id(self) -> Self:
        if self.stored_id != self.id:
            raise ValueError("id does not follow from the record; it was edited by hand")
        return self


def _utc(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="microseconds")
