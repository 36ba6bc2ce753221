"""Write the pages that are made from code: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts import cli_page, configuration_page, errors_page, events_page, prices

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference"
CHANGELOG: Final = FOLDER.parents[1] / "CHANGELOG.md"
PAGES: Final[dict[str, Callable[[], str]]] = {
    "cli.md": cli_page.document,
    "configuration.md": configuration_page.document,
    "errors.md": errors_page.document,
    "events.md": events_page.document,
    "tools.md": lambda: prices.insert_prices((FOLDER / "tools.md").read_text(encoding="utf-8")),
}

if __name__ == "__main__":
    errors_page.write_tree()
    for name, document in PAGES.items():
        (FOLDER / name).write_text(document(), encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    CHANGELOG.write_text(cli_page.update_changelog(CHANGELOG.read_text(encoding="utf-8")), encoding="utf-8")
