"""Views and forms: one dictionary for HTML and JSON, bounded forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import parse_qs, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from agent_memory.errors import ValidationError
from agent_memory.models.text import has_steering, one_line, plain, to_json
from agent_memory.web.page_session import format_minute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from agent_memory.web.page_session import PageNotice, PageSession

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
