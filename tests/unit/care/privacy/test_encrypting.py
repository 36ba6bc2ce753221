"""An agent's files are encrypted and plain again by one command each: nothing is lost, and no text stands in plain."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from agent_memory.care.archive import Archive
from agent_memory.care.backups.backup_reader import list_backups, verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import copy_agent, restore_backup
from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine
from agent_memory.care.encrypted_files import kept_in
from agent_memory.care.privacy.file_encryption import change_key, decrypt, encrypt
from agent_memory.care.privacy.purge import Purging
from agent_memory.encryption import KeyFile, PersonKey, get_encryption_state
from agent_memory.encryption.keys import data_key, forget_keys
from agent_memory.errors import AgentMemoryError, ConfigurationError, StorageError, ValidationError
from agent_memory.journal import keep_lost
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import MemoryService, open_service
from agent_memory.memory.events import AuditLog
from agent_memory.memory.scratchpad_file import PadFile
from agent_memory.settings import EncryptionSettings, ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import raises, read_files, resealed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock

KEY: Final = "0f" * 32
NEW_KEY: Final = "correct horse battery staple"
TEXTS: Final = [f"The harbour of Kiel has {number} cranes." for number in range(10, 20)]
NEEDLE: Final = b"harbour"


class House:
    """Bob's memory in files, opened anew for each thing that is done."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        self.root, self.clock = root, clock
        self.settings = ServiceSettings(embedder="none", storage_root=str(root))

    @property
    def folder(self) -> Any:
        return FileStorage("bob", settings=self.settings).folder

    def service(self) -> MemoryService:
        storage = FileStorage("bob", settings=self.settings, clock=self.clock)
        return MemoryService(storage, self.settings, clock=self.clock)

    async def store(self, *texts: str) -> list[str]:
        service = self.service()
        stored = [(await service.store(text)).memory.id for text in texts]
        await service.settle()
        await service.close()
        return stored

    async def texts(self) -> set[str]:
        service = self.service()
        found = {each.content for each in await service.searcher.list_all()}
        await service.settle()
        await service.close()
        return found

    def holding(self, needle: bytes = NEEDLE) -> list[str]:
        """Return the files in which some bytes stand."""
        return [path.relative_to(self.root).as_posix() for path, content in read_files(self.root) if needle in content]


@pytest.fixture
async def house(root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)
    made = House(root, clock)
    await made.store(*TEXTS)
    yield made
    forget_keys()


async def test_after_it_no_text_stands_in_plain_and_all_is_known(house: House) -> None:
    assert house.holding()
    done = encrypt(house.folder)
    assert (done.is_clean, done.searched) == (True, len(TEXTS))
    assert house.holding() == []
    assert get_encryption_state(house.folder.path) == "encrypted"
    assert await house.texts() == set(TEXTS)
    await house.store("Anna waits at the harbour.")
    assert await house.texts() == {*TEXTS, "Anna waits at the harbour."}
    assert house.holding() == []


async def test_copy_of_encrypted_agent_needs_no_key(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = Knowledge("bob", house.settings)
    text = "The harbour of Kiel. " * 1_000
    resource = (await Ingest(knowledge).resource(text)).record.id
    await knowledge.close()
    encrypt(house.folder)
    forget_keys()
    monkeypatch.delenv("AGENT_MEMORY_KEY")
    copied = copy_agent(house.folder, "eve", house.root)
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)
    assert get_encryption_state(copied.path) == "encrypted"
    service, knowledge = open_service("eve", house.settings), Knowledge("eve", house.settings)
    assert {memory.content for memory in await service.searcher.list_all()} >= set(TEXTS)
    record = await knowledge.resources.get(resource)
    assert record is not None
    assert (await knowledge.text_of(record)).count("harbour") == 1_000
    await knowledge.close()
    await service.close()
    assert house.holding() == []


@pytest.mark.parametrize("label", ["saltwater-cranes", "name of the ship", "MS Aurora Borealis", "Harbour rebuilding"])
async def test_names_and_labels_are_looked_for_too(house: House, label: str) -> None:
    service = house.service()
    labels = {"tags": ["saltwater-cranes"], "metadata": {"name of the ship": "MS Aurora Borealis"}}
    await service.store({"content": "It is large.", "project": "Harbour rebuilding", **labels})
    await service.settle()
    await service.close()
    (house.root / "bob" / "of-a-person.txt").write_text(f"About {label}.")
    assert encrypt(house.folder).found == ("bob/of-a-person.txt",)


async def test_what_stays_readable_is_not_looked_for(house: House) -> None:
    service = house.service()
    metadata = {"session": "session-of-monday", "of": service.agent_id, "after": "mem-0123456789ab"}
    await service.store({"content": "It is large.", "metadata": metadata})
    await service.settle()
    await service.close()
    AuditLog(house.folder.audit).append(
        "memory:stored", {"session_id": "session-of-monday", "memory_id": "mem-0123456789ab"}
    )
    assert encrypt(house.folder).is_clean


