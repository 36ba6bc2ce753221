"""Spans and metrics for programs that collect them, by OpenTelemetry and Prometheus; nothing at all for the others.

Neither library is ever imported here: what the program has imported is used. So a program that collects nothing pays a
look into a dictionary, and nothing is sent anywhere by us.
"""

from agent_memory.signals.metrics import Counter, Gauge, Histogram
from agent_memory.signals.tracing import operation, span

__all__ = ["Counter", "Gauge", "Histogram", "operation", "span"]
