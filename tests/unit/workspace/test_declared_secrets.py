"""Secrets in declarations and in number columns are refused: a declaration is copied, stored and shown as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import DeclarationError, ValidationError
from agent_memory.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"
CARD = 4929420573595709
PLAIN = """\
workspace: book
tables:
  cards:
    key: name
    columns: {name: {type: text, required: true}, number: {type: integer}, price: {type: real}, more: {type: json}}
"""
SECRETS = {
    "default": "workspace: b\ntables:\n  a: {key: n, columns: {n: {type: text}, t: {type: text, default: TOKEN}}}\n",
    "name": "workspace: b\ntables:\n  a: {key: n, columns: {n: {type: text}, password: {type: text, default: plum}}}\n",
    "description": "workspace: b\ndescription: use TOKEN\ntables:\n  a: {key: n, columns: {n: {type: text}}}\n",
    "card": "workspace: b\ntables:\n  a: {key: n, columns: {n: {type: text}, c: {type: integer, default: CARD}}}\n",
    "comment": "# token TOKEN\nworkspace: b\ntables:\n  a: {key: n, columns: {n: {type: text}}}\n",
}


def declare(folder: Path, text: str) -> Path:
    path = folder / "declared.yaml"
    path.write_text(text.replace("TOKEN", TOKEN).replace("CARD", str(CARD)), "utf-8")
    return path


@pytest.mark.parametrize("where", SECRETS)
def test_declaration_with_a_secret_is_refused_unwritten(tmp_path: Path, where: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        Workspace.create(tmp_path / "book", declare(tmp_path, SECRETS[where]))
    assert refused.value.code == "secret_in_declaration"
    assert TOKEN not in str(refused.value)
    assert not (tmp_path / "book").exists()


def test_changed_declaration_with_a_new_secret_is_refused(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "book", declare(tmp_path, PLAIN)).close()
    path = tmp_path / "book" / "workspace.yaml"
    path.write_text(
        PLAIN.replace("price: {type: real}", f"price: {{type: real}}, key2: {{type: text, default: {TOKEN}}}")
    )
    with pytest.raises(DeclarationError, match="github-token"):
        Workspace.open(tmp_path / "book")


@pytest.mark.parametrize("values", [{"number": CARD}, {"price": float(CARD)}])
def test_number_column_with_a_card_is_refused(tmp_path: Path, values: dict[str, float]) -> None:
    book = Workspace.create(tmp_path / "book", declare(tmp_path, PLAIN))
    with pytest.raises(ValidationError, match="looks like a secret"):
        book.tables.save("cards", {"name": "a", **values})
    assert book.tables.save("cards", {"name": "b", "number": 4711, "price": 12.5})
    book.close()


def test_json_column_with_a_card_as_number_is_redacted(tmp_path: Path) -> None:
    book = Workspace.create(tmp_path / "book", declare(tmp_path, PLAIN))
    book.tables.save("cards", {"name": "a", "more": {"card": CARD, "pin_code": 4711, "pages": 312}})
    assert book.tables.get("cards", "a")["more"] == {
        "card": "[redacted:credit-card]", "pin_code": "[redacted:named-secret]", "pages": 312,
    }  # fmt: skip
    book.close()
