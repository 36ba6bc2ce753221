"""The way in: bounded, without secrets, once, on the disk; what it says and what it does not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError, ValidationError
from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.memory import Caller
from agent_memory.models import MAX_LINE_CHARS, MAX_TEXT_CHARS, PART_OF, Resource
from agent_memory.redaction import SecretRedactor
from tests.support import NOON

if TYPE_CHECKING:
    from agent_memory.knowledge.intake.ingest import FileIngested
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.redaction import Redaction
    from tests.unit.knowledge.conftest import Events

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LONG = "The router stands upstairs. " * 500


async def test_a_document_is_kept_once_with_what_is_known_of_it(ingest: Ingest, knowledge: Knowledge) -> None:
    written = datetime(2025, 11, 3, tzinfo=UTC)
    given = ReceivedDocument("# Network\r\nThe router is upstairs.\n", "network.md", "config", written)
    first = await ingest.resource(given, tags=["home"], metadata={"url": "https://example.org/n"}, group="acme:s-1")
    record = first.record
    assert (first.outcome, record.content, record.chars) == ("new", "# Network\nThe router is upstairs.", 33)
    assert (record.title, record.resource_type, record.observed_at) == ("network.md", "config", written)
    assert (record.tags, record.group, record.trust, record.timestamp) == (["home"], "acme:s-1", "medium", NOON)
    again = await ingest.resource(given, group="acme:s-1")
    assert (again.outcome, again.record) == ("known", record)
    assert (await ingest.resource(replace(given, text="Another text"), group="acme:s-1")).outcome == "new"
    assert (await ingest.resource(given, group="acme:s-2")).outcome == "new", "another group does not see the first"
    assert await knowledge.resources.count() == 3


class SizeRedactor(SecretRedactor):
    """Notes the sizes of long texts that are searched for secrets."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def redact(self, text: str) -> Redaction:
        """Note the size of a text and redact it."""
        if len(text) >= MAX_LINE_CHARS:
            self.sizes.append(len(text))
        return super().redact(text)


async def test_ingest_long_text_is_redacted_once(knowledge: Knowledge) -> None:
    redactor = SizeRedactor()
    await Ingest(knowledge, redactor=redactor).turn(ReceivedTurn(LONG, role="tool"))
    await Ingest(knowledge, redactor=redactor).resource(LONG)
    assert redactor.sizes == [len(LONG.strip())] * 2


async def test_ingest_stored_turns_are_not_redacted_again(knowledge: Knowledge, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": f"{number}. {LONG}"} for number in range(3)]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, lines)))
    redactor = SizeRedactor()
    first = await Ingest(knowledge, redactor=redactor).file(tmp_path / "chat.jsonl")
    again = await Ingest(knowledge, redactor=redactor).file(tmp_path / "chat.jsonl")
    assert (first.new, again.new, again.known, len(redactor.sizes)) == (3, 0, 3, 3)


async def test_no_secret_reaches_a_file_or_an_event(
    ingest: Ingest, knowledge: Knowledge, events: Events, root: Path
) -> None:
    text = f"{LONG}Deploy with {TOKEN} at night. {LONG}"
    kept = await ingest.resource(ReceivedDocument(text, f"Notes on {TOKEN}"))
    await ingest.turn(ReceivedTurn(f"Use {TOKEN} for it, please", speaker=f"Ada {TOKEN}"))
    assert kept.redacted
    whole = await knowledge.text_of(kept.record)
    assert "Deploy with [redacted:" in whole
    assert (len(whole), kept.record.content) == (kept.record.chars, whole[:MAX_LINE_CHARS])
    files = [path for path in (root / "bob").rglob("*") if path.is_file()]
    assert [path.name for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in json.dumps(events)
    assert [name for name, _ in events] == ["memory:resource_stored", "memory:episodes_stored"]
    assert events[0][1]["content_length"] == kept.record.chars


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * (MAX_TEXT_CHARS + 1), "too_long"), ("  \n ", "invalid"), (TOKEN, "only_secret"), ("a\0b", "invalid")],
    ids=["long", "empty", "secret", "nul"],
)
async def test_what_cannot_be_kept_is_refused_and_leaves_nothing(
    ingest: Ingest, root: Path, text: str, code: str, events: Events
) -> None:
    with pytest.raises(ValidationError) as caught:
        await ingest.resource(text)
    assert caught.value.code == code
    with pytest.raises(ValidationError):
        await ingest.turn(ReceivedTurn(text))
    assert (events, (root / "bob" / "blobs").exists()) == ([], False)


async def test_the_longest_text_comes_back_whole(ingest: Ingest, knowledge: Knowledge) -> None:
    text = "".join(f"Line {number}: nothing to see here.\n" for number in range(31_000))[:MAX_TEXT_CHARS].strip()
    kept = await ingest.resource(text)
    assert await knowledge.text_of(kept.record) == text


