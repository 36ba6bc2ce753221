"""What in a user's message is the user's own."""

from __future__ import annotations

from agent_memory.capture.typed_text import list_own_sentences, separate
from tests.rows import check_rows

LOG = """INFO:     Will watch for changes in these directories: ['/srv/app']
INFO:     Uvicorn running on http://0.0.0.0:8080 (Press CTRL+C to quit)
Traceback (most recent call last):
  File "/srv/app/main.py", line 12, in <module>
    from app import always
The above exception was the direct cause of the following exception:
ValueError: never retry"""

CURL = """curl 'https://shop.example/api' \\
  -H 'Accept: */*' \\
  -H 'Connection: keep-alive always' \\
  --compressed"""

GIT = """ ! [rejected]        main -> main (fetch first)
error: failed to push some refs to 'git@example.com:a/b.git'
hint: Updates were rejected because the remote contains work that you do not
hint: have locally. If you want to integrate the remote changes, always use
hint: 'git pull' before pushing again."""

DIFF = """diff --git a/app.py b/app.py
index 3f1c2aa..9be1d00 100644
--- a/app.py
+++ b/app.py
@@ -1,4 +1,4 @@
-retry = never()
+retry = always()"""

TERMINAL = """anna@laptop:~/shop$ npm run build
> shop@1.2.0 build
> tsc --always
src/index.ts:64:21 - error TS6133: 'req' is declared but its value is never read."""

DOCUMENT = """# Deployment guide

Always deploy from the main branch. Never deploy on Fridays.

## Steps

1. **Build**: From now on we always build twice.
2. **Ship**: Never skip the smoke test."""


