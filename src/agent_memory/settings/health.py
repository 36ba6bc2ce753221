"""From where on something about a memory is worth a warning, and where it is critical."""

from __future__ import annotations

from typing import Annotated, Final, Self

import pydantic
from pydantic import Field

from agent_memory.settings.base import Positive, Settings

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
RISING: Final = ("slow", "backup", "backlog")
"""Of these the critical limit lies above that of a warning; less free room is worse, so with it that is the other way
round."""


class HealthSettings(Settings):
    """The limits of `agent-memory health` and of `memory:alert`."""

    disk_warning_mb: Amount = Field(default=500, description="Free megabytes of the disk below which it is a warning.")
    disk_critical_mb: Amount = Field(default=100, description="Below which it is critical.")
    slow_warning_ms: Amount = Field(
        default=500, description="Milliseconds that 19 of 20 searches or stores take less than, else it is a warning."
    )
    slow_critical_ms: Amount = Field(default=5000, description="The same for critical.")
    backup_warning_days: Amount = Field(
        default=7, description="Days since the last backup from which on it is a warning, where backups are made."
    )
    backup_critical_days: Amount = Field(default=30, description="The same for critical.")
    backlog_warning_hours: Amount = Field(
        default=24, description="Hours that background work may wait before it is a warning."
    )
    backlog_critical_hours: Amount = Field(default=168, description="The same for critical.")
    suspects_warning: Positive = Field(
        default=20, description="Pairs of memories that wait for a decision from which on it is a warning."
    )
    activity_least: Positive = Field(
        default=50,
        description="Memories forgotten, or changed, within an hour from which on it is a warning; of new ones ten "
        "times as many.",
    )
    activity_factor: Amount = Field(
        default=10, description="And only if it is so many times what a usual day of this agent has."
    )

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        """Refuse limits of which the critical one would come first."""
        values = self.model_dump()
        pairs = {key.partition("_")[0]: key for key in values if "_warning_" in key}
        for name, key in pairs.items():
            warning, critical = values[key], values[worse := key.replace("_warning_", "_critical_")]
            if (critical < warning) if name in RISING else (critical > warning):
                raise ValueError(f"'{worse}' comes before '{key}'; change one of the two")
        return self