async def test_a_new_agent_is_encrypted_from_its_first_line(house: House) -> None:
    encryption = EncryptionSettings(new_agents=True)
    settings = ServiceSettings(embedder="none", storage_root=str(house.root), encryption=encryption)
    for name in ("eve", "bob"):
        service = open_service(name, settings)
        assert not (await service.search("a lighthouse")).results
        await service.store(f"A lighthouse of {name}.")
        knowledge = Knowledge(name, settings)
        await Ingest(knowledge).resource("The lighthouse is old. " * 5000)
        await knowledge.close()
        await service.settle()
        await service.close()
    assert {path.partition("/")[0] for path in house.holding(b"ighthouse")} == {"bob"}
    assert list((house.root / "eve" / "blobs").iterdir())
    assert (get_encryption_state(house.root / "eve"), get_encryption_state(house.root / "bob")) == ("encrypted", None)
    forget_keys()
    service = open_service("eve", settings)
    assert (await service.search("who has a lighthouse")).results
    await service.close()


async def test_plain_again_it_is_as_it_was(house: House) -> None:
    encrypt(house.folder)
    decrypt(house.folder)
    assert get_encryption_state(house.folder.path) is None
    assert house.holding() == ["bob/memories.yaml"]
    assert await house.texts() == set(TEXTS)
    assert not (house.root / "bob" / "encryption.json").exists()


async def test_history_and_what_was_forgotten_stay(house: House) -> None:
    service = house.service()
    first, second = (each.id for each in (await service.searcher.list_all())[:2])
    await service.update(first, {"content": "The harbour of Kiel has a lighthouse."})
    await service.forget(second)
    before = [each.record.content for each in await service.storage.history(first)]
    await service.close()
    encrypt(house.folder)
    service = house.service()
    assert [each.record.content for each in await service.storage.history(first)] == before
    assert [each.id for each in await service.storage.forgotten_with(second)] == [second]
    await service.close()


async def test_another_open_session_goes_on_while_it_is_encrypted_and_plain_again(house: House) -> None:
    service = house.service()
    assert len(await service.searcher.list_all()) == len(TEXTS)
    encrypt(house.folder)
    await service.store("It rains at the harbour.")
    assert len(await service.searcher.list_all()) == len(TEXTS) + 1
    await service.settle()
    assert house.holding() == []
    decrypt(house.folder)
    await service.store("It snows at the harbour.")
    await service.close()
    assert await house.texts() == {*TEXTS, "It rains at the harbour.", "It snows at the harbour."}


@pytest.mark.parametrize(("key", "code"), [("", "encrypted"), ("ee" * 32, "wrong_key"), (NEW_KEY, "wrong_key")])
async def test_without_the_key_nothing_is_read_or_changed(
    house: House, monkeypatch: pytest.MonkeyPatch, key: str, code: str
) -> None:
    encrypt(house.folder)
    forget_keys()
    monkeypatch.setenv("AGENT_MEMORY_KEY", key)
    before = {path: path.read_bytes() for path in (house.root / "bob").rglob("*") if path.is_file()}
    service = house.service()
    with raises(StorageError, code):
        await service.searcher.list_all()
    with raises(StorageError, code):
        await service.store("This must not be stored.")
    await service.close()
    for act in (encrypt, decrypt):
        with raises(StorageError, code):
            act(house.folder)
    assert {path: path.read_bytes() for path in (house.root / "bob").rglob("*") if path.is_file()} == before


async def test_where_the_file_with_the_key_is_gone_no_other_is_made(house: House) -> None:
    encrypt(house.folder)
    held = (house.root / "bob" / "encryption.json").read_bytes()
    (house.root / "bob" / "encryption.json").unlink()
    forget_keys()
    before = {path: path.read_bytes() for path in (house.root / "bob").rglob("*") if path.is_file()}
    with raises(StorageError, "encrypted") as caught:
        encrypt(house.folder)
    assert "encryption.json" in str(caught.value.recovery)
    with raises(StorageError, "encrypted"):
        await house.texts()
    assert {path: path.read_bytes() for path in (house.root / "bob").rglob("*") if path.is_file()} == before
    (house.root / "bob" / "encryption.json").write_bytes(held)
    assert await house.texts() == set(TEXTS)


async def test_the_doctor_says_once_that_the_key_is_missing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    (house.root / "bob" / "episodes.yaml").write_bytes((house.root / "bob" / "memories.yaml").read_bytes())
    encrypt(house.folder)
    forget_keys()
    monkeypatch.setenv("AGENT_MEMORY_KEY", "")
    report = examine(house.root, now=house.clock(), settings=house.settings).agents[0]
    assert [each.code for each in report.findings if each.severity is Severity.PROBLEM] == ["encryption_key"]


