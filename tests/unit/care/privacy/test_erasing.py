"""What a purge does to one sort of file after the other, and what it leaves whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.care.privacy import erasure as erasing
from agent_memory.care.privacy.erasure import TextHider
from agent_memory.care.privacy.purge import Purging
from agent_memory.errors import StorageError
from agent_memory.journal import Journal
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from tests.house import OTHER, SECRET, House
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path


async def test_records_with_labels_that_are_purged_words_stay_readable(bobs: House) -> None:
    purged = await bobs.keep("kestrel_launch_plan")
    other = await bobs.keep(OTHER, topic="kestrel_launch_plan", tags=["kestrel_launch_plan", "harbour"])
    assert (await bobs.purge(purged)).is_clean
    memory = await (await bobs.again()).get(other)
    assert memory.content == OTHER
    assert memory.topic == ""
    assert memory.tags == ["\u2588" * len("kestrel_launch_plan"), "harbour"]
    assert not list(bobs.folder.glob("*rejected*"))


async def test_metadata_loses_the_words_in_names_and_values_and_stays_within_its_bounds(bobs: House) -> None:
    purged = await bobs.keep(SECRET)
    fields = {SECRET: 1, f"{SECRET}!": 2, "said": f"{SECRET} " * 150, "kept": "yes"}
    other = await bobs.keep(OTHER, metadata=fields)
    assert (await bobs.purge(purged)).is_clean
    assert bobs.holding() == []
    metadata = (await (await bobs.again()).get(other)).metadata
    assert metadata["kept"] == "yes"
    assert len(metadata) == len(fields)


async def test_who_is_killed_between_two_journals_still_knows_the_words(
    bobs: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = Knowledge("bob", bobs.settings, clock=bobs.clock)
    ingest = Ingest(knowledge)
    talk = (await ingest.conversation("c1")).record.id
    await ingest.turns([ReceivedTurn(f"Minutes of May. {SECRET} The crane is repaired.", "user")], conversation=talk)
    purged = await bobs.keep(SECRET)
    purging, real = Purging(bobs.service, clock=bobs.clock), Journal.prepare_purge

    def killed(*given: Any, **options: Any) -> Any:
        if not given or SECRET not in bobs.service.folder.journal.read_text():
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(Journal, "prepare_purge", killed)
    monkeypatch.setattr(bobs.service.writer, "compact", killed)
    with pytest.raises(KeyboardInterrupt):
        await purging.run(await purging.plan([purged]))
    monkeypatch.undo()
    (receipt,) = await purging.finish()
    assert receipt.is_clean
    assert bobs.holding() == []
    await knowledge.close()


async def test_a_pad_that_was_kept_aside_loses_an_entry_however_short(bobs: House) -> None:
    purged, other = await bobs.keep("Zed owes 5"), await bobs.keep(OTHER)
    await bobs.service.pad.settle()
    pad = (bobs.folder / "scratchpad.yaml").read_text()
    aside = bobs.folder / "scratchpad.broken-20260301T120000.yaml"
    aside.write_text(pad)
    await bobs.purge(purged)
    assert bobs.holding("It: Zed owes 5 now") == []
    assert other in aside.read_text()
    assert aside.read_text().count("\n- id:") == pad.count("\n- id:") - 1


async def test_words_that_are_taken_out_of_the_pad_are_no_edit_of_a_persons(bobs: House) -> None:
    purged = await bobs.keep(SECRET)
    other = await bobs.keep(f"Minutes. {SECRET} The crane is repaired.", trust="low")
    pinned = await bobs.keep(f"Pinned. {SECRET} Be quiet.", trust="medium", pinned=True)
    await bobs.service.pad.settle()
    assert sorted(bobs.holding()) == ["bob/memories.yaml", "bob/scratchpad.yaml"]
    assert (await bobs.purge(purged)).is_clean
    service = await bobs.again()
    await service.scratchpad()
    assert [(await service.get(one)).trust for one in (other, pinned)] == ["low", "medium"]
    assert not list(bobs.folder.glob("*broken*"))


async def test_what_lies_among_the_backups_and_is_none_is_searched_and_named(bobs: House) -> None:
    purged = await bobs.keep(SECRET)
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    (made.path.parent / "old copy.zip").write_bytes(made.path.read_bytes())
    (made.path.parent / "sent.jsonl").write_text(f'{{"content": "{SECRET}"}}')
    elsewhere = bobs.root.parent / "elsewhere.zip"
    elsewhere.write_bytes(made.path.read_bytes())
    (made.path.parent / made.path.name.replace("12", "11")).symlink_to(elsewhere)
    receipt = await bobs.purge(purged)
    assert {name.split("/")[1] for name in receipt.found} == {"old copy.zip", "sent.jsonl"}
    (failed,) = receipt.failed
    assert failed.startswith(f"_backups/{made.path.name.replace('12', '11')} is a link")


async def test_a_backup_of_another_agent_is_none_of_this_ones_concern(bobs: House, tmp_path: Path) -> None:
    purged = await bobs.keep(SECRET)
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    other = made.path.with_name(made.path.name.replace("bob-", "eve-"))
    other.symlink_to(tmp_path / "gone.zip")
    assert (await bobs.purge(purged)).is_clean


@check_rows("quote", ["", "'", '"'])
def test_only_the_entries_of_these_records_leave_a_pad(quote: str) -> None:
    pad = (
        "# What bob sees.\n"
        f"- id: {quote}mem-0123456789ab{quote}\n  content: |\n    Zed owes 5\n\n    - and more\n  tags: []\n"
        "- content: names mem-0123456789ab\n  id: mem-ba9876543210\n"
        f"- content: Zed\n  id: {quote}mem-0123456789ab{quote}\n"
        "# rendered 0\n"
    )
    left = TextHider((), {"mem-0123456789ab"}).without_entries(pad)
    assert left == ("# What bob sees.\n- content: names mem-0123456789ab\n  id: mem-ba9876543210\n# rendered 0\n")


LONG = "\n\n".join(f"Paragraph {number} speaks of box {number} in the harbour of Kiel alone." for number in range(200))


async def test_a_long_text_that_has_the_words_is_written_anew_in_backups_too(bobs: House) -> None:
    knowledge = Knowledge("bob", bobs.settings, clock=bobs.clock)
    document = (await Ingest(knowledge).resource(f"{LONG}\n\n{SECRET}\n")).record
    purged = await bobs.keep(SECRET)
    create_backup(bobs.service.folder, clock=bobs.clock)
    (before,) = (bobs.folder / "blobs").iterdir()
    assert (await bobs.purge(purged)).is_clean
    assert bobs.holding() == []
    after = await knowledge.resources.get(document.id)
    assert (after.blob, after.chars) != (before.name, 0)
    assert await knowledge.text_of(after) == f"{LONG}\n\n{'█' * len(SECRET)}"
    assert not before.exists()
    await knowledge.close()


async def test_an_older_backup_brings_neither_pages_nor_long_texts_nor_words_back(bobs: House) -> None:
    knowledge = Knowledge("bob", bobs.settings, clock=bobs.clock)
    ingest = Ingest(knowledge)
    purged = (await ingest.resource(f"Clara Schmidt went to Hamburg.\n\n{LONG.replace('box', 'crate')}\n")).record.id
    other = (await ingest.resource(f"{SECRET}\n\n{LONG}\n")).record.id
    secret = await bobs.keep(SECRET)
    (bobs.folder / "topics").mkdir(exist_ok=True)
    (bobs.folder / "topics" / "clara.md").write_text(f"# Clara\n\n{SECRET}\n")
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    elsewhere = bobs.root.parent / made.path.name
    elsewhere.write_bytes(made.path.read_bytes())
    await bobs.purge(purged, secret)
    await knowledge.close()
    await bobs.service.close()
    restore_backup(elsewhere, bobs.root, clock=bobs.clock)
    assert bobs.holding() == bobs.holding("x Clara Schmidt went to Hamburg x") == []
    knowledge = Knowledge("bob", bobs.settings, clock=bobs.clock)
    assert (await knowledge.text_of(await knowledge.resources.get(other))).endswith(LONG)
    await knowledge.close()


async def test_a_purge_that_knows_no_word_any_more_searches_by_signatures(bobs: House) -> None:
    purged = await bobs.keep(SECRET)
    purging = Purging(bobs.service, clock=bobs.clock)
    plan = await purging.plan([purged])
    await bobs.purge(purged)
    purging.list.begin(plan.ids, plan.texts, "2026-03-01T13:00:00Z")
    (bobs.folder / "old copy.bin").write_bytes(b"\x00\xff" + SECRET.encode())
    (receipt,) = await purging.finish()
    assert receipt.searched == 1
    assert bobs.holding() == []  # it was made unreadable, too
    (bobs.folder / "blobs").mkdir()
    (bobs.folder / "blobs" / "note.bin").write_bytes(b"\x00\xff" + SECRET.encode())
    assert [each.path.name for each in await purging.verify()] == ["note.bin"]


async def test_a_receipt_names_the_index_of_the_vector_engine_where_there_is_one(bobs: House) -> None:
    first, second = await bobs.keep(SECRET), await bobs.keep(OTHER)
    assert "index rebuild" not in " ".join((await bobs.purge(first)).beyond)
    (bobs.folder / "memories.db").mkdir()
    assert "index rebuild" in " ".join((await bobs.purge(second)).beyond)


async def test_what_could_not_be_done_is_done_by_purging_the_same_id_again(
    bobs: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged = await bobs.keep(SECRET)
    create_backup(bobs.service.folder, clock=bobs.clock)
    await bobs.keep(f"Minutes. {SECRET} The crane is repaired.")
    bobs.clock.advance(hours=1)
    create_backup(bobs.service.folder, clock=bobs.clock)

    def no_room(*_: object) -> None:
        raise StorageError("No room for it.")

    monkeypatch.setattr(erasing, "withdraw", no_room)
    receipt = await bobs.purge(purged)
    assert len(receipt.failed) == 2
    assert bobs.holding() == []  # they are packed
    assert len({each.path for each in await Purging(bobs.service).verify()}) == 2
    monkeypatch.undo()
    await bobs.again()
    receipt = await bobs.purge(purged)
    assert receipt.is_clean
    assert len([name for name in receipt.files if name.endswith(".zip")]) == 2
    assert await Purging(bobs.service).verify([SECRET]) == []
