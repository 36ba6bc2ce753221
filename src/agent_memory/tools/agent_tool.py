"""Base of the agent tools: arguments, answer and errors of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, get_args

from typing_extensions import get_original_bases

from agent_memory.errors import AgentMemoryError, StorageError, refused_by_system
from agent_memory.models import visible_values
from agent_memory.tools.argument_reader import ToolArguments, read_arguments
from agent_memory.tools.arguments import build_schema

if TYPE_CHECKING:
    from agent_memory.tools.host_session import HostSession

InputT = TypeVar("InputT", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Answer of a tool: its output, or why it failed."""

    output: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class AgentTool(Generic[InputT]):
    """Tool of an agent: name, description, schema and answers.

    A subclass is declared with the model of its arguments.

    Args:
        session: Session that the tool works in.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    arguments_model: ClassVar[type[ToolArguments]]
    only_reads: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Read the model of the arguments from the declaration."""
        (cls.arguments_model,) = get_args(get_original_bases(cls)[0])

    def __init__(self, session: HostSession) -> None:
        self.session = session

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as a model is shown it."""
        return build_schema(self.arguments_model)

    async def answer(self, arguments: Any) -> ToolAnswer:
        """Run the tool on the arguments of a model, valid or not."""
        try:
            return ToolAnswer(visible_values(await self.call(arguments)))
        except AgentMemoryError as error:
            return ToolAnswer(error=self._describe_error(error))
        except (OSError, MemoryError, RuntimeError) as error:
            if (refused := refused_by_system(error)) is None:
                raise
            return ToolAnswer(error=self._describe_error(refused))

    async def call(self, arguments: Any) -> dict[str, Any]:
        """Run the tool and return its output.

        Raises:
            AgentMemoryError: The arguments are wrong, or the tool failed.
        """
        args = read_arguments(self.name, self.arguments_model, arguments)
        output = await self._run(cast("InputT", args))
        if warnings := [*args.warnings, *output.get("warnings", ())]:
            output["warnings"] = warnings
        return output

    async def _run(self, args: InputT) -> dict[str, Any]:
        """Return the output; raises AgentMemoryError on failure."""
        raise NotImplementedError

    def _describe_error(self, error: AgentMemoryError) -> dict[str, Any]:
        """Return an error as a model reads it."""
        description: dict[str, Any] = visible_values(error.as_dict())
        if isinstance(error, StorageError):
            description["recovery"] = f"{error.recovery} Check the folder {self.session.folder()}.".lstrip()
        return description
