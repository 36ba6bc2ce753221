"""Where a person's key comes from, what it wraps, and which errors there are."""

from __future__ import annotations

import base64
import json
import os
import unicodedata
from typing import TYPE_CHECKING, Final

import pytest

from agent_memory.encryption import (
    KeyFile,
    PersonKey,
    data_key,
    get_encryption_state,
    is_encrypted,
    key_for,
    keys,
    person_key,
    take_keys_from,
    unlock,
)
from agent_memory.encryption import person as source
from agent_memory.encryption.keys import forget_keys
from agent_memory.errors import AgentMemoryError, ConfigurationError, StorageError
from agent_memory.settings import EncryptionSettings
from tests.support import raises

if TYPE_CHECKING:
    from pathlib import Path

RAW: Final = "00112233445566778899aabbccddeeff" * 2
PASSPHRASE: Final = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in ("", "_FILE", "_COMMAND", "_KEYRING"):
        monkeypatch.delenv(f"AGENT_MEMORY_KEY{end}", raising=False)
    forget_keys()


def person(text: str = RAW) -> PersonKey:
    return PersonKey(text, "a test")


@pytest.fixture
def bob(root: Path) -> Path:
    folder = root / "bob"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "text", [RAW, RAW.upper(), base64.b64encode(bytes.fromhex(RAW)).decode(),
             base64.urlsafe_b64encode(bytes.fromhex(RAW)).decode().rstrip("=")],
)  # fmt: skip
def test_32_bytes_are_taken_as_they_are(text: str) -> None:
    assert person(text).raw == bytes.fromhex(RAW)


@pytest.mark.parametrize("text", ["", PASSPHRASE, RAW[:-1], RAW + "0", "A" * 42, "A" * 45])
def test_anything_else_is_a_passphrase(text: str) -> None:
    assert person(text).raw is None


def test_a_short_passphrase_is_refused() -> None:
    with raises(ConfigurationError, "weak_key"):
        person("eleven char").check_strength()
    person(PASSPHRASE).check_strength()
    person(RAW).check_strength()


def test_a_key_is_never_shown() -> None:
    assert PASSPHRASE not in repr(person(PASSPHRASE))


def test_it_comes_from_where_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(f"{PASSPHRASE}\n")
    monkeypatch.setenv("MINE", RAW)
    assert person_key(EncryptionSettings(key_variable="MINE")).text == RAW
    assert person_key(EncryptionSettings(key_file=str(tmp_path / "key"))).text == PASSPHRASE
    assert person_key(EncryptionSettings(key_command=f"cat {tmp_path / 'key'}")).text == PASSPHRASE


def test_without_settings_it_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(PASSPHRASE)
    monkeypatch.setenv("AGENT_MEMORY_KEY_FILE", str(tmp_path / "key"))
    assert person_key(EncryptionSettings()).text == PASSPHRASE
    monkeypatch.setenv("AGENT_MEMORY_KEY", RAW)
    assert person_key(EncryptionSettings()).text == RAW


@pytest.mark.parametrize(
    "settings",
    [
        EncryptionSettings(),
        EncryptionSettings(key_file="/nowhere/key"),
        EncryptionSettings(key_command="false"),
        EncryptionSettings(key_command="no-such-program-here"),
        EncryptionSettings(key_command="true"),
    ],
)
def test_where_there_is_none_an_error_says_so(settings: EncryptionSettings) -> None:
    with raises(StorageError, "encrypted"):
        person_key(settings)


@pytest.mark.parametrize("text", [RAW, PASSPHRASE])
def test_a_key_file_gives_the_data_key_to_its_person_alone(bob: Path, text: str) -> None:
    file, data = KeyFile.fresh("bob", person(text))
    file.write(bob)
    found = KeyFile.read(bob)
    assert found == file
    assert found is not None
    assert found.unwrap(person(text)).key == data.key
    assert (bob / "encryption.json").stat().st_mode & 0o777 == 0o600
    assert data.secret.hex() not in (bob / "encryption.json").read_text()
    for other in ("another passphrase", "ff" * 32):
        with raises(StorageError, "wrong_key"):
            found.unwrap(person(other))