async def test_the_same_words_in_another_place_are_another_turn(ingest: Ingest, knowledge: Knowledge) -> None:
    begun = await ingest.conversation("session-1", title="Tea")
    again = await ingest.conversation("session-1", title="Another title")
    assert (again.outcome, again.record) == ("known", begun.record)
    yes = ReceivedTurn("Yes.", speaker="Ada", said_at=datetime(2025, 11, 3, tzinfo=UTC))
    outcomes = [(await ingest.turn(yes, conversation=begun.record.id, order=at)).outcome for at in (1, 3, 3, 1)]
    assert outcomes == ["new", "new", "known", "known"]
    turns = [each async for each in knowledge.episodes.iter_all()]
    assert [(each.order, each.conversation, each.speaker) for each in turns] == [
        (1, begun.record.id, "Ada"), (3, begun.record.id, "Ada"),
    ]  # fmt: skip
    assert turns[0].links[0].rel == PART_OF
    assert [(await ingest.turn(ReceivedTurn("Yes."))).outcome for _ in range(2)] == ["new", "known"]


async def test_a_text_whose_id_is_taken_gets_another_one(ingest: Ingest, knowledge: Knowledge) -> None:
    kept = await ingest.resource("The router is upstairs.")
    await knowledge.resources.update(kept.record.id, {"content": "A person wrote this instead."})
    again = await ingest.resource("The router is upstairs.")
    assert (again.outcome, again.record.id == kept.record.id) == ("new", False)
    assert (await ingest.resource("The router is upstairs.")).outcome == "known"


@pytest.mark.parametrize(
    ("role", "caller", "live", "trust"),
    [
        ("user", "high", True, "high"), ("user", "high", False, "medium"), ("user", "low", True, "low"),
        ("assistant", "high", True, "medium"), ("system", "high", True, "medium"), ("tool", "high", True, "low"),
        ("tool", "high", False, "low"), ("assistant", "low", False, "low"),
    ],
)  # fmt: skip
async def test_only_what_the_host_saw_the_user_say_is_the_users_word(
    ingest: Ingest, role: str, caller: str, live: bool, trust: str
) -> None:
    asks = Caller("s-1", trust=caller)  # type: ignore[arg-type]
    kept = await ingest.turn(ReceivedTurn("The router is upstairs.", role), is_live=live, caller=asks)
    assert (kept.record.trust, kept.record.created_by_session) == (trust, "s-1")


async def test_turns_of_a_live_session_are_one_change_and_none_has_more_trust_than_it_says(
    ingest: Ingest, knowledge: Knowledge, events: Events
) -> None:
    begun = await ingest.conversation("s-1", group="acme:s-1")
    turns = [
        ReceivedTurn("The router is upstairs.", "user"),
        ReceivedTurn(TOKEN, "user"),
        ReceivedTurn("So I was told.", "assistant", trust="low"),
    ]
    for outcome in ("new", "known"):
        kept, refused = await ingest.turns(
            turns, conversation=begun.record.id, first=7, group="acme:s-1", is_live=True, caller=Caller("s-1")
        )
        assert [each.outcome for each in kept] == [outcome, outcome]
        assert refused == [(8, "only_secret")]
    said = [each async for each in knowledge.episodes.iter_all()]
    assert [(each.order, each.trust, each.group) for each in said] == [(7, "high", "acme:s-1"), (9, "low", "acme:s-1")]
    assert [(name, data.get("count")) for name, data in events][1:] == [("memory:episodes_stored", 2)]


async def test_a_chat_is_taken_in_by_portions_and_goes_on_where_it_stopped(
    ingest: Ingest, knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chat.jsonl"
    lines = [{"role": "user", "name": "Ada", "content": f"Turn number {number}"} for number in range(250)]
    path.write_text("\n".join(map(json.dumps, lines)))
    seen: list[int] = []

    def stop(done: FileIngested) -> None:
        seen.append(done.new)
        if done.new == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await ingest.file(path, progress=stop)
    assert await knowledge.episodes.count() == 100
    done = await ingest.file(path, progress=lambda done: seen.append(done.new + done.known))
    assert (done.new, done.known, len(done.resources), done.refused) == (150, 100, 1, [])
    assert seen == [100, 100, 200, 250, 250]
    assert [each.order async for each in knowledge.episodes.iter_all()] == list(range(250))
    path.write_text("\n".join(map(json.dumps, [*lines, {"speaker": "Bob", "text": "One more"}])))
    assert ((done := await ingest.file(path)).new, done.known) == (1, 250)


async def test_what_a_file_has_that_cannot_be_kept_is_named_and_the_rest_is_kept(
    ingest: Ingest, knowledge: Knowledge, tmp_path: Path
) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(json.dumps({"content": text}) for text in ("Tea, please", TOKEN, "With milk")))
    done = await ingest.file(path)
    assert (done.new, done.refused) == (2, [("turn 2 of chat.jsonl", "only_secret")])
    kept = [each async for each in knowledge.episodes.iter_all()]
    assert [(each.order, each.source.kind, each.source.detail) for each in kept] == [
        (0, "import", "chat.jsonl"), (2, "import", "chat.jsonl"),
    ]  # fmt: skip


