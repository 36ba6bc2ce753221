"""The scratchpad in a request's view: where, when, for whom, and what it leaves alone."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.scratchpad import MARKER, estimate_tokens
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, memory_of, plan

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.context_memory_scratchpad.conftest import Mounted

    Mount = Callable[..., Awaitable[Mounted]]

SYSTEM = {"role": "system", "content": "You are helpful."}
HELLO = {"role": "user", "content": "hello"}


# -- where ------------------------------------------------------------------------------------------------------------


async def test_it_stands_right_after_the_system_message_as_words_of_the_user(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    await here.context.add_message(SYSTEM)
    await here.context.add_message(HELLO)
    view = await here.context.get_messages_for_request()
    assert [message["role"] for message in view] == ["system", "user", "user"]
    assert (view[0], view[2]) == (SYSTEM, HELLO)
    assert view[1]["content"].startswith(f"{MARKER} of bob]")
    assert "Prefers tea" in view[1]["content"]


async def test_prompt_with_empty_memory_says_whose_it_is(mounted: Mount) -> None:
    here = await mounted()
    await here.context.add_message(HELLO)
    view = await here.context.get_messages_for_request(500)
    assert view[1:] == [HELLO]
    assert view[0]["content"] == f'{MARKER} of bob]\nMemory is on for "bob". It holds nothing beyond the scratchpad.'
    assert here.inner.asked == [(500 - estimate_tokens(view[0]["content"]), None)]


async def test_prompt_counts_memories_beyond_scratchpad(mounted: Mount) -> None:
    here = await mounted({"exclude_categories": ["note"]})
    first, _ = await here.remember("Prefers tea", "Works in Oslo")
    service = await here.session.require()
    await service.store({"content": "Prefers coffee", "supersedes": first})
    await service.store({"content": "Uses Postgres", "category": "decision"})
    pad = await here.pad()
    assert 'Memory is on for "bob". It holds 2 memories beyond the scratchpad; memory_search finds them.' in pad
    assert "Uses Postgres" in pad


async def test_prompt_counts_no_memories_of_another_group(mounted: Mount) -> None:
    here = await mounted({"exclude_categories": ["note"]})
    service = await here.session.require()
    for group in ("acme:one", "acme:two", ""):
        await service.store({"content": f"Known to {group}", "group": group})
    here.session.group_settings.add_settings(None, "acme:one")
    assert "It holds 2 memories beyond" in await here.pad()


async def test_without_a_system_message_it_comes_first_and_it_is_never_part_of_the_history(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    await here.context.add_message(HELLO)
    view = await here.context.get_messages_for_request()
    assert view[0]["content"].startswith(MARKER)
    assert view[1:] == [HELLO]
    view.clear()
    assert await here.context.get_messages() == [HELLO]
    assert here.inner.messages == [HELLO]


async def test_settings_say_what_is_shown(mounted: Mount) -> None:
    here = await mounted({"include_timestamps": False, "include_tags": False, "exclude_categories": ["decision"]})
    service = await here.session.require()
    await service.store({"content": "Prefers tea", "category": "preference", "tags": ["drink"]})
    await service.store({"content": "Uses Postgres", "category": "decision"})
    pad = await here.pad()
    assert "- [preference] Prefers tea (mem-" in pad
    assert "Postgres" not in pad


# -- frozen -----------------------------------------------------------------------------------------------------------


async def test_it_is_frozen_while_the_session_goes_on(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    first = await here.pad()
    (later,) = await here.remember("Works in Oslo")
    service = await here.session.require()
    await service.update(later, {"pinned": True})
    await service.search("Oslo", caller=here.session.caller)
    await service.settle()
    await here.context.add_message(HELLO)
    assert await here.pad() == first


@pytest.mark.parametrize("event", ["context:compaction", "context:post_compact", None])
async def test_a_compaction_or_a_resumed_history_makes_it_anew(mounted: Mount, event: str | None) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    await here.pad()
    await here.remember("Works in Oslo")
    await (here.coordinator.hooks.emit(event, {}) if event else here.context.set_messages([HELLO]))
    assert "Works in Oslo" in await here.pad()


@pytest.mark.parametrize("is_rendered", [False, True], ids=["at once", "rendered in between"])
@pytest.mark.parametrize("what", ["forget here", "reword here", "forget", "reword", "supersede", "expire"])
async def test_what_was_forgotten_or_made_untrue_by_another_process_is_shown_no_more_at_once(
    mounted: Mount, what: str, is_rendered: bool
) -> None:
    here = await mounted()
    tea, _ = await here.remember("Prefers tea", "Works in Oslo")
    service = await here.session.require()
    await service.settle()
    assert "Prefers tea" in await here.pad()
    elsewhere = FileStorage("bob", service.settings.storage_root, settings=ServiceSettings(embedder="none"))
    if what == "forget here":
        await service.forget(tea, here.session.caller)
    elif what == "reword here":
        await service.update(tea, {"content": "Prefers water"}, here.session.caller)
    elif what == "forget":
        await elsewhere.delete(tea)
    elif what == "reword":
        await elsewhere.update(tea, {"content": "Prefers water"})
    elif what == "supersede":
        await elsewhere.store(memory_of("Prefers water", supersedes=tea))
    else:
        await elsewhere.update(tea, {"expires_at": NOON})
    await elsewhere.close()
    if is_rendered:  # the rendering that `remember` leaves to be done may come this late; it reads the new words
        service.pad.schedule()
        await service.settle()
    pad = await here.pad()
    assert "Prefers tea" not in pad
    assert "Works in Oslo" in pad
    await service.settle()
    assert "Prefers tea" not in [memory.content for memory in await service.storage.valid()]
    assert not is_rendered or "Prefers tea" not in service.pad.file.read_text()


async def test_what_another_process_adds_leaves_it_frozen(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    before = await here.pad()
    service = await here.session.require()
    elsewhere = FileStorage("bob", service.settings.storage_root, settings=ServiceSettings(embedder="none"))
    await elsewhere.store(memory_of("Works in Oslo"))
    await elsewhere.close()
    assert await here.pad() == before


async def test_another_agents_scratchpad_follows_a_switch(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    assert "Prefers tea" in await here.pad()
    here.session.turn.begin("start as alice")
    await here.session.activate("alice")
    assert await here.pad() == f'{MARKER} of alice]\nMemory is on for "alice". It holds nothing beyond the scratchpad.'
    await here.remember("Prefers coffee")
    await here.context.set_messages([])
    pad = await here.pad()
    assert pad.startswith(f"{MARKER} of alice]")
    assert "tea" not in pad


# -- its tokens -------------------------------------------------------------------------------------------------------


async def test_its_tokens_are_taken_off_the_inner_limit_or_an_explicit_budget(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    cost = estimate_tokens(await here.pad())
    assert here.inner.asked[-1] == (10_000 - cost, None), "when nothing else is known"
    await here.context.get_messages_for_request(token_budget=1000)
    await here.context.get_messages_for_request(token_budget=3)
    assert here.inner.asked[-2:] == [(1000 - cost, None), (1, None)]


async def test_its_tokens_are_taken_off_the_providers_window(mounted: Mount) -> None:
    from amplifier_core import ModelInfo, ProviderInfo

    class Provider:
        name = "scripted"
        seen = 0

        def get_info(self) -> ProviderInfo:
            defaults = {"context_window": 9000, "max_output_tokens": 100}
            return ProviderInfo(id="scripted", display_name="Scripted", defaults=defaults)

        def get_model_info(self, model: str = "m") -> ModelInfo:
            return ModelInfo(id=model, display_name=model, context_window=8000, max_output_tokens=100)

    provider, here = Provider(), await mounted()
    await here.remember("Prefers tea")
    cost = estimate_tokens(await here.pad())
    await here.context.get_messages_for_request(provider=provider)
    budget, seen = here.inner.asked[-1]
    assert budget is None
    assert seen.get_info().defaults == {"context_window": 9000 - cost, "max_output_tokens": 100}
    assert seen.get_model_info("x").context_window == 8000 - cost
    assert seen.name == "scripted"
    assert provider.get_info().defaults["context_window"] == 9000, "the provider itself is untouched"
    with pytest.raises(AttributeError):
        _ = seen.nonsense


@pytest.mark.parametrize("info", [None, {"defaults": {"context_window": 9}}, object()])
async def test_a_provider_that_tells_nothing_useful_is_passed_on(mounted: Mount, info: Any) -> None:
    class Provider:
        def get_info(self) -> Any:
            return info

    here = await mounted()
    await here.remember("Prefers tea")
    await here.context.get_messages_for_request(provider=Provider())
    assert here.inner.asked[-1][1].get_info() is info


async def test_the_token_budget_is_kept(mounted: Mount) -> None:
    here = await mounted({"token_budget": 120, "briefing": False})
    await here.remember(*(f"fact number {n} with some words" for n in range(30)))
    pad = await here.pad()
    assert 0 < estimate_tokens(pad) <= 120
    assert "It holds 29 memories beyond the scratchpad" in pad


# -- for whom ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session_id", "config", "shown"),
    [
        ("p-c_coder", {}, False),
        ("p-c_memory-assistant", {}, True),
        ("p-c_coder", {"inject_in_subsessions": True}, True),
    ],
)
async def test_sub_sessions_are_spared_it_unless_they_are_about_memory(
    mounted: Mount, session_id: str, config: dict[str, Any], shown: bool
) -> None:
    parent = await mounted(session_id="p")
    await parent.remember("Prefers tea")
    child = await mounted(config, session_id=session_id, parent_id="p")
    assert bool(await child.pad()) is shown


async def test_prompt_of_default_agent_names_it(mounted: Mount) -> None:
    here = await mounted({"agent_id": None})
    assert 'Memory is on for "me".' in await here.pad()


async def test_prompt_for_tenant_without_agent_is_silent(mounted: Mount) -> None:
    here = await mounted({"agent_id": None}, config=plan(tenant_id="acme"))
    await here.context.add_message(HELLO)
    assert await here.context.get_messages_for_request(77) == [HELLO]
    assert here.inner.asked == [(77, None)]


async def test_switched_off_it_is_silent(mounted: Mount) -> None:
    here = await mounted(config=plan(agent_identity="bob", memory={"enabled": False}))
    assert await here.pad() == ""


@pytest.mark.parametrize("config", [{"token_budget": "x"}, {"token_budget": 0}, ["nonsense"]])
async def test_a_wrong_configuration_shows_nothing_and_breaks_nothing(mounted: Mount, config: Any) -> None:
    here = await mounted(config)
    await here.context.add_message(HELLO)
    assert await here.context.get_messages_for_request() == [HELLO]
    assert here.session.problem is not None


# -- trouble ----------------------------------------------------------------------------------------------------------


async def broken(*_: object) -> None:
    raise StorageError(os.strerror(errno.EIO))


async def test_when_memory_fails_the_conversation_goes_on_with_the_last_scratchpad(
    mounted: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = await mounted()
    (tea,) = await here.remember("Prefers tea")
    last = await here.pad()
    told: list[str] = []

    async def hear(event: str, _data: dict[str, Any]) -> None:
        told.append(event)

    here.coordinator.hooks.register("memory:degraded", hear, name="test")
    service = await here.session.require()
    monkeypatch.setattr(service, "scratchpad", broken)
    await here.coordinator.hooks.emit("context:compaction", {})
    assert await here.pad() == last
    assert told == ["memory:degraded"]
    await service.forget(tea)
    assert await here.pad() == "", "rather nothing than what was forgotten"


async def test_one_agents_scratchpad_is_never_shown_to_another_when_memory_fails(
    mounted: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = await mounted()
    await here.remember("Prefers tea")
    await here.pad()
    here.session.turn.begin("start as alice")
    await here.session.activate("alice")
    service = await here.session.require()
    monkeypatch.setattr(service, "scratchpad", broken)
    assert await here.pad() == ""


# -- all else is the inner one ----------------------------------------------------------------------------------------


async def test_all_that_the_inner_manager_offers_still_works(mounted: Mount) -> None:
    here = await mounted()

    async def factory() -> str:
        return "system"

    await here.context.set_system_prompt_factory(factory)
    assert here.inner.factory is factory
    assert here.context.extra == "an attribute of the inner one"
    assert here.context.max_tokens == 10_000
    with pytest.raises(AttributeError):
        _ = here.context.nonsense
    await here.context.add_message(HELLO)
    await here.context.clear()
    assert await here.context.get_messages() == []


def test_a_bare_copy_does_not_recurse() -> None:
    from amplifier_module_context_memory_scratchpad.session_mount import ScratchpadContext

    bare = ScratchpadContext.__new__(ScratchpadContext)
    with pytest.raises(AttributeError):
        _ = bare.anything
    assert copy.copy(bare) is not bare
    assert pickle.loads(pickle.dumps(bare)) is not bare


# -- on a base of its own ---------------------------------------------------------------------------------------------


async def test_as_the_sessions_own_context_it_keeps_a_conversation(mounted: Mount) -> None:
    here = await mounted(alone=True)
    await here.remember("Prefers tea")

    async def factory() -> str:
        return "You are helpful."

    await here.context.set_system_prompt_factory(factory)
    await here.context.add_message({"role": "system", "content": "an older system message"})
    await here.context.add_message(HELLO)
    view = await here.context.get_messages_for_request()
    assert [message["role"] for message in view] == ["system", "user", "user"]
    assert view[0]["content"] == "You are helpful."
    assert view[1]["content"].startswith(MARKER)
    assert view[2] == HELLO
    await here.context.set_messages([HELLO, HELLO])
    assert await here.context.get_messages() == [HELLO, HELLO]


async def test_its_own_base_drops_the_oldest_turns_whole(mounted: Mount) -> None:
    here = await mounted(alone=True)
    await here.context.add_message(SYSTEM)
    for number in range(6):
        await here.context.add_message({"role": "user", "content": f"question {number} " + "word " * 50})
        await here.context.add_message({"role": "assistant", "content": "", "tool_calls": [{"id": str(number)}]})
        await here.context.add_message({"role": "tool", "tool_call_id": str(number), "content": "result"})
    whole = await here.context.get_messages_for_request(token_budget=100_000)
    assert len(whole) == 20, "with the line that says whose memory is on"
    view = await here.context.get_messages_for_request(token_budget=400)
    assert view[0] == SYSTEM
    assert view[1]["role"] == "user", "a turn is never cut within"
    assert 4 <= len(view) < 20
    assert sum(estimate_tokens(str(message)) for message in view) <= 400
    smallest = await here.context.get_messages_for_request(token_budget=1)
    assert [message["role"] for message in smallest] == ["system", "user", "user", "assistant", "tool"]
    assert len(await here.context.get_messages()) == 19


async def test_its_own_base_reckons_with_the_providers_window(mounted: Mount) -> None:
    from amplifier_core import ProviderInfo

    class Provider:
        def get_info(self) -> ProviderInfo:
            defaults = {"context_window": 500, "max_output_tokens": 100}
            return ProviderInfo(id="scripted", display_name="Scripted", defaults=defaults)

    here = await mounted(alone=True)
    for number in range(6):
        await here.context.add_message({"role": "user", "content": f"question {number} " + "word " * 50})
    view = await here.context.get_messages_for_request(provider=Provider())
    assert 2 <= len(view) < 7
    assert len(await here.context.get_messages_for_request()) == 7


async def test_clearing_the_conversation_ends_a_strangers_part_in_it_and_nothing_else_does(mounted: Mount) -> None:
    here = await mounted()
    here.session.taint.note("web_fetch")
    here.context.note_compaction()
    await here.context.set_messages([])
    assert here.session.caller.trust == "low"
    child = await mounted(session_id="child-1", parent_id="root-1")
    await child.context.clear()
    assert here.session.caller.trust == child.session.caller.trust == "low"
    await here.context.clear()
    assert here.session.caller.trust == "medium"


# -- the briefing -----------------------------------------------------------------------------------------------------


async def many(here: Mounted) -> str:
    """Store what a prompt asks for, and so much after it that the scratchpad shows it no more; return its id."""
    (wanted,) = await here.remember("The attempt budget of the Retrier is seven.")
    await here.remember(*(f"Parcel {number} goes to {number * 7} Harbour Street" for number in range(60)))
    return wanted


async def asked(here: Mounted, prompt: str = "What is the attempt budget of the Retrier?") -> str:
    await here.context.add_message({"role": "user", "content": prompt})
    return await here.pad()


async def test_what_bears_on_the_first_prompt_stands_behind_the_scratchpad(mounted: Mount) -> None:
    here = await mounted()
    await many(here)
    pad = await asked(here)
    scratchpad, marker, briefing = pad.partition("[agent-memory: briefing")
    assert "Retrier" not in scratchpad
    assert marker
    assert "budget of the Retrier is seven" in briefing
    assert here.inner is not None
    assert here.inner.asked[-1] == (
        10_000 - estimate_tokens(scratchpad.rstrip()) - estimate_tokens(marker + briefing),
        None,
    )


async def test_it_is_made_once_and_goes_with_what_it_quotes(mounted: Mount) -> None:
    here = await mounted()
    wanted = await many(here)
    before = await asked(here)
    assert await asked(here, "And where does parcel 3 go?") == before, "never again in that session"
    here.context.note_compaction()
    assert "Retrier is seven" in await here.pad()
    service = await here.session.require()
    await service.forget(wanted)
    assert "Retrier" not in await here.pad()
    assert "briefing" not in await asked(here)


async def test_what_the_scratchpad_shows_is_not_told_twice(mounted: Mount) -> None:
    here = await mounted()
    await here.remember("The attempt budget of the Retrier is seven.")
    assert (await asked(here)).count("Retrier is seven") == 1


@pytest.mark.parametrize(
    ("config", "session"), [({"briefing": False}, {}), ({"inject_in_subsessions": True}, {"parent_id": "root"})]
)
async def test_it_is_not_made_where_it_is_switched_off_or_for_a_sub_agent(
    mounted: Mount, config: Any, session: Any
) -> None:
    here = await mounted(config, **session)
    await many(here)
    assert "briefing" not in await asked(here)