@pytest.mark.parametrize("field", ["state", "agent", "key", "stretched"])
def test_a_key_file_that_was_changed_gives_none(bob: Path, field: str) -> None:
    file, _ = KeyFile.fresh("bob", person(PASSPHRASE))
    value = json.loads(file.encode())
    changed = {"state": "encrypted", "agent": "ann", "key": "0" * 16, "stretched": {**value["stretched"], "n": 1024}}
    (bob / "encryption.json").write_text(json.dumps({**value, field: changed[field]}))
    found = KeyFile.read(bob)
    assert found is not None
    with raises(StorageError, "wrong_key"):
        found.unwrap(person(PASSPHRASE))


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 2}', '{"version": 1, "state": "open"}'])
def test_a_damaged_key_file_is_an_error(bob: Path, content: str) -> None:
    (bob / "encryption.json").write_text(content)
    with raises(StorageError, "key_file"):
        KeyFile.read(bob)


def test_passphrase_costs_what_owasp_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COST", source.COST)  # elsewhere in the tests it costs nothing
    file, data = KeyFile.fresh("bob", person(PASSPHRASE))
    assert file.stretched is not None
    assert (file.stretched["n"], file.stretched["r"], file.stretched["p"]) == (2**15, 8, 3)
    assert file.unwrap(person(PASSPHRASE)).secret == data.secret


def test_costs_without_bounds_are_refused(bob: Path) -> None:
    file, _ = KeyFile.fresh("bob", person(PASSPHRASE))
    value = json.loads(file.encode())
    value["stretched"]["n"] = 2**40
    (bob / "encryption.json").write_text(json.dumps(value))
    found = KeyFile.read(bob)
    assert found is not None
    with raises(StorageError, "wrong_key"):
        found.unwrap(person(PASSPHRASE))


def test_a_change_of_the_persons_key_keeps_the_data_key(bob: Path) -> None:
    file, data = KeyFile.fresh("bob", person(PASSPHRASE))
    new = file.wrapping(data, person(RAW))
    assert new.unwrap(person(RAW)).secret == data.secret
    with raises(StorageError, "wrong_key"):
        new.unwrap(person(PASSPHRASE))


