"""Steps: what can run, who works on it, and what is taken back of an attempt that did not end."""

from agent_memory.workspace.steps.plan import Status, WorkspaceStep, step_name
from agent_memory.workspace.steps.undoing import UndoneStep, undo
from agent_memory.workspace.steps.working import FailureType, Working

__all__ = ["FailureType", "Status", "UndoneStep", "Working", "WorkspaceStep", "step_name", "undo"]