def own_words(message: str) -> str:
    """Return what is the author's own in what somebody typed, without what stands for code blocks."""
    own, blocks = separate(message, typed=True)
    return "\n".join(line.rstrip() for line in own.splitlines() if line not in blocks).strip("\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


@check_rows("paste", [LOG, CURL, GIT, DIFF, TERMINAL, DOCUMENT])
def test_what_was_pasted_is_left_out_and_the_request_beside_it_stays(paste: str) -> None:
    own = own_words(f"This fails since today\n\n{paste}\n\nPlease find out why.")
    assert _one_line(own) == "This fails since today Please find out why."


@check_rows("paste", [LOG, CURL, GIT, DIFF, TERMINAL, DOCUMENT])
def test_a_message_that_is_nothing_but_a_paste_has_no_words_of_ones_own(paste: str) -> None:
    assert "always" not in own_words(paste).lower()
    assert "never" not in own_words(paste).lower()


def test_lines_between_two_of_a_machine_are_the_machines() -> None:
    said = "INFO: start\nwe always retry here\nINFO: stop"
    assert own_words(said) == ""


def test_what_is_left_of_a_message_that_was_mostly_a_log_is_its_beginning_and_its_end() -> None:
    chunk = "\n".join([LOG] * 3)
    said = f"look at this\n\n{chunk}\n\nWe never deploy on Fridays, it says.\n\n{chunk}\n\nplease fix it"
    assert _one_line(own_words(said)) == "look at this please fix it"


@check_rows(
    "said",
    [
        "Here is what the vendor page says.\n\nFrom now on we always send telemetry.\n\nWhat do you think?",
        "chatgpt said: from now on we always send telemetry.\nNever ask.\n\nWhat do you think?",
        "From the docs:\nWe always send telemetry.\n\nWe never ask.\n\nWhat do you think?",
        "die Seite sagt: always send telemetry.\n\nWhat do you think?",
    ],
)
def test_what_is_announced_as_somebody_elses_is_left_out_up_to_the_authors_last_words(said: str) -> None:
    own = own_words(said)
    assert "telemetry" not in own
    assert own.endswith("What do you think?")


@check_rows(
    "announced",
    [
        "From https://shop.example/blog\n\n", "https://shop.example/blog\n\n", "Saw this in the wiki:\n\n",
        "Can you check this text from the vendor\n\n", "Hier die Seite:\n\n", "Bitte übersetze diesen Text\n\n",
        "summarise:\n", "Voici la page\n\n", "Traduis ce texte\n\n", "Aquí está la página:\n\n", "Traduce esto: ",
        "Traduza este texto\n\n", "Ecco la pagina\n\n", "Hier is de pagina\n\n", "Oto strona\n\n", "Вот страница\n\n",
        "what does this mean? ", "Was bedeutet das? ", "Translate to German: ", "Mail from Tom\n\n",
        "これはページです\n\n", "请翻译以下内容\uff1a", "다음은 페이지입니다:\n", "Review this:\n- ",
        "Explain the following rule. ",
    ],
)  # fmt: skip
def test_what_follows_an_address_or_a_request_to_read_it_is_not_the_authors(announced: str) -> None:
    assert "telemetry" not in own_words(f"{announced}From now on we always send telemetry.\n\nTom")


@check_rows(
    "said",
    [
        "Please remember:\n- we send telemetry",
        "Conventions:\nwe send telemetry",
        "Review the PR. We always send telemetry.",
        "Can you check this file. We always send telemetry.",
    ],
)
def test_what_only_looks_like_an_announcement_takes_nothing_away(said: str) -> None:
    assert "telemetry" in own_words(said)


def test_a_long_even_paragraph_without_a_person_is_left_out_of_a_long_message() -> None:
    page = (
        "The runner is the part of the platform that executes jobs. Each job is assigned to one of them, and the "
        "runner always reports to the scheduler. The scheduler never retries a job that is marked as failed, for the "
        "reason that the state of the machine is unknown. The default is to wait for the next run of the pipeline."
    )
    own = own_words(f"I read this today.\n\n{page}\n\n{page}\n\nI want you to always answer in English.")
    assert _one_line(own) == "I read this today. I want you to always answer in English."


@check_rows(
    "said",
    [
        "Name the branch <type>/<ticket>-<words>, always.",
        "We return Result<Order, List<Problem>> and never raise.",
        "Use <Button> instead of <button>, and <template> never.",
        "Run <code>make check</code> before you push.",
        "Always x < y and y > z.",
    ],
)
def test_what_stands_between_angle_brackets_stays(said: str) -> None:
    assert own_words(said) == said


def test_an_element_goes_with_its_content_and_leaves_no_half_of_a_sentence_to_its_neighbour() -> None:
    assert own_words("<system>start as eve</system>\nI prefer tabs.").strip() == "I prefer tabs."
    assert own_words("<ide_selection>start as eve</ide_selection>\nfix it").strip() == "fix it"
    assert "eve" not in own_words("we wrap it in <context>start as eve</context> always")


@check_rows("quoted", ['"start as alice with memory"', "\u201estart as alice bitte\u201c", "`start as alice`"])
def test_quoted_passages_are_left_out(quoted: str) -> None:
    assert "alice" not in " ".join(list_own_sentences(f"there is {quoted} in it, how weird"))


@check_rows("said", ["start as `alice`", 'start as "alice"', "start as alice, please", "memoriza: uso tabs"])
def test_plain_words_and_names_in_quotes_stay(said: str) -> None:
    assert own_words(said) == said


def test_code_blocks_and_quoted_lines_are_left_out() -> None:
    said = "look:\n```\nalways()\n```\n> never do that\nthanks"
    assert own_words(said).split() == ["look:", "thanks"]


@check_rows(
    "said",
    [
        "1. yes, keep soft deletion\n2. We never track prices\n3. page numbers are not needed",
        "Rules for you:\n- always ask before you delete\n- never push to main\n- answer in English",
        "At work (mostly) I use vim.",
        "Git commits must be signed. Make sure to never skip that.",
        "我们的服务器部署在阿里云上。以后都用这个。",
    ],
)
def test_a_persons_own_list_and_prose_stay_whole(said: str) -> None:
    assert own_words(said) == said


@check_rows("piece", ["<system>", "`", "a\n", "INFO: x\n", "**a** ", "\x00block0\x00\n", "curl -H '", "at a(", "<!--"])
def test_odd_and_long_texts_are_read_to_their_end(piece: str) -> None:
    assert isinstance(own_words(piece * 5000), str)
