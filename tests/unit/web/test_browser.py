"""The page in Chromium: keys, hostile texts, several tabs, looks. No message, no request to elsewhere."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from agent_memory.memory.client import MemorySync
from agent_memory.memory.service import open_service
from agent_memory.settings import ServiceSettings
from agent_memory.web.temporary_files import write_opening
from tests.concurrency.processes import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-headless-shell")
AXE: Final = Path(sys.prefix) / "package" / "axe.min.js"
"""Rules of accessibility, installed by `make browser`; not checked without it."""
SHOTS: Final = os.environ.get("PAGE_SHOTS", "")
"""Folder that receives a picture of each screen."""
pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, as `apt-get install chromium` installs it"),
    pytest.mark.enable_socket,
]
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SCREENS: Final = (
    "/",
    "/memories",
    "/decisions",
    "/forget",
    "/import",
    "/time",
    "/health?check=on",
    "/why?q=harbour+API",
)
ROOT: Final = Path(__file__).resolve().parents[3]
LOOKS: Final = Path(__file__).parent / "looks"
"""Pictures of screens, 300 pixels wide."""
SHRINK: Final = """async ([data, width, height]) => {
  const picture = new Image();
  picture.src = `data:image/png;base64,${data}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  const { data: pixels } = context.getImageData(0, 0, width, height);
  const greys = [];
  for (let at = 0; at < pixels.length; at += 4) {
    greys.push(Math.round((pixels[at] + pixels[at + 1] + pixels[at + 2]) / 3));
  }
  return [canvas.toDataURL("image/png"), greys];
}"""
HOSTILE: Final = (
    "<script>hit()</script>",
    "<img src=x onerror=hit()>",
    "<svg onload=hit()>",
    "<svg><script>hit()</script></svg>",
    "<iframe src=javascript:hit()></iframe>",
    "<body onload=hit()>",
    "<details open ontoggle=hit()>",
    "<input autofocus onfocus=hit()>",
    "<a href=javascript:hit()>click</a>",
    "javascript:hit()",
    "</textarea><script>hit()</script>",
    "</title><script>hit()</script>",
    "</style><script>hit()</script>",
    "--><script>hit()</script>",
    "]]><script>hit()</script>",
    '" onmouseover=hit() x="',
    "' onfocus=hit() autofocus='",
    '"><img src=x onerror=hit()>',
    "<math><mtext></mtext><mglyph><style><img src=x onerror=hit()>",
    '<noscript><p title="</noscript><img src=x onerror=hit()>">',
    "<template><script>hit()</script></template>",
    "<object data=javascript:hit()>",
    "<embed src=javascript:hit()>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<style>@import 'http://evil.example/x.css';</style>",
    '<meta http-equiv=refresh content="0;url=http://evil.example">',
    "<base href=http://evil.example/>",
    "<form action=http://evil.example><button>Undo</button></form>",
    "<img src=http://evil.example/beacon.png>",
    "![x](http://evil.example/beacon.png)",
    "[click](javascript:hit())",
    "{{ 7 * 191 }}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "${hit()}",
    "<%= hit() %>",
    "&lt;script&gt;hit()&lt;/script&gt;",
    "&#60;script&#62;hit()&#60;/script&#62;",
    "\u202e)(tih>tpircs<\u202c reversed",
    "invisible\u200b\u2060\ufeff\u00ad text",
    "tags \U000e0068\U000e0069 hidden",
    "\u2028<script>hit()</script>\u2029",
    "<scr\u0131pt>hit()</scr\u0131pt>",
    '<x style="position:fixed;inset:0;background:red">cover</x>',
    "<video><source onerror=hit()></video>",
    "<marquee onstart=hit()>x</marquee>",
)


class ServedPage:
    """Page of a process, and a browser that notes messages and requests."""

    def __init__(self, root: Path, *options: str) -> None:
        from playwright.sync_api import sync_playwright

        command = [sys.executable, "-u", "-m", "agent_memory.cli", "page", "--no-browser", "--embedder", "none"]
        variables = {**environment(), "HOME": str(root.parent), "AGENT_MEMORY_ROOT": str(root)}
        self.process = subprocess.Popen(
            [*command, *options], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        self.base = address.partition("/enter")[0]
        self.problems: list[str] = []
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        self.context = self._browser.new_context(viewport={"width": 1200, "height": 900})
        self.tab = self.open_tab()
        opening = write_opening(root.parent, address)
        self.tab.goto(opening.as_uri())
        self.tab.wait_for_url(f"{self.base}/")
        opening.unlink()
        self.problems.clear()  # the file is not of the page

    def open_tab(self) -> Any:
        """Open a tab whose messages, dialogs and requests are noted."""
        tab = self.context.new_page()
        tab.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        tab.on("request", self._note_request)
        tab.on("dialog", lambda dialog: (self.problems.append("dialog"), dialog.dismiss()))
        tab.expose_function("hit", lambda: self.problems.append("executed"))
        return tab

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(f"{self.base}/"):
            self.problems.append(f"request: {request.url}")

    def goto(self, path: str) -> Any:
        """Open a view in the first tab; return the tab."""
        self.tab.goto(f"{self.base}{path}")
        return self.tab

    def close(self) -> str:
        """End browser and process; return what the process wrote."""
        self._browser.close()
        self._playwright.stop()
        self.process.send_signal(signal.SIGINT)
        _, text = self.process.communicate(timeout=60)
        return text


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ServedPage]]:
    """Return a function that serves a page of the test's memories; no page may have had a problem."""
    pages: list[ServedPage] = []

    def start(*options: str) -> ServedPage:
        pages.append(ServedPage(tmp_path / "memory", *options))
        return pages[-1]

    yield start
    messages = [page.close() for page in pages]
    assert [problem for page in pages for problem in page.problems] == []
    assert not any(text in message for message in messages for text in HOSTILE)


@pytest.fixture
def demo(serve: Callable[..., ServedPage], tmp_path: Path) -> ServedPage:
    """Return the page of the invented year, which touches no memory."""
    page = serve("--demo")
    assert not (tmp_path / "memory").exists()
    return page


def press(tab: Any, key: str) -> None:
    """Press a key that submits a form, and wait for the view after it."""
    with tab.expect_navigation():
        tab.keyboard.press(key)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens_fit_320_pixels_and_break_no_rule_of_axe(demo: ServedPage, scheme: Any) -> None:
    tab = demo.tab
    for width in (1200, 320):
        tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        tab.set_viewport_size({"width": width, "height": 900})
        for path in (*SCREENS, "/memories/mem-de0000000003", "/purge?id=mem-de0000000003", "/memories?q=zzzz", "/x"):
            demo.goto(path)
            demo.problems[:] = [text for text in demo.problems if "404" not in text or path != "/x"]
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
            if AXE.exists():
                tab.evaluate(AXE.read_text("utf-8"))
                found = tab.evaluate("axe.run()")["violations"]
                assert [v["id"] for v in found if v["impact"] in {"serious", "critical"}] == [], path
            if SHOTS:
                name = path.strip("/").partition("?")[0].replace("/", "-") or "today"
                tab.screenshot(path=f"{SHOTS}/{name}-{scheme}-{width}.png")


def shrink(page: ServedPage, png: bytes, width: int, height: int) -> tuple[str, list[int]]:
    """Return a picture made small, as base64 and as its grey values."""
    tab = page.context.new_page()
    small, greys = tab.evaluate(SHRINK, [base64.b64encode(png).decode(), width, height])
    tab.close()
    return str(small).partition(",")[2], greys


def test_screens_look_as_they_did(demo: ServedPage) -> None:
    """Compares small pictures, since letters differ between machines. PAGE_LOOKS=write makes all again."""
    changed = {}
    for name, path, scheme in (
        ("today", "/", "light"),
        ("decisions", "/decisions", "light"),
        ("memories", "/memories", "dark"),
        ("time", "/time", "light"),
    ):
        demo.tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        shot = demo.goto(path).screenshot()
        expected = LOOKS / f"{name}-{scheme}.png"
        if os.environ.get("PAGE_LOOKS") == "write":
            expected.write_bytes(base64.b64decode(shrink(demo, shot, 300, 225)[0]))
            if name in {"today", "decisions"}:
                (ROOT / "docs" / f"page-{name}.png").write_bytes(shot)
        pairs = zip(shrink(demo, shot, 48, 36)[1], shrink(demo, expected.read_bytes(), 48, 36)[1], strict=True)
        changed[name] = sum(abs(new - old) > 24 for new, old in pairs)
    assert {name: count for name, count in changed.items() if count > 48 * 36 // 50} == {}


def test_conflicts_are_decided_and_undone_by_keys(demo: ServedPage) -> None:
    tab = demo.goto("/decisions")
    before = tab.locator('[data-key="1"]').count()
    assert before == 2
    press(tab, "1")
    assert tab.locator('[data-key="1"]').count() == 1
    press(tab, "u")
    assert tab.locator('[data-key="1"]').count() == 2
    press(tab, "4")
    press(tab, "3")
    assert tab.locator('[data-key="1"]').count() == 0
    press(tab, "a")
    assert "Undo" in tab.locator(".notice").inner_text()


def test_thirty_conflicts_are_decided_by_keys_and_each_can_be_undone(
    serve: Callable[..., ServedPage], tmp_path: Path
) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "memory"), embedder="none")

    async def store() -> None:
        service = open_service("ada", settings)
        for number in range(30):
            for requests in (60, 90):
                await service.store(f"The gateway g{number} allows {requests} requests a minute.")
        await service.writer.finder.compare_all()
        await service.close()

    asyncio.run(store())
    page = serve()
    tab = page.goto("/decisions")
    for place in range(30):
        press(tab, "1234"[place % 4])
    assert tab.locator('[data-key="1"]').count() == 0
    page.goto("/")  # the changes of all decisions, and the last act
    assert tab.locator("#changed ~ * [data-row] [data-key=u]").count() >= 30
    press(tab, "u")
    page.goto("/decisions")
    assert tab.locator('[data-key="1"]').count() == 1


def test_act_is_taken_back_by_a_key_on_another_screen(demo: ServedPage) -> None:
    tab = demo.goto("/decisions")
    for _ in range(2):
        press(tab, "4")
    press(tab, "r")
    page_texts = tab.locator("textarea").count()
    demo.goto("/health")
    press(tab, "u")
    assert "It waits again." in tab.locator(".notice").inner_text()
    demo.goto("/decisions")
    assert tab.locator('[data-key="r"]').count() == 3
    assert page_texts == 2
    demo.goto("/")
    tab.keyboard.press("j")
    press(tab, "f")
    assert "Forget this memory?" in tab.locator("h1").inner_text()


def test_memory_is_searched_edited_forgotten_and_restored_by_keys(demo: ServedPage) -> None:
    tab = demo.goto("/memories")
    tab.keyboard.press("/")
    tab.keyboard.type("planking nails")
    press(tab, "Enter")
    press(tab, "e")
    tab.keyboard.press("e")
    tab.keyboard.type("Order copper nails.")
    tab.keyboard.press("Tab")
    with tab.expect_navigation():
        tab.get_by_role("button", name="Save").press("Enter")
    assert tab.locator("h1").inner_text() == "Order copper nails."
    press(tab, "f")
    with tab.expect_navigation():
        tab.get_by_role("button", name="Forget").press("Enter")
    assert "Forgot" in tab.locator(".notice").inner_text()
    press(tab, "u")
    assert "Took back" in tab.locator(".notice").inner_text()


def test_chosen_file_becomes_a_table_and_an_import(demo: ServedPage, tmp_path: Path) -> None:
    day = "2026-01-02T03:04:05Z"
    texts = [{"id": str(place), "memory": text, "created_at": day} for place, text in enumerate(HOSTILE[:10])]
    file = tmp_path / "<img src=x onerror=hit()>.json"
    file.write_text(json.dumps({"results": texts}), "utf-8")
    tab = demo.goto("/import")
    with tab.expect_navigation():
        tab.locator("input[type=file]").set_input_files(file)
    assert "10 new records" in tab.locator("h1").inner_text()
    with tab.expect_navigation():
        tab.get_by_role("button", name="Store").click()
    assert "Stored 10 memories." in tab.locator(".notice").inner_text()
    press(tab, "u")
    assert "Took back 10 memories." in tab.locator(".notice").inner_text()


def test_import_table_at_320_pixels_keeps_words_whole(demo: ServedPage, tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_text("13/03/26, 09:15 - Ines: On Tuesday.\n14/03/26, 09:16 - Tom: Yes, on Tuesday.\n", "utf-8")
    tab = demo.goto("/import")
    tab.set_viewport_size({"width": 320, "height": 700})
    with tab.expect_navigation():
        tab.locator("input[type=file]").set_input_files(file)
    rows = [cell.inner_text() for cell in tab.locator("td:visible").all()]
    assert rows == ["whatsapp", "turns", "2", "2", "2026-03-13", "2026-03-14"]
    assert max(cell.bounding_box()["height"] for cell in tab.locator("td:visible").all()) < 40


def test_chosen_memories_show_their_count_and_acts(demo: ServedPage) -> None:
    tab = demo.goto("/memories")
    tab.set_viewport_size({"width": 320, "height": 700})
    bottom = 700
    assert tab.get_by_role("button", name="Forget chosen").bounding_box()["y"] > bottom
    tab.locator("[data-row] input").first.check()
    assert tab.locator("[data-count]").inner_text() == "1 chosen"
    assert tab.get_by_role("button", name="Forget chosen").bounding_box()["y"] < bottom
    tab.locator("[data-row] input").first.uncheck()
    assert tab.locator("[data-count]").inner_text() == ""


def test_demo_has_topics_and_people(demo: ServedPage) -> None:
    text = demo.goto("/topics").locator("main").inner_text()
    for name in ("Launch of the Merganser", "Move of the ledger", "Ines"):
        assert name in text


def test_purge_has_a_receipt(demo: ServedPage) -> None:
    tab = demo.goto("/purge?id=mem-de0000000003")
    tab.get_by_role("checkbox").check()
    with tab.expect_navigation():
        tab.get_by_role("button", name="Purge").click()
    assert "Every byte of every file was searched." in tab.locator(".notice").inner_text()
    assert "Gone" in tab.locator("dl").inner_text()
    tab.emulate_media(media="print", color_scheme="dark")
    ground = tab.locator(".notice").evaluate("element => getComputedStyle(element).backgroundColor")
    assert min(int(level) for level in re.findall(r"\d+", ground)) > 200, "black on dark paper"


def test_forgotten_row_at_320_pixels_keeps_its_text_wide(demo: ServedPage) -> None:
    demo.tab.set_viewport_size({"width": 320, "height": 900})
    rows = demo.goto("/forget").locator("[data-row] > .grow")
    assert rows.first.bounding_box()["width"] >= 140


def store_texts(root: Path, texts: tuple[str, ...]) -> None:
    """Store texts of an agent ada, with hostile tags and projects."""
    settings = ServiceSettings(storage_root=str(root), embedder="none")

    async def store() -> None:
        service = open_service("ada", settings)
        for text in texts:
            await service.store({"content": text, "project": text[:60], "tags": [text[:40]], "trust": "low"})
        await service.close()

    asyncio.run(store())


def test_hostile_texts_stay_text_on_every_screen(serve: Callable[..., ServedPage], tmp_path: Path) -> None:
    assert len(HOSTILE) >= 40
    store_texts(tmp_path / "memory", HOSTILE)
    page = serve()
    tab = page.goto("/memories")
    links = tab.locator("[data-row] a[data-key=e]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    tab.goto(f"{page.base}/memories?offset=25")
    links += tab.locator("[data-row] a[data-key=e]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert len(links) >= 40
    talk = tmp_path / "chat.jsonl"
    talk.write_text("\n".join(json.dumps({"role": "user", "content": f"Tobias Reuter: {text}"}) for text in HOSTILE))
    command = [sys.executable, "-m", "agent_memory.cli", "import", str(talk), "-a", "ada", "--yes"]
    variables = {**environment(), "HOME": str(tmp_path), "AGENT_MEMORY_ROOT": str(tmp_path / "memory")}
    subprocess.run(command, env=variables, check=True, capture_output=True)
    page.goto("/topics")
    further = tab.locator("main a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    page.goto("/topics/chat")
    further += tab.locator(".notes li > a:first-child").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert len(further) >= 30
    searches = (
        "/memories?q=hit",
        "/forget?q=hit",
        "/why?q=hit+script",
        "/time?q=hit",
        "/memories?as_of=9",
        "/time?as_of=9",
    )
    for path in (*SCREENS, *searches, *links, *further[:12]):
        page.goto(path)
        tab.wait_for_load_state("networkidle")
    for text in HOSTILE[:8]:
        page.goto(f"/memories?q={text}&project={text}&tag={text}".replace("#", "%23"))
    for link in links[:8]:
        page.goto(link.replace("/memories/", "/why/"))
        page.goto(f"/memories/forget?id={link.rpartition('/')[2]}")


def test_invisible_characters_are_shown_as_codes(serve: Callable[..., ServedPage], tmp_path: Path) -> None:
    store_texts(tmp_path / "memory", ("pay \u202e001\u202c euros\u200b",))
    page = serve()
    text = page.goto("/memories").locator("[data-row] .text").inner_text()
    assert text == "pay \\u202e001\\u202c euros\\u200b"


def test_two_tabs_show_both_versions_of_a_stale_edit(demo: ServedPage) -> None:
    first, second = demo.tab, demo.open_tab()
    for tab in (first, second):
        tab.goto(f"{demo.base}/memories/mem-de0000000003")
    first.locator("textarea").fill("Tide tables are in local time.")
    second.locator("textarea").fill("Tide tables are printed.")
    with first.expect_navigation():
        first.get_by_role("button", name="Save").click()
    with second.expect_navigation():
        second.get_by_role("button", name="Save").click()
    demo.problems[:] = [text for text in demo.problems if "409" not in text]
    text = second.locator("main").inner_text()
    assert "in local time" in text
    assert "are printed" in text
    with second.expect_navigation():
        second.get_by_role("button", name="Save").click()
    assert second.locator("h1").inner_text() == "Tide tables are printed."


def test_page_follows_another_process_and_spares_what_is_typed(
    serve: Callable[..., ServedPage], tmp_path: Path
) -> None:
    store_texts(tmp_path / "memory", ("The heron nests in May.",))
    page = serve()
    tab = page.goto("/memories")
    with MemorySync("ada", root=tmp_path / "memory", embedder="none") as memory:
        memory.add("The varnish needs three days.")
        tab.get_by_role("link", name="The varnish needs three days.", exact=True).wait_for(timeout=10_000)
        tab.locator("input[type=search]").fill("half a que")
        memory.add("Deploy on Tuesdays.")
        tab.locator("#changed").wait_for(timeout=10_000)
    assert tab.locator("input[type=search]").input_value() == "half a que"
