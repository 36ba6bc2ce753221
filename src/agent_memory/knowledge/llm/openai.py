"""Language model behind OpenAI's chat API or a compatible server.

For programs; a session of the host asks its own provider. Needs the extra `openai`. Nothing here has a default model,
and nothing uses it unless a program hands it over.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE: Final = "openai"
_OPTIONS: Final = {"max_tokens": 2_000}


class OpenAIModel:
    """Answer a prompt by one request; errors are raised.

    Args:
        model: Name of a model for chats.
        api_key: Key; None leaves it to the client, which reads OPENAI_API_KEY. A server that wants none takes any.
        base_url: Root of another server that speaks the API, e.g. one in your own network.
        timeout: Seconds for one answer.
        options: Further fields of the request. Models that refuse `max_tokens` take
            `{"max_completion_tokens": 2_000}`.

    Raises:
        ConfigurationError: The openai package or the key is missing.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 30.0,
        options: Mapping[str, Any] = _OPTIONS,
    ) -> None:
        if importlib.util.find_spec(_PACKAGE) is None:
            raise ConfigurationError("The openai package is not installed.", recovery=advice("openai"))
        if not (api_key or os.environ.get("OPENAI_API_KEY")):
            raise ConfigurationError(
                "There is no API key for the language model.",
                recovery="Set OPENAI_API_KEY, or leave the model away: all is done by rules then.",
            )
        self._model, self._options = model, dict(options)
        # Retries are left to the caller, which counts them against its budget.
        self._client = {"api_key": api_key, "base_url": base_url, "timeout": timeout, "max_retries": 0}

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r})"

    async def __call__(self, prompt: str) -> str:
        """Return the text of the answer.

        Raises:
            openai.OpenAIError: The server refused, failed or could not be reached.
            ValueError: It answered something else than a text.
        """
        openai = await asyncio.to_thread(importlib.import_module, _PACKAGE)
        # A client belongs to one event loop and must be closed; a new one is cheap next to a model's answer.
        async with await asyncio.to_thread(lambda: openai.AsyncOpenAI(**self._client)) as client:
            answer = await client.chat.completions.create(
                model=self._model, messages=[{"role": "user", "content": prompt}], **self._options
            )
        try:
            text = answer.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise ValueError(f"the model {self._model} answered no text")  # noqa: TRY004 - it is not a caller's type
        return text