def test_a_process_finds_the_key_of_a_folder(bob: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (is_encrypted(bob), key_for(bob)) == (False, None)
    file, data = KeyFile.fresh("bob", person())
    file.write(bob)
    assert is_encrypted(bob)
    with raises(StorageError, "encrypted"):
        data_key(bob)
    monkeypatch.setenv("AGENT_MEMORY_KEY", RAW)
    assert data_key(bob).key == data_key(bob, data.key).key == data.key
    with raises(StorageError, "wrong_key"):
        data_key(bob, "of another file")
    file.wrapping(data, person(), "decrypting").write(bob)
    assert key_for(bob) is None


class TestNewAgents:
    """Agents that are encrypted from their first line on."""

    @pytest.fixture(autouse=True)
    def _settings(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AGENT_MEMORY_KEY", RAW)
        take_keys_from(root, EncryptionSettings(new_agents=True))

    def test_the_first_writing_makes_the_key_and_looking_does_not(self, root: Path) -> None:
        assert is_encrypted(root / "eve")
        assert not (root / "eve").exists()
        key = key_for(root / "eve")
        forget_keys()
        assert key is not None
        assert data_key(root / "eve").secret == key.secret
        assert get_encryption_state(root / "eve") == "encrypted"

    def test_one_that_has_stored_something_stays_as_it_is(self, bob: Path) -> None:
        (bob / "episodes.yaml").write_text("--- {}\n")
        assert not is_encrypted(bob)
        assert key_for(bob) is None
        assert not (bob / "encryption.json").exists()

    @pytest.mark.parametrize("name", ["_copy-0123", "_copy-0123/eve"])
    def test_folders_of_no_agent_are_left_alone(self, root: Path, name: str) -> None:
        assert key_for(root / name) is None

    def test_of_two_who_begin_the_first_makes_the_key(self, bob: Path) -> None:
        (one, _), (other, _) = KeyFile.fresh("bob", person(), "encrypted"), KeyFile.fresh("bob", person(), "encrypted")
        one.begin(bob)
        other.begin(bob)
        assert KeyFile.read(bob) == one
        assert [path.name for path in bob.iterdir()] == ["encryption.json"]

    @pytest.mark.parametrize(
        ("key", "kind", "code"), [("", StorageError, "encrypted"), ("short", ConfigurationError, "weak_key")]
    )
    def test_without_a_good_key_nothing_is_begun(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, key: str, kind: type[AgentMemoryError], code: str
    ) -> None:
        monkeypatch.setenv("AGENT_MEMORY_KEY", key)
        for act in (unlock, key_for):
            with raises(kind, code):
                act(root / "eve")
        assert not (root / "eve").exists()


def test_settings_of_nobody_do_not_replace_those_of_somebody(bob: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(RAW)
    file, data = KeyFile.fresh("bob", person())
    file.write(bob)
    take_keys_from(bob.parent, EncryptionSettings(key_file=str(tmp_path / "key")))
    take_keys_from(bob.parent, EncryptionSettings())
    assert data_key(bob).key == data.key


def test_what_an_editor_puts_around_a_key_is_not_of_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xef\xbb\xbf" + RAW.encode() + b"\r\n")
    assert person_key(EncryptionSettings(key_file=str(tmp_path / "key"))).raw == bytes.fromhex(RAW)


def test_a_passphrase_is_the_same_however_its_letters_are_composed() -> None:
    cost = {"n": 2, "r": 1, "p": 1}
    composed, decomposed = (person(unicodedata.normalize(form, "Zw\u00f6lf Gl\u00e4ser")) for form in ("NFC", "NFD"))
    assert composed.text != decomposed.text
    assert composed.stretch(b"salt", **cost) == decomposed.stretch(b"salt", **cost)


def test_bytes_of_the_environment_that_are_no_text_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_KEY", os.fsdecode(b"twelve letters \xff"))
    with raises(StorageError, "encrypted"):
        person_key(EncryptionSettings())


def test_of_a_command_no_more_is_read_than_may_be_a_key() -> None:
    with raises(StorageError, "encrypted") as caught:
        person_key(EncryptionSettings(key_command="yes"))
    assert "more than 4096 bytes" in caught.value.message


def test_a_command_that_does_not_end_is_killed_and_not_asked_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_COMMAND_SECONDS", 0.3)
    monkeypatch.setattr(source, "_HUNG", {})
    script, runs = tmp_path / "hang", tmp_path / "runs"
    script.write_text(f"#!/bin/sh\necho again >> {runs}\nexec sleep 600\n")
    script.chmod(0o700)
    with raises(StorageError, "encrypted") as caught:
        person_key(EncryptionSettings(key_command=str(script)))
    assert "did not end" in caught.value.message
    runs.unlink(missing_ok=True)
    monkeypatch.setattr(source, "_COMMAND_SECONDS", 600)
    with raises(StorageError, "encrypted"):
        person_key(EncryptionSettings(key_command=str(script)))
    assert not runs.exists()


@pytest.mark.parametrize("command", ["   ", "'no end"])
def test_what_is_no_command_is_an_error(command: str) -> None:
    with raises(StorageError, "encrypted"):
        person_key(EncryptionSettings(key_command=command))


def test_two_places_for_the_key_are_an_error() -> None:
    with pytest.raises(ValueError, match="both set the place of the key"):
        EncryptionSettings(key_file="a", key_command="b")
