"""Columns of progress bars that rich does not have."""

from rich.progress import ProgressColumn, Task
from rich.text import Text


class RateColumn(ProgressColumn):
    """Steps in a second."""

    def render(self, task: Task) -> Text:
        """Return the rate, empty until it is known."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")
