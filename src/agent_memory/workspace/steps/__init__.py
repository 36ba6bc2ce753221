"""Steps: what can run, who works on it, and what is taken back of an attempt that did not end."""

from agent_memory.workspace.steps.plan import Status, Step, step_name
from agent_memory.workspace.steps.undoing import UndoneStep, undo
from agent_memory.workspace.steps.working import FailureType, Working

__all__ = ["FailureType", "Status", "Step", "UndoneStep", "Working", "step_name", "undo"]
