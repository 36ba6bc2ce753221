"""Rows, claims and ways back in any order, against a model in memory: what is shown, and that it is written down.

The model keeps for each row who set its definition, in order; taking a step back removes its writes from that list.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_memory.workspace import Caller, Workspace
from agent_memory.workspace.core import open_folder
from agent_memory.workspace.database.history import fold_entries, iter_entries, load_text
from tests.support import FrozenClock, scale_examples

if TYPE_CHECKING:
    from agent_memory.workspace import Claim

DECLARED = """
workspace: w
tables:
  chapters: {key: number, columns: {number: {type: integer, required: true}}}
  terms:
    key: term
    columns: {term: {type: text, required: true}, definition: text}
phases:
  - {name: first, over: chapters, agents: [ann], retries: 100}
  - {name: second, over: chapters, after: row, agents: [bob], retries: 100}
"""
STEPS = ["first/ann/1", "first/ann/2", "second/bob/1", "second/bob/2"]
TERMS = st.sampled_from(["roof", "wall", "beam"])
TEXTS = st.sampled_from(["a", "b", "c" * 600, None])


@dataclass
class Row:
    """A row of the model: who added it, and who set its definition to what; `None` is a person."""

    term: str
    by: str | None
    order: tuple[int, ...]
    writes: list[tuple[str | None, str | None]]
    finished: bool
    alive: bool = True


@dataclass
class Model:
    """What there should be."""

    rows: dict[int, Row] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    def take_back(self, step: str) -> None:
        self.done.discard(step)
        for row in self.rows.values():
            row.alive = row.alive and row.by != step
            row.writes = [each for each in row.writes if each[0] != step]


class Sequences(RuleBasedStateMachine):
    """Any sequence of what people and workers do."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "w.yaml").write_text(DECLARED)
        self.clock = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.book = Workspace.create(self.folder / "w", self.folder / "w.yaml", clock=self.clock)
        self.opened = open_folder(self.folder / "w", None, None)  # the history has no other way out
        for number in (1, 2):
            self.book.tables.save("chapters", {"number": number})
        self.model = Model()
        self.claims: dict[str, Claim] = {}
        self.kept: dict[str, tuple[Model, str]] = {}

    def teardown(self) -> None:
        self.opened.database.close()
        self.book.close()
        shutil.rmtree(self.folder)

    def caller(self, step: str | None) -> Caller:
        return Caller() if step is None else Caller(claim=self.claims[step])

    @rule(step=st.sampled_from([None, *STEPS]), term=TERMS, text=TEXTS)
    def add(self, step: str | None, term: str, text: str | None) -> None:
        if step is not None and step not in self.claims:
            step = None
        saved = self.book.tables.save("terms", {"term": term, "definition": text}, self.caller(step))
        order = (-1, saved.row_id) if step is None else (STEPS.index(step), saved.row_id)
        self.model.rows[saved.row_id] = Row(term, step, order, [(step, text)], finished=step is None)

    @rule(step=st.sampled_from([None, *STEPS]), term=TERMS, text=TEXTS)
    def change(self, step: str | None, term: str, text: str | None) -> None:
        if step is not None and step not in self.claims:
            step = None
        if not self.book.tables.many("terms", self.caller(step), where={"term": term}).rows:
            return
        saved = self.book.tables.update("terms", term, {"definition": text}, self.caller(step))
        if saved.changed:
            self.model.rows[saved.row_id].writes.append((step, text))

    @rule(step=st.sampled_from(STEPS))
    def claim(self, step: str) -> None:
        if step not in {each.name for each in self.book.next_steps()}:
            return
        claim = self.book.steps.claim("worker", step=step)
        assert claim is not None
        self.claims[step] = claim
        self.model.take_back(step)  # what an attempt left that was not finished

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(sorted(self.claims)))
        self.book.steps.finish(self.claims.pop(step))
        self.model.done.add(step)
        for row in self.model.rows.values():
            row.finished = row.finished or (row.by == step and row.alive)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), fails=st.booleans())
    def give_back(self, data: st.DataObject, fails: bool) -> None:
        step = data.draw(st.sampled_from(sorted(self.claims)))
        claim = self.claims.pop(step)
        if fails:
            self.book.steps.fail(claim, "quality", "no")
        else:
            self.book.steps.release(claim)
        self.model.take_back(step)

    @precondition(lambda self: self.model.done)
    @rule(data=st.data())
    def judge(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(sorted(self.model.done)))
        self.book.steps.validate(step, "judge", ["no"])
        self.model.take_back(step)

    @rule()
    def die(self) -> None:
        self.clock.advance(seconds=601)
        self.claims.clear()

    @rule()
    def snapshot(self) -> None:
        name = f"s{len(self.kept)}"
        self.book.snapshots.make(name)
        self.kept[name] = (copy.deepcopy(self.model), self.book.canonical())

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.kept)))
        now = (copy.deepcopy(self.model), self.book.canonical())
        kept_as = self.book.resume_from_snapshot(name).kept_as
        self.kept[kept_as] = now
        then, shown = self.kept[name]
        gone = {row_id: copy.deepcopy(row) for row_id, row in self.model.rows.items() if row_id not in then.rows}
        self.model = copy.deepcopy(then)
        for row_id, row in gone.items():
            row.alive = False
            self.model.rows[row_id] = row
        self.claims.clear()
        assert self.book.canonical() == shown
        assert self.book.snapshots.compare(name).rows == []

    @precondition(lambda self: self.kept)
    @rule(chapter=st.sampled_from([1, 2]), phase=st.sampled_from(["first", "second"]))
    def again(self, chapter: int, phase: str) -> None:
        now = (copy.deepcopy(self.model), self.book.canonical())
        self.kept[self.book.resume_from_chapter(chapter, phase).kept_as] = now
        for step in STEPS:
            if step.endswith(str(chapter)) and (phase == "first" or step.startswith("second")):
                self.model.take_back(step)
        self.claims.clear()

    @invariant()
    def what_is_shown_is_what_the_model_has(self) -> None:
        shown = {row["id"]: row for row in self.book.tables.many("terms").rows}
        waiting = {row["id"] for row in self.book.tables.proposals("terms")}
        wanted = {row_id for row_id, row in self.model.rows.items() if row.alive and row.finished}
        assert shown.keys() | waiting == wanted
        assert {self.model.rows[each].term for each in shown} == {self.model.rows[each].term for each in wanted}
        for row_id, row in shown.items():
            model = self.model.rows[row_id]
            assert row["definition"] == (model.writes[-1][1] if model.writes else None)
            rivals = [each for each in wanted if self.model.rows[each].term == model.term]
            if all(self.model.rows[each].by is not None for each in rivals):
                assert row_id == min(rivals, key=lambda each: self.model.rows[each].order)
        assert {each.name for each in self.book.steps.all() if each.status == "done"} == self.model.done

    @invariant()
    def the_history_ends_with_what_there_is(self) -> None:
        schema = self.opened.schema
        with self.opened.database.reading() as connection:
            stored = {row["id"]: dict(row) for row in connection.execute(schema.declared["terms"].select()).mappings()}
            for row_id, row in stored.items():
                history = schema.history.c
                told = fold_entries(iter_entries(connection, schema, history.tbl == "terms", history.row_id == row_id))
                assert told is not None
                values = {name: load_text(connection, schema, value) for name, value in told.values.items()}
                assert {name: values.get(name) for name in row if name != "id"} == {
                    name: value for name, value in row.items() if name != "id"
                }


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=scale_examples(15),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