async def test_the_persons_key_is_changed_in_one_file(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    encrypt(house.folder)
    journal = (house.root / "bob" / "memories.yaml").read_bytes()
    monkeypatch.setenv("NEW", NEW_KEY)
    change_key(house.folder, EncryptionSettings(key_variable="NEW"))
    assert (house.root / "bob" / "memories.yaml").read_bytes() == journal
    forget_keys()
    with raises(StorageError, "wrong_key"):
        await house.texts()
    monkeypatch.setenv("AGENT_MEMORY_KEY", NEW_KEY)
    assert await house.texts() == set(TEXTS)


async def test_who_has_not_the_present_key_does_not_change_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    encrypt(house.folder)
    before = (house.root / "bob" / "encryption.json").read_bytes()
    monkeypatch.setenv("AGENT_MEMORY_KEY", "ee" * 32)
    monkeypatch.setenv("NEW", NEW_KEY)
    with raises(StorageError, "wrong_key"):
        change_key(house.folder, EncryptionSettings(key_variable="NEW"))
    assert (house.root / "bob" / "encryption.json").read_bytes() == before


@pytest.mark.parametrize(
    ("key", "kind", "code"), [("", StorageError, "encrypted"), ("short", ConfigurationError, "weak_key")]
)
async def test_nothing_is_encrypted_with_no_key_or_a_weak_one(
    house: House, monkeypatch: pytest.MonkeyPatch, key: str, kind: type[AgentMemoryError], code: str
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_KEY", key)
    with raises(kind, code):
        encrypt(house.folder)
    assert await house.texts() == set(TEXTS)
    assert get_encryption_state(house.folder.path) is None


async def test_what_was_set_aside_is_packed_and_comes_back(house: House) -> None:
    folder = house.root / "bob"
    copies = {
        "memories.rewritten-0123abcd.yaml": (folder / "memories.yaml").read_bytes(),
        "memories (conflicted copy).yaml": b"The harbour in another copy",
        "topics/harbour.md": b"---\n---\n# Harbour\n\nEdited by a person.\n",
    }
    (folder / "topics").mkdir()
    for name, content in copies.items():
        (folder / name).write_bytes(content)
    done = encrypt(house.folder)
    assert set(done.packed) == set(copies)
    assert house.holding() == []
    assert house.holding(b"Edited by") == []
    assert kept_in(folder, data_key(folder)) == copies
    decrypt(house.folder)
    assert {name: (folder / name).read_bytes() for name in copies} == copies


async def test_a_backup_is_made_anew_and_can_be_brought_back(house: House) -> None:
    before = create_backup(house.folder, clock=house.clock).path
    done = encrypt(house.folder)
    assert done.backups == (before.name,)
    assert verify_backup(before).problems == ()
    await house.store("Anna waits at the harbour.")
    restore_backup(before, house.root, clock=house.clock)
    assert await house.texts() == set(TEXTS)
    restore_backup(before, house.root, new="ann", clock=house.clock)
    ann = FileStorage("ann", settings=house.settings)
    assert {each.content async for each in ann.iter_all()} == set(TEXTS)
    await ann.close()
    assert house.holding() == []
    assert all(b"Kiel" not in each.path.read_bytes() for each in list_backups(house.root))


async def test_a_plain_backup_comes_back_encrypted(house: House) -> None:
    plain = create_backup(house.folder, clock=house.clock).path
    away = house.root.parent / plain.name
    shutil.copy(plain, away)
    encrypt(house.folder)
    restore_backup(away, house.root, clock=house.clock)
    assert await house.texts() == set(TEXTS)
    assert house.holding() == []


async def test_an_encrypted_backup_makes_a_plain_memory_encrypted(house: House) -> None:
    encrypt(house.folder)
    backup = create_backup(house.folder, clock=house.clock).path
    decrypt(house.folder)
    restore_backup(backup, house.root, clock=house.clock)
    assert get_encryption_state(house.folder.path) == "encrypted"
    assert await house.texts() == set(TEXTS)


async def test_a_plain_journal_in_the_place_of_an_encrypted_one_is_refused(house: House) -> None:
    plain = (house.root / "bob" / "memories.yaml").read_bytes()
    encrypt(house.folder)
    (house.root / "bob" / "memories.yaml").write_bytes(plain)
    with raises(StorageError, "not_encrypted"):
        await house.texts()


async def test_lines_that_changed_places_are_told_from_others(house: House) -> None:
    encrypt(house.folder)
    path = house.root / "bob" / "memories.yaml"
    lines = path.read_bytes().splitlines(keepends=True)
    first, second = lines[1], lines[2]
    data = [line.split(b'"encrypted": "')[1].split(b'"')[0] for line in (first, second)]
    lines[1], lines[2] = resealed(first.replace(data[0], data[1])), resealed(second.replace(data[1], data[0]))
    path.write_bytes(b"".join(lines))
    assert len(await house.texts()) == len(TEXTS) - 2


async def test_what_another_program_removed_is_kept_encrypted(house: House) -> None:
    encrypt(house.folder)
    path = keep_lost(house.root / "bob" / "memories.yaml", {"mem-0123456789ab": {"content": TEXTS[0]}})
    assert path is not None
    assert b"mem-0123456789ab" in path.read_bytes()
    assert house.holding() == []
    decrypt(house.folder)
    assert NEEDLE in path.read_bytes()


async def test_archive_and_other_journals_are_encrypted(house: House) -> None:
    service = house.service()
    archive = Archive(service)
    first = (await service.searcher.list_all())[0].id
    await archive.add([first])
    await archive.close()
    await service.close()
    encrypt(house.folder)
    assert house.holding() == []
    service = house.service()
    archive = Archive(service)
    assert [each.id for each in await archive.everything()] == [first]
    await archive.close()
    await service.close()


async def test_a_purge_works_on_encrypted_files(house: House) -> None:
    create_backup(house.folder, clock=house.clock)
    encrypt(house.folder)
    service = house.service()
    purging = Purging(service, clock=house.clock)
    one = (await service.searcher.list_all())[0]
    receipt = await purging.run(await purging.plan([one.id]))
    assert receipt.is_clean
    await service.close()
    assert await house.texts() == set(TEXTS) - {one.content}
    for each in list_backups(house.root):
        assert verify_backup(each.path).problems == ()
        restore_backup(each.path, house.root, clock=house.clock)
    assert await house.texts() == set(TEXTS) - {one.content}


async def test_a_purge_reaches_what_is_packed_and_what_was_kept_encrypted(house: House) -> None:
    folder = house.root / "bob"
    (folder / "memories.rewritten-0123abcd.yaml").write_bytes((folder / "memories.yaml").read_bytes())
    (folder / "memories (conflicted copy).yaml").write_text(f"- {TEXTS[0]}\n- {TEXTS[1]}\n")
    encrypt(house.folder)
    PadFile(house.folder.scratchpad, house.clock).keep_aside(f"- content: {TEXTS[0]}\n".encode())
    service = house.service()
    purging = Purging(service, clock=house.clock)
    one = next(each for each in await service.searcher.list_all() if each.content == TEXTS[0])
    assert {each.path.name for each in await purging.verify([TEXTS[0]])} >= {"kept.encrypted"}
    receipt = await purging.run(await purging.plan([one.id]))
    assert receipt.is_clean
    assert await purging.verify([TEXTS[0]]) == []
    await service.close()
    decrypt(house.folder)
    assert house.holding(TEXTS[0].encode()) == []
    assert TEXTS[1] in (folder / "memories (conflicted copy).yaml").read_text()


async def test_an_agent_without_memories_is_not_encrypted(house: House) -> None:
    with raises(ValidationError, "nothing_to_encrypt"):
        encrypt(FileStorage("nobody", settings=house.settings).folder)


async def test_done_twice_it_changes_nothing(house: House) -> None:
    encrypt(house.folder)
    before = (house.root / "bob" / "memories.yaml").read_bytes()
    assert encrypt(house.folder).is_clean
    assert (house.root / "bob" / "memories.yaml").read_bytes() == before


async def test_a_decryption_under_way_is_finished_first(house: House) -> None:
    encrypt(house.folder)
    folder = house.folder.path
    file = KeyFile.read(folder)
    assert file is not None
    file.wrapping(data_key(folder), PersonKey(KEY, "a test"), "decrypting").write(folder)
    with raises(ValidationError, "decrypting"):
        encrypt(house.folder)
    decrypt(house.folder)
    assert await house.texts() == set(TEXTS)


async def test_earlier_encrypted_journal_put_back_shows_nothing_purged(house: House) -> None:
    (secret,) = await house.store("Ann earns seventy-two thousand crowns a year.")
    await house.store("Minutes. Ann earns seventy-two thousand crowns a year. The crane is repaired.")
    encrypt(house.folder)
    earlier = house.folder.journal.read_bytes()
    service = house.service()
    purging = Purging(service, clock=house.clock)
    assert (await purging.run(await purging.plan([secret]))).is_clean
    await service.close()
    house.folder.journal.write_bytes(earlier)
    forget_keys()
    assert not [text for text in await house.texts() if "seventy-two" in text]
    service = house.service()
    await service.writer.compact()
    await service.close()
    decrypt(house.folder)
    assert house.holding(b"seventy-two") == []
    assert secret not in {memory.id for memory in await house.service().searcher.list_all()}