async def test_a_text_is_on_the_disk_before_the_record_that_names_it(
    ingest: Ingest, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(records: list[Resource]) -> None:
        assert knowledge.blobs.names()
        raise StorageError("no room")

    monkeypatch.setattr(knowledge.resources, "store_many", fail)
    with pytest.raises(StorageError):
        await ingest.resource(LONG)
    assert knowledge.blobs.names(), "nobody names it, so it is swept when it is old"


@pytest.mark.parametrize("before", [180, 190, 280, 290])
async def test_no_part_of_a_secret_is_left_where_a_title_or_a_name_is_cut(
    ingest: Ingest, knowledge: Knowledge, root: Path, tmp_path: Path, before: int
) -> None:
    long = f"{'x' * (before - 1)} {TOKEN} and so on"
    await ingest.resource(ReceivedDocument("A text.", long))
    await ingest.conversation("chat", title=long)
    await ingest.turn(ReceivedTurn("Hello there, Ada.", speaker=long))
    file = tmp_path / f"{'x' * min(before - 1, 195)} {TOKEN}.md"
    file.write_text("Another text.")
    await ingest.file(file)
    await knowledge.close()
    files = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert not any(TOKEN[:8].encode() in content for content in files)


@pytest.mark.parametrize(
    ("resource_type", "trust"),
    [
        *((name, "medium") for name in ("document", "config", "feedback", "conversation")),
        *((name, "low") for name in ("web_page", "email", "e_mail", "ticket", "chat", "feed", "html")),
    ],
)
async def test_document_of_another_type_has_low_trust(ingest: Ingest, resource_type: str, trust: str) -> None:
    stored = await ingest.resource(ReceivedDocument("The boat is blue.", "Boat", resource_type))
    assert stored.record.trust == trust


@pytest.mark.parametrize("name", ["", " "])
async def test_file_without_a_name_is_refused(ingest: Ingest, name: str) -> None:
    with pytest.raises(ValidationError, match="name of the file is empty; nothing was ingested"):
        await ingest.file(Path(name))


def _write_chat(path: Path, *messages: dict[str, str]) -> Path:
    path.write_text("".join(f"{json.dumps(message)}\n" for message in messages), "utf-8")
    return path


async def test_ingest_message_offset_is_kept(ingest: Ingest, knowledge: Knowledge, tmp_path: Path) -> None:
    west = {"speaker": "Ada", "text": "I moved to Hamburg yesterday.", "timestamp": "2024-05-31T22:30:00-05:00"}
    utc = {"speaker": "Bea", "text": "I moved there today.", "timestamp": "2024-06-01T12:00:00Z"}
    await ingest.file(_write_chat(tmp_path / "chat.jsonl", west, utc))
    turns = sorted(await knowledge.episodes.valid(), key=lambda turn: turn.order)
    assert [turn.metadata for turn in turns] == [{"utc_offset": "-05:00"}, {}]
    assert turns[0].observed_at == datetime(2024, 6, 1, 3, 30, tzinfo=UTC)
    assert f"{turns[0].said_at:%Y-%m-%d %H:%M}" == "2024-05-31 22:30"


async def test_ingest_timezone_applies_to_messages_without_offset(
    ingest: Ingest, knowledge: Knowledge, tmp_path: Path
) -> None:
    knowledge.settings = knowledge.settings.model_copy(update={"timezone": "Asia/Tokyo"})
    bare = {"speaker": "Ada", "text": "I sleep now.", "timestamp": "2024-05-31T22:30:00"}
    utc = {"speaker": "Bea", "text": "I woke up.", "timestamp": "2024-05-31T22:30:00Z"}
    await ingest.file(_write_chat(tmp_path / "chat.jsonl", bare, utc))
    turns = sorted(await knowledge.episodes.valid(), key=lambda turn: turn.order)
    assert [turn.metadata for turn in turns] == [{"utc_offset": "+09:00"}] * 2
    assert [f"{turn.said_at:%Y-%m-%d %H:%M}" for turn in turns] == ["2024-05-31 22:30", "2024-06-01 07:30"]


async def test_ingest_message_without_time_has_that_of_conversation_then_file(
    ingest: Ingest, knowledge: Knowledge, tmp_path: Path
) -> None:
    message = {"uuid": "m", "text": "I drive a Saab.", "sender": "human", "created_at": None, "attachments": []}
    talk = {"uuid": "c", "name": "T", "created_at": "2025-03-03T09:59:00Z", "chat_messages": [message]}
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([talk]), "utf-8")
    await ingest.file(export)
    chat = _write_chat(tmp_path / "chat.jsonl", {"role": "user", "content": "I like tea."})
    os.utime(chat, (86_400, 86_400))
    await ingest.file(chat)
    said = {turn.content: turn.observed_at for turn in await knowledge.episodes.valid()}
    assert said == {
        "I drive a Saab.": datetime(2025, 3, 3, 9, 59, tzinfo=UTC),
        "I like tea.": datetime(1970, 1, 2, tzinfo=UTC),
    }
