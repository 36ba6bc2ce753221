"""Views and forms of the page, and the state of one run."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import parse_qs, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from agent_memory.encryption import is_encrypted
from agent_memory.errors import ConfigurationError, StorageError, UnsupportedError, ValidationError
from agent_memory.files.layout import folder_of, resolve_root
from agent_memory.files.names import CONSENT
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.caller import Caller
from agent_memory.memory.features import attach_features, finish_purges
from agent_memory.memory.service import MemoryService, open_service
from agent_memory.models.text import has_steering, one_line, plain, to_json
from agent_memory.registry import KINDS
from agent_memory.web.temporary_files import UploadFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from starlette.requests import Request

    from agent_memory.models import Candidate
    from agent_memory.settings import ServiceSettings

SESSION_ID: Final = "page"
"""Session of events and memories that come from the page."""
_WATCHED: Final = ("memory", "candidate", "archived", "resource")
"""Kinds of records whose journals a view depends on."""
KEY_CODES: Final = frozenset({"encrypted", "wrong_key"})
"""Codes of errors that the right key repairs."""
_MAX_NOTICES: Final = 50


@dataclass(frozen=True, slots=True)
class PageNotice:
    """Outcome of an act, for the view after it.

    Attributes:
        text: Sentence for the person.
        undo: Numbers of the changes that an undo takes back.
        candidate_id: Rejected note or proposal that an undo returns to the inbox.
        import_id: Session of an import that an undo takes back.
        undo_name: Name of the button.
        hints: Further sentences, such as similar memories that stayed.
    """

    text: str
    undo: tuple[int, ...] = ()
    hints: tuple[str, ...] = ()
    candidate_id: str = ""
    import_id: str = ""
    undo_name: str = "Undo"

    @property
    def can_undo(self) -> bool:
        """True if the act can be taken back."""
        return bool(self.undo or self.candidate_id or self.import_id)

    @property
    def undo_address(self) -> str:
        """Address of the form that takes the act back."""
        return "/undo" if self.undo else "/import/undo" if self.import_id else "/decisions/undo"


@dataclass
class PageSession:
    """State of one run of the page.

    Attributes:
        agent_id: Agent whose memory is shown.
        settings: Settings of its memory.
        is_read_only: True if the page refuses every act.
        is_demo: True if the memory is the invented one.
        token: Secret of the first address; None once it was used.
        cookie: Secret that the browser sends.
        csrf: Secret of each form.
        last_act: Notice of the last act that can be taken back.
        uploads: Files to import.
        rejected: Rejected notes and proposals by ID; they are in no file.
    """

    agent_id: str
    settings: ServiceSettings
    is_read_only: bool = False
    is_demo: bool = False
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    caller: Caller = field(default_factory=lambda: Caller(SESSION_ID, origin="typed"))
    last_act: PageNotice | None = None
    rejected: dict[str, Candidate] = field(default_factory=dict)
    uploads: UploadFolder = field(default_factory=UploadFolder)
    _service: MemoryService | None = None
    _notices: dict[str, PageNotice] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def root(self) -> Path:
        """Folder of all agents."""
        return resolve_root(self.settings.storage_root)

    @property
    def folder(self) -> Path:
        """Folder of the agent."""
        return folder_of(self.agent_id, self.root).path

    @property
    def is_encrypted(self) -> bool:
        """True if the agent's files are encrypted."""
        try:
            return is_encrypted(self.folder)
        except StorageError:  # the file with the key cannot be used
            return True

    async def open(self) -> MemoryService:
        """Return the opened memory.

        Raises:
            StorageError: The key of an encrypted memory is missing or wrong, or a file cannot be read.
        """
        async with self._opening:
            if self._service is None:
                service = attach_features(open_service(self.agent_id, self.settings))
                await finish_purges(service)
                self._service = service
            service = self._service
        await service.pad.notice(self.caller)
        return service

    def open_knowledge(self) -> Knowledge:
        """Return documents, conversations, pages and entities, open for a block.

        Raises:
            ConfigurationError: The memory is on a server, which has none.
        """
        if self.settings.backend == "server":
            raise ConfigurationError("A server has no documents, pages or entities.", code="needs_files")
        return Knowledge(self.agent_id, self.settings)

    async def warm(self) -> None:
        """Load what the first views and the first search need."""
        service = await self.open()
        await service.status(self.caller)
        await service.searcher.find_candidates(self.agent_id, self.caller)
        with suppress(UnsupportedError):  # a server keeps no versions
            await service.history.list_changes(1)

    async def take_key(self, key: str) -> None:
        """Open an encrypted memory with a key, kept in this process.

        Raises:
            StorageError: It is not the key.
        """
        variable = self.settings.encryption.key_variable
        before = os.environ.get(variable)
        os.environ[variable] = key
        try:
            await self.open()
        except StorageError:
            os.environ.pop(variable)
            if before is not None:
                os.environ[variable] = before
            raise

    async def close(self) -> None:
        """Close the memory; the next view opens it again."""
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    def read_stamp(self) -> str:
        """Return a text that changes with the agent's journals; reads no content."""
        names = [KINDS[name].file for name in _WATCHED]
        paths = [*(self.folder / name for name in (*names, CONSENT)), self.root / CONSENT]
        return hashlib.blake2b(repr([*map(_get_state, paths)]).encode(), digest_size=8).hexdigest()

    def add_notice(self, notice: PageNotice) -> str:
        """Add a notice; return its name for the next address."""
        name = secrets.token_urlsafe(6)
        self._notices[name] = notice
        self.last_act = notice if notice.can_undo else None
        for entries in (self._notices, self.rejected):
            while len(entries) > _MAX_NOTICES:
                del entries[next(iter(entries))]
        return name

    def get_notice(self, name: str | None) -> PageNotice | None:
        """Return the notice with a name, or None."""
        return self._notices.get(name or "")

    async def find_undo(self, record_ids: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the last changes of memories, newest first."""
        changes = await (await self.open()).history.find_last_changes(set(record_ids))
        return tuple(change.seq for change in changes)


def _get_state(path: Path) -> Any:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino


def format_minute(moment: str) -> str:
    """Return a stored moment as local day and time."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MAX_TOKENS: Final = 3_000
"""Words and signs of a text; more are compared as one, since the comparison takes their product."""


class TextSpan(TypedDict):
    """Part of a text; `differs` if the other text has another one."""

    text: str
    differs: bool


def compare_words(before: str, after: str) -> tuple[list[TextSpan], list[TextSpan]]:
    """Return the spans of both texts in their order."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > _MAX_TOKENS:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    spans: tuple[list[TextSpan], list[TextSpan]] = ([], [])
    for operation, *bounds in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        parts = "".join(old[bounds[0] : bounds[1]]), "".join(new[bounds[2] : bounds[3]])
        for side, text in zip(spans, parts, strict=True):
            if text:
                side.append(TextSpan(text=text, differs=operation != "equal"))
    return spans


JSON_SUFFIX: Final = ".json"
_MAX_BODY: Final = 1024 * 1024
_SCREENS: Final = {
    "conflicts": ("/decisions", "Decisions"),
    "inbox": ("/decisions", "Decisions"),
    "review": ("/decisions", "Decisions"),
    "doctor": ("/health?check=on#doctor", "Doctor"),
    "doctor --repair": ("/health?check=on#doctor", "Repair"),
    "backup create": ("/health#backups", "Backups"),
    "consent": ("/health#consent", "Consent"),
}
"""Address and name of the screen that does what a command does."""
_MAX_FIELDS: Final = 2_000


@dataclass(frozen=True, slots=True)
class PageView:
    """View of one address.

    Attributes:
        template: Name of the template without its ending.
        data: Values of the template, and the JSON document.
        status: Status code of the HTTP answer.
        address: Address of the view to load again, if it answers a form.
    """

    template: str
    data: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    address: str = "/"


@dataclass(frozen=True, slots=True)
class ActResult:
    """Address after an act, with its notice."""

    path: str
    notice: PageNotice


@cache
def _load_templates() -> Environment:
    """Return the templates, which escape HTML and invisible characters."""
    environment = Environment(
        loader=PackageLoader("agent_memory.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "commands": _show_commands,
        "editable": _show_editable,
        "minute": format_minute,
        "number": _show_number,
        "one_line": one_line,
        "query": build_query,
    }
    environment.tests["steering"] = has_steering
    return environment


def load_templates() -> None:
    """Compile every template, so that no first view waits for it."""
    environment = _load_templates()
    for name in environment.list_templates():
        environment.get_template(name)


def _show_value(value: Any) -> Any:
    """Return a template value with invisible characters shown as codes."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else plain(value) if isinstance(value, str) else value


def _show_editable(text: str) -> Markup:
    """Return a text for a field, with its invisible characters."""
    return escape(text)


def _show_commands(text: str) -> Markup:
    """Return a sentence with its commands as code or links to screens."""
    parts = [_show_command(part) if place % 2 else escape(plain(part)) for place, part in enumerate(text.split("`"))]
    return Markup("").join(parts)


def _show_command(command: str) -> Markup:
    screen = _SCREENS.get(command.removeprefix("agent-memory "))
    if screen is None:
        return Markup("<code>{}</code>").format(plain(command))
    return Markup('<a href="{}">{}</a>').format(*screen)


def _show_number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def build_query(values: Mapping[str, Any], **changes: Any) -> str:
    """Return the query of an address without empty values."""
    pairs = {**values, **changes}
    return urlencode({name: value for name, value in pairs.items() if value not in {None, ""}}, doseq=True)


def is_json(request: Request) -> bool:
    """Return True if a request asks for the document of a view."""
    return request.url.path.endswith(JSON_SUFFIX)


def render_view(session: PageSession, request: Request, view: PageView) -> Response:
    """Return a view as HTML or JSON, as the request asks."""
    if is_json(request):
        return Response(to_json(view.data) + "\n", view.status, media_type="application/json")
    address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    page = {
        "agent_id": session.agent_id,
        "path": request.url.path if request.method == "GET" else view.address,
        "query": request.url.query if request.method == "GET" else "",
        "csrf": session.csrf,
        "stamp": session.read_stamp(),
        "is_read_only": session.is_read_only,
        "is_demo": session.is_demo,
        "is_encrypted": session.is_encrypted,
        "notice": session.get_notice(request.query_params.get("notice")),
        "last_act": None if session.is_read_only else session.last_act,
        "address": address if request.method == "GET" else view.address,
    }
    html = _load_templates().get_template(f"{view.template}.html").render(**view.data, page=page)
    return HTMLResponse(html.encode("utf-8", "replace"), view.status)


class PageForm:
    """Fields of a submitted form."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def get_text(self, name: str) -> str:
        """Return a field with line feeds, or an empty text."""
        return self._fields.get(name, [""])[0].replace("\r\n", "\n")

    def get_all(self, name: str) -> list[str]:
        """Return all values of a field, each once."""
        return list(dict.fromkeys(self._fields.get(name, [])))

    def get_number(self, name: str) -> int:
        """Return a field as a number.

        Raises:
            ValidationError: It is not a number.
        """
        text = self.get_text(name)
        if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - beyond any number of a change
            raise ValidationError(f"The form has no number {name!r}; nothing was changed.", code="usage")
        return int(text)


async def read_form(request: Request) -> PageForm:
    """Return the fields of a form.

    Raises:
        ValidationError: The body is too long or is not a form.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise ValidationError("The form is larger than 1 MB; nothing was changed.", code="usage")
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:  # also bytes that are no text
        raise ValidationError("The form cannot be read; nothing was changed.", code="usage") from None
    return PageForm(fields)


def read_back(form: PageForm) -> str:
    """Return the view of a form; Today if it is foreign."""
    path = form.get_text("back")
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else "/"
