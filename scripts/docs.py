"""Write the pages that are made from code: `make docs`."""

from __future__ import annotations

from pathlib import Path

from scripts import configuration_page, events_page

FOLDER = Path(__file__).resolve().parents[1] / "docs"
PAGES = {"events.md": events_page.document, "configuration.md": configuration_page.document}

if __name__ == "__main__":
    for name, document in PAGES.items():
        (FOLDER / name).write_text(document(), encoding="utf-8")
        print(f"wrote docs/{name}")
