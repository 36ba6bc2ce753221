"""Each command, in this process: what it answers, as text and as JSON, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from agent_memory.cli.app import SUBCOMMANDS, build, import_command
from agent_memory.cli.exit_codes import get_exit_code
from agent_memory.cli.options import complete_category
from agent_memory.earlier_name_tables import COMMANDS
from agent_memory.errors import AgentMemoryError, BusyError, DiskFullError, UnknownIdError, ValidationError
from agent_memory.models import CATEGORIES
from tests.rows import check_rows
from tests.unit.cli.conftest import A, B, C, document, ids

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

HOSTILE = "\x1b[2Jgone [bold red]markup[/] :smile: \x9b31m"


# -- which agent ------------------------------------------------------------------------------------------------------

D = "mem-00000000000d"
LINKS = json.dumps([{"rel": "derived_from", "id": B}])


@pytest.mark.parametrize("command", [["search", "x"], ["search"], ["overview"], ["list"]])
def test_listing_of_empty_root_is_of_default_agent(cli: Run, root: Path, command: list[str]) -> None:
    result = cli(*command, code=3 if command == ["search", "x"] else 0)
    assert result.stderr.startswith("No memories yet (agent me). Run `agent-memory store TEXT` to store one.")
    assert not root.exists()
    assert "No agent 'me'" in cli(*command, "--agent", "me", code=1).stderr


def test_store_in_empty_root_begins_default_agent(cli: Run, root: Path) -> None:
    assert "default agent, me" in cli("store", "Prefers tea").stderr
    assert "default agent" not in cli("store", "Works in Oslo").stderr
    assert [memory["content"] for memory in document(cli("list", "--json"))["memories"]] == [
        "Works in Oslo",
        "Prefers tea",
    ]
    assert (root / "me").is_dir()
    cli("store", "--agent", "bob", "Prefers coffee")
    assert "which_agent" in cli("list", code=1).stderr


@pytest.mark.parametrize("command", [["export"], ["archive", "compact"]])
def test_an_empty_root_gets_a_friendly_answer_and_stays_empty(cli: Run, root: Path, command: list[str]) -> None:
    result = cli(*command, code=1)
    assert "No agents" in result.stderr
    assert "agent-memory store TEXT" in result.stderr
    assert result.stdout == ""
    assert not root.exists()


def test_the_status_of_an_empty_root_is_that_there_are_no_agents_yet(cli: Run, root: Path) -> None:
    result = cli("status")
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert result.stderr.startswith(f"No agents under {root} yet.")
    assert document(cli("status", "--json")) == document(cli("agents", "--json")) == {"root": str(root), "agents": []}
    assert "No agent 'bob'" in cli("status", "--agent", "bob", code=1).stderr
    assert not root.exists()


def test_among_several_agents_one_has_to_be_named(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bob("store", "x", "--agent", "carol")
    assert "bob, carol" in bob("list", code=1).stderr
    assert ids(bob("list", "--json", "--agent", "bob"), "memories") == [C, B]
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "carol")
    assert document(bob("list", "--json"))["agent_id"] == "carol"


def test_a_mistyped_agent_is_not_created(bob: Run, root: Path) -> None:
    assert "There are: bob" in bob("search", "x", "--agent", "bbo", code=1).stderr
    assert not (root / "bbo").exists()


def test_root_may_be_given_as_an_option(cli: Run, tmp_path: Path) -> None:
    cli("store", "x", "--agent", "dave", "--root", str(tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / "dave" / "memories.yaml").exists()


# -- asking -----------------------------------------------------------------------------------------------------------


def test_status_tells_counts_and_health(bob: Run) -> None:
    shown = bob("status").stdout
    assert "3 (1 superseded)" in shown
    state = document(bob("status", "--json"))
    assert state["counts"]["memories"] == 3
    assert set(state["health"].get("degraded", {})) <= {"embedder"}, "without a model, words find"


def test_status_names_damaged_lines_and_fails_where_the_journal_cannot_be_read(bob: Run, root: Path) -> None:
    path = root / "bob" / "memories.yaml"
    with path.open("a") as journal:
        journal.write("--- \x1b[2Jbroken\n")
    shown = bob("status").stdout
    assert "damaged, 1 problem" in shown
    assert f"line {len(path.read_text().splitlines())}" in shown
    (root / "bob" / "memories.yaml").rename(root / "bob" / "kept.yaml")
    (root / "bob" / "memories.yaml").mkdir()
    result = bob("status", code=1)
    assert "unreadable" in result.stdout
    assert "Could not read memories.yaml" in result.stdout


@pytest.mark.parametrize("command", [["search", "ledger"], ["list"], ["show", A], ["export"], ["store", "x"]])
def test_an_unreadable_journal_is_an_error_with_advice(bob: Run, root: Path, command: list[str]) -> None:
    (root / "bob" / "memories.yaml").unlink()
    (root / "bob" / "memories.yaml").mkdir()
    result = bob(*command, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("error: Could not ")
    assert len(result.stderr.strip().splitlines()) == 2


def test_a_search_for_an_id_says_what_shows_it(bob: Run) -> None:
    assert f"`agent-memory show {B}`" in " ".join(bob("search", B, code=3).stderr.split())


def test_search_finds_and_says_how(bob: Run) -> None:
    found = document(bob("search", "ledger", "--json"))
    assert ([each["id"] for each in found["results"]], found["mode"]) == ([C], "keyword")
    assert "parts" not in found["results"][0]
    first, second = bob("search", "ledger").stdout.splitlines()
    assert first == "The ledger is in PostgreSQL."
    assert C in second
    assert "strong" in second


def test_search_shows_of_a_long_text_what_it_says_and_all_of_it_on_demand(bob: Run) -> None:
    text = "\n".join([f"Line {number} tells of other things." for number in range(40)] + ["The release is on Tuesday."])
    bob("store", "-", given=text)
    shown = bob("search", "release tuesday").stdout
    assert "The release is on Tuesday." in shown
    assert "…" in shown
    assert len(shown) < len(text)
    assert text in bob("search", "release tuesday", "--full").stdout.replace("\n    ", "\n")
    (hit,) = document(bob("search", "release tuesday", "--json"))["results"]
    assert hit["content"] == text
    assert hit["excerpt"] in shown.replace("\n    ", "\n")


def test_search_shows_what_is_near_the_best_and_explains_what_is_not(bob: Run) -> None:
    for place in ("shop", "school", "library"):
        bob("store", f"A {place} has many things of which one is a ledger, and people come and go all day long.")
    assert ids(bob("search", "postgresql ledger", "--json")) == [C]
    assert "3 not near the best" in bob("search", "postgresql ledger", "--explain").stdout


def test_search_with_weak_match_says_so_before_results(bob: Run) -> None:
    result = bob("search", "Which tea shop in Kyoto did Aiko visit in the winter of the flood?")
    assert "No confident match. Closest results:" in result.stderr
    assert "Maria likes tea." in result.stdout


def test_links_are_shown_at_both_ends_and_doubts_with_them(bob: Run) -> None:
    bob("import", "-", "--trusted", given=f'{{"id": "{D}", "content": "Maria needs a mug.", "links": {LINKS}}}\n')
    assert f"→ derived_from {B}  Maria likes tea.\n" in bob("search", "mug").stdout
    assert f"← derived_from {D}  Maria needs a mug.\n" in bob("search", "tea").stdout
    assert f"  links       ← derived_from {D} Maria needs a mug.\n" in bob("show", B).stdout
    shown = document(bob("show", D, "--json"))
    assert shown["linked"] == [{"rel": "derived_from", "id": B, "title": "Maria likes tea."}]
    assert [link["id"] for link in shown["links"]] == [B]
    bob("forget", B, "--yes")
    for doubting in (bob("search", "mug").stdout, bob("show", D).stdout):
        assert "doubtful" in doubting
        assert f"it is derived from {B}, which was forgotten" in doubting
    assert f"→ derived_from {B}\n" in bob("show", D).stdout
    assert document(bob("search", "mug", "--json"))["results"][0]["doubtful"]


def test_search_with_superseded_finds_the_old_and_says_so(bob: Run) -> None:
    assert set(ids(bob("search", "ledger", "--superseded", "--json"))) == {A, C}
    assert f"replaced by {C}" in bob("search", "ledger", "--superseded").stdout


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--category", "decision"], [C]),
        (["-c", "Note"], [B]),
        (["--tag", "maria", "--tag", "drinks"], [B]),
        (["--since", "2026-03-10"], [C]),
        (["--until", "2026-02-10"], [B]),
        (["--since", "2026-02-01", "--until", "2026-02-28"], [B]),
        (["--limit", "1"], [C]),
    ],
)
def test_search_keeps_to_its_filters(bob: Run, options: list[str], found: list[str]) -> None:
    """A query that says nothing finds the latest, so that the filters alone decide."""
    assert ids(bob("search", "", *options, "--json")) == found


def test_explain_tells_parts_and_what_was_left_out(bob: Run) -> None:
    shown = bob("search", "ledger", "--explain").stdout
    assert "similarity" in shown
    assert "bm25" in shown
    assert "Not found: 1 filtered out" in shown
    assert f"{A}  replaced by {C}" in shown
    found = document(bob("search", "ledger", "--explain", "--json"))
    assert found["results"][0]["parts"]["bm25"] > 0
    assert [each["id"] for each in found["rejected"]] == [A]
    bob("import", "-", given='{"content": "The ledger is frozen.", "expires_at": "2026-01-01"}\n')
    assert "  expired" in bob("search", "ledger", "--explain").stdout


def test_no_hit_is_an_exit_code_and_no_output(bob: Run) -> None:
    result = bob("search", "xylophone", code=3)
    assert (result.stdout, "Nothing found." in result.stderr) == ("", True)
    assert document(bob("search", "xylophone", "--json", code=3))["results"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "x", "--kind", "letter"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--limit", "many"],
        ["search", "x", "--since", "some day"],
        ["search", "x", "--category", "two words"],
        ["search", "x", "--tag", "t" * 65],
        ["search", "x", "--since", "2026-02-02", "--until", "2026-02-01"],
        ["store", "x", "--expires", "soon"],
        ["store", "x", "--category", "Füße"],
        ["no-such-command"],
        ["list", "--no-such-option"],
        ["export", "file.txt"],
        ["list", "--all", "--limit", "3"],
        ["list", "--fields", "colour"],
        ["update", A],
        ["forget", A],
        ["edit", A],
        ["agents", "delete", "bob"],
        ["agents", "rename", "bob", "bobby"],
    ],
)
def test_wrong_usage_ends_with_2(bob: Run, arguments: list[str]) -> None:
    result = bob(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr


def test_list_is_newest_first_without_the_replaced_or_in_the_order_of_the_scratchpad(bob: Run) -> None:
    assert ids(bob("list", "--json"), "memories") == [C, B]
    assert ids(bob("list", "-n", "1", "--json"), "memories") == [C]
    bob("pin", B)
    assert ids(bob("list", "--scratchpad", "--json"), "memories") == [B, C]


def test_show_has_every_field_and_opens_the_memory(bob: Run) -> None:
    text = bob("show", A).stdout
    shown = document(bob("show", A, "--json"))
    assert (shown["superseded_by"], shown["access_count"]) == (C, 1)
    assert {"access_count", "links", "metadata", "source", "trust"} <= shown.keys()
    assert f"replaced by {C}" in text
    assert text.endswith("The ledger is in MySQL.\n")


def test_looking_changes_nothing(bob: Run, root: Path) -> None:
    journal = (root / "bob" / "memories.yaml").read_bytes()
    for command in (["search", "tea"], ["list"], ["status"], ["export"]):
        bob(*command)
    assert (root / "bob" / "memories.yaml").read_bytes() == journal


@pytest.mark.parametrize("command", [["list"], ["search", "coffee"], ["export"], ["show", B]], ids=lambda c: c[0])
def test_a_persons_edit_of_the_scratchpad_is_known_to_every_command(bob: Run, root: Path, command: list[str]) -> None:
    pad = root / "bob" / "scratchpad.yaml"
    pad.write_text(pad.read_text().replace("Maria likes tea.", "Maria likes coffee."))
    assert "Maria likes coffee." in bob(*command).stdout


def test_changes_are_noted_as_the_command_lines(bob: Run, root: Path) -> None:
    bob("pin", B)
    last = json.loads((root / "bob" / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["session_id"]) == ("memory:updated", "cli")


@pytest.mark.parametrize(
    "command",
    [["show"], ["pin", "--once"], ["pin"], ["pin", "--remove"], ["update", "--pin"], ["forget", "--yes"]],
    ids=lambda c: c[0],
)
def test_an_unknown_id_ends_with_3_and_names_the_commands_that_find_it(bob: Run, command: list[str]) -> None:
    result = bob(*command, "mem-ffffffffffff", code=3)
    assert result.stdout == ""
    assert "`agent-memory search`" in result.stderr


# -- hostile content --------------------------------------------------------------------------------------------------


def test_what_a_memory_says_steers_no_terminal_and_is_no_markup(cli: Run, tmp_path: Path) -> None:
    entry = {"id": A, "content": HOSTILE, "tags": [HOSTILE], "created_by_session": HOSTILE, "metadata": {"k": HOSTILE}}
    entry |= {"source": {"kind": "tool", "detail": HOSTILE}, "links": [{"rel": HOSTILE, "id": B}]}
    (tmp_path / "evil.jsonl").write_text(json.dumps(entry))
    cli("import", str(tmp_path / "evil.jsonl"), "-a", "bob")
    for command in (
        ["list"],
        ["show", A],
        ["search", "markup", "--explain"],
        ["export"],
        ["export", "--format", "yaml"],
    ):
        result = cli(*command)
        assert "[bold red]markup[/] :smile:" in result.stdout
        assert not set(result.output) & {"\x1b", "\x9b"}
    assert document(cli("show", A, "--json"))["content"] == HOSTILE


# -- the application --------------------------------------------------------------------------------------------------


@check_rows(
    ("error", "code"),
    [
        (AgentMemoryError("x"), 1),
        (ValidationError("x"), 1),
        (DiskFullError("x"), 1),
        (ValidationError("x", code="usage"), 2),
        (ValidationError("x", code="invalid_filter"), 2),
        (UnknownIdError("x"), 3),
        (BusyError("x"), 4),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error: AgentMemoryError, code: int) -> None:
    assert get_exit_code(error) == code


def test_version_and_help_need_no_memory(cli: Run, root: Path) -> None:
    assert cli("--version").stdout.startswith("agent-memory ")
    assert "Exit codes" in cli("--help").stdout
    assert "ID......" not in cli("forget", "--help").stdout
    assert not root.exists()


def test_every_command_takes_root_and_json_and_has_a_help() -> None:
    group: Any = typer.main.get_command(build())
    context = typer.Context(group)
    names = group.list_commands(context)
    assert 18 <= len(names) <= 36
    for name in names:
        _, command, _ = group.resolve_command(context, [name])
        of_no_agent = name in {"agents", "backup", "trust-tool", "use", "workspace"}
        commands = [command]
        if hasattr(command, "commands"):
            commands = [command.resolve_command(context, [word])[1] for word in command.list_commands(context)]
        for each in commands:
            options = {option for parameter in each.params for option in parameter.opts}
            assert {"--root", "--json"} <= options, (name, each.name)
            assert "--agent" in options or of_no_agent
        listed = group.get_command(context, name).help.removesuffix(".")
        assert " ".join(command.help.split()).startswith(listed), name


def test_first_line_of_help_is_that_of_the_list() -> None:
    for entries in SUBCOMMANDS.values():
        for name, entry in entries.items():
            command = import_command(name, entry)
            assert " ".join(command.help.split()).startswith(entry.help.removesuffix(".")), name


@pytest.mark.parametrize(("earlier", "present"), COMMANDS.items())
def test_earlier_command_works_with_a_notice(cli: Run, earlier: str, present: str) -> None:
    group = present.split(maxsplit=1)[0]
    assert cli(earlier, "--help").stdout == cli(group, *present.split()[1:], "--help").stdout
    notice = f"note: `agent-memory {earlier}` is now `agent-memory {present}`; it works until version 1.0."
    assert notice in cli(earlier, "--help").stderr


def test_page_lists_every_earlier_name() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text("utf-8")
    earlier = page.partition("## Earlier names")[2]
    assert [name for name in COMMANDS if f"`{name}`" not in earlier] == []


def test_use_chooses_the_agent(bob: Run) -> None:
    bob("store", "-a", "eve", "Kate owns the ledger.")
    refused = bob("list", code=1).stderr
    assert "agent-memory agents use NAME" in refused
    assert document(bob("use", "eve", "--json"))["agent_id"] == "eve"
    assert document(bob("list", "--json"))["agent_id"] == "eve"
    assert document(bob("list", "-a", "bob", "--json"))["agent_id"] == "bob"
    assert "eve" in bob("use").stdout
    bob("use", "nobody", code=1)
    bob("agents", "delete", "eve", "--yes")
    assert document(bob("list", "--json"))["agent_id"] == "bob"
    bob("use", "--clear")
    assert document(bob("use", "--json"))["agent_id"] is None


def test_the_shell_is_offered_the_categories() -> None:
    assert complete_category("de") == ["decision"]
    assert complete_category("") == list(CATEGORIES)


def test_who_breaks_the_scratchpad_file_is_told_where_the_edit_is(bob: Run, root: Path) -> None:
    pad = root / "bob" / "scratchpad.yaml"
    pad.write_text("content: [one\n")
    said = bob("list").stderr
    (kept,) = pad.parent.glob("scratchpad.broken-*.yaml")
    assert "no longer YAML" in said
    assert said.replace("\n", " ").count(kept.name) == 1
    health = json.loads(bob("status", "--json").stdout)["health"]
    assert health["status"] == "attention"
    assert kept.name in health["message"]
    kept.rename(kept.with_name("scratchpad.broken-20200101T000000.yaml"))
    assert "message" not in json.loads(bob("status", "--json").stdout)["health"]


def test_who_writes_a_secret_into_the_scratchpad_file_is_told(bob: Run, root: Path) -> None:
    pad = root / "bob" / "scratchpad.yaml"
    pad.write_text(
        pad.read_text().replace(
            "\n- id", f"\n- content: 'The database in Lisbon opens with the password {'hunter2'}{'horse'}.'\n- id", 1
        )
    )
    assert "Secrets were removed from an edit" in bob("list").stderr
    assert bob("list").stderr == ""
    pad.write_text(pad.read_text().replace("\n- id", "\n- content: 5\n- id", 1))
    assert "was refused" in bob("list").stderr


def test_an_end_that_has_passed_is_refused(bob: Run) -> None:
    assert "has passed" in bob("store", "Maria is away.", "--expires", "2020-01-01", code=1).stderr
    assert "has passed" in bob("update", B, "--expires", "2020-01-01", code=1).stderr
    assert document(bob("show", B, "--json"))["expires_at"] is None
    bob("update", B, "--expires", "2999-01-01")


def test_options_that_contradict_each_other_are_refused(bob: Run) -> None:
    bob("update", B, "--pin", "--unpin", code=2)
    bob("restore", "--version", "3", code=2)
    refused = bob("list", "--since", "2026-03-01", "--until", "2026-02-01", code=2).stderr
    assert "--since" in refused
    assert "is after --until" in refused
    assert "without an ID" in " ".join(bob("forget", B, "--matching", "tea", "--yes", code=2).stderr.split())
    bob("update", B, "--pin")
    assert document(bob("show", B, "--json"))["pinned"]
    bob("update", B, "--unpin")
    assert not document(bob("show", B, "--json"))["pinned"]


def test_a_second_restore_asks_before_it_takes_back_an_older_change_of_text(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    bob("forget", B, "--yes")
    assert "is back" in bob("restore", B).stdout
    said = bob("restore", B, code=2).stderr
    assert "Now: Maria likes coffee." in said
    assert "Then: Maria likes tea." in said
    assert "--version" in said
    assert document(bob("show", B, "--json"))["content"] == "Maria likes coffee."
    (first, *_) = document(bob("history", B, "--json"))["versions"]
    bob("restore", B, "--version", str(first["seq"]))
    assert document(bob("show", B, "--json"))["content"] == "Maria likes tea."
