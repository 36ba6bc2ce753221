"""A worker of a declared workspace, whatever is declared: claims steps, writes what depends on the step alone.

    python -m benchmarks.workspace.worker FOLDER work|snapshot|restore|resume [SEED]

Each line it prints is a step that it was told is finished, or `ended`.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, LeaseError
from agent_memory.workspace import Caller, Claim, Workspace

if TYPE_CHECKING:
    from agent_memory.workspace.declaration.model import Column, Table

ROWS: Final = 6
"""How many rows the first phase makes of each table that later phases work on."""
_ADDED: Final = 2
_LEASE_SECONDS: Final = 1.5
_LONGEST_LEASE: Final = 12.0
_SHARED: Final = 4
"""So many different values has a unique text: steps that run at the same time define the same."""
_IDLE_SECONDS: Final = 0.05
_END_SECONDS: Final = 60.0


def main(folder: str, what: str, seed: str = "0") -> None:
    """Do one of the things that a process may be killed in."""
    workspace = Workspace.open(Path(folder))
    try:
        if what == "work":
            work(workspace)
        else:
            _go_back(workspace, what, random.Random(seed))
    finally:
        workspace.close()
    print("ended", flush=True)


def work(workspace: Workspace) -> None:
    """Work until every step is done; give up where nothing comes of it for a minute."""
    deadline, lasting = time.monotonic() + _END_SECONDS, _LEASE_SECONDS
    while time.monotonic() < deadline:
        claim = workspace.steps.claim("worker", seconds=lasting)
        if claim is None:
            if all(step.status == "done" for step in workspace.steps.all()):
                return
            time.sleep(_IDLE_SECONDS)
            continue
        try:
            _do(workspace, claim)
            workspace.steps.finish(claim)
        except LeaseError:
            lasting = min(2 * lasting, _LONGEST_LEASE)  # too short for this machine, unless a restore ended it
            continue
        print(claim.step, flush=True)
        deadline = time.monotonic() + _END_SECONDS
    raise TimeoutError("the workspace did not come to its end")


def seed(workspace: Workspace) -> None:
    """Add the rows that the first phase works on, where it works on rows: nobody else makes them."""
    phase = workspace.declaration.phases[0]
    if phase.over is None:
        return
    for name, table in worked_on(workspace).items():
        for number in range(1, ROWS + 1):
            workspace.tables.save(name, _row(workspace, Caller(), name, number, number))
        assert table.key, "a table that is worked on has a key"


def worked_on(workspace: Workspace) -> dict[str, Table]:
    """Return the tables whose rows phases work on, those first that others refer to."""
    over = {phase.over for phase in workspace.declaration.phases}
    return {name: table for name, table in _in_order(workspace) if name in over}


def _in_order(workspace: Workspace) -> list[tuple[str, Table]]:
    """Return all tables, those first that others refer to."""
    left = dict(workspace.declaration.tables)
    found: list[tuple[str, Table]] = []
    while left:
        free = [
            name
            for name, table in left.items()
            if not {c.references for c in table.columns.values() if c.references != name} & left.keys()
        ]
        found += [(name, left.pop(name)) for name in free]
    return found


def _do(workspace: Workspace, claim: Claim) -> None:
    """Write what this step writes."""
    declaration, me = workspace.declaration, Caller(claim.agent, claim=claim)
    over = worked_on(workspace)
    unwritten = {name for name, table in declaration.tables.items() if table.kind == "singleton"}
    unwritten |= {name for name in (declaration.logs.retries, declaration.logs.validations) if name}
    first = declaration.phases[0]
    makes_rows = (claim.phase, claim.agent) == (first.name, first.agents[0].agent) and first.over is None
    for name, table in _in_order(workspace):
        if name in unwritten or (table.write and claim.agent not in table.write) or (name in over and not makes_rows):
            continue
        for number in range(1, (ROWS if name in over else _ADDED) + 1):
            workspace.tables.save(name, _row(workspace, me, name, number, number if name in over else None), me)
    if claim.table is not None:
        workspace.tables.update(claim.table, claim.key, _changed(workspace, claim), me)
    for label, pattern in declaration.files.items():
        _write_file(workspace.folder, pattern, f"{label}-{claim.phase}-{claim.agent}-{claim.key}")


def _changed(workspace: Workspace, claim: Claim) -> dict[str, Any]:
    """Return the values that a step sets in its own row."""
    declaration = workspace.declaration
    table = declaration.tables[claim.table or ""]
    phase = declaration.phase(claim.phase or "")
    must = next(agent.produces for agent in phase.agents if agent.agent == claim.agent)
    names = [
        name
        for name, column in table.columns.items()
        if name in must or (not _is_fixed(name, table, column) and _digest(claim.phase, claim.agent, name)[0] in "0123")
    ]
    return {name: _value(claim.step, claim.table or "", name, table.columns[name], 0) for name in names}


def _is_fixed(name: str, table: Table, column: Column) -> bool:
    kept = name == table.key or column.unique or column.references or column.type in ("file", "timestamp")
    return bool(kept) or name in ("created_at", "updated_at") or bool(column.write) or bool(column.done)


def _row(workspace: Workspace, me: Caller, name: str, number: int, key: int | None) -> dict[str, Any]:
    """Return a row that depends on the step alone; `key` is that of a row that phases work on."""
    table, claim = workspace.declaration.tables[name], me.claim
    step = claim.step if claim is not None else "seed"
    row: dict[str, Any] = {}
    for column_name, column in table.columns.items():
        if column_name in ("created_at", "updated_at") or column.type in ("file", "timestamp") or column.done:
            continue
        if column.write and me.agent not in (None, *column.write):
            continue
        if column.references is not None:
            if claim is not None and column.references == claim.table:
                row[column_name] = claim.key
            elif column.required:
                row[column_name] = _referred(workspace, me, column.references)
        elif column_name == table.key or column.unique:
            shared = int(_digest(step, number)[:4], 16) % _SHARED if key is None else key
            word = f"shared-{shared}" if key is None else f"row-{key:02}"
            row[column_name] = shared if column.type == "integer" else word
        else:
            row[column_name] = _value(step, name, column_name, column, number)
    return row


def _referred(workspace: Workspace, me: Caller, table: str) -> Any:
    """Return the key of a row that is there whenever this step runs: the first that phases work on, or its own."""
    declared = workspace.declaration.tables[table]
    rows = workspace.tables.many(table, me).rows
    own = rows if table in worked_on(workspace) else rows[-1:]
    return own[0][declared.key or "id"] if own else None


def _value(step: str | None, table: str, name: str, column: Column, number: int) -> Any:
    digest = _digest(step, table, name, number)
    if column.enum:
        return column.enum[int(digest[:4], 16) % len(column.enum)]
    if column.type == "integer":
        return int(digest[:6], 16)
    if column.type == "real":
        return int(digest[:4], 16) / 16
    if column.type == "boolean":
        return digest[0] < "8"
    if column.type == "json":
        return _json(column.json_schema or {}, digest)
    return f"{name} of {step}: " + " ".join(digest[start : start + 6] for start in range(0, 60, 6)) * 12


def _json(schema: dict[str, Any], digest: str) -> Any:
    """Return a value for the plainest schemas: a type, its items, what an object requires."""
    kind = schema.get("type", "object")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "array":
        return [_json(schema.get("items", {"type": "string"}), digest[place:]) for place in (0, 9)]
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: _json(properties.get(name, {"type": "string"}), digest) for name in schema.get("required", ["of"])
        }
    plain = {"string": digest[:12], "integer": int(digest[:4], 16), "number": int(digest[:4], 16) / 16, "boolean": True}
    return plain.get(kind)


def _write_file(folder: Path, pattern: str, name: str) -> None:
    """Write a file that the pattern matches, the way an editor does: whole, under another name, then renamed."""
    parts = [part for part in PurePosixPath(pattern).parts if part != "**"]
    path = folder.joinpath(*parts[:-1], parts[-1].replace("*", "".join(c if c.isalnum() else "-" for c in name)))
    if "*" in str(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{time.monotonic_ns()}")
    unfinished.write_text(json.dumps({"name": name, "hash": _digest(name)}) * 20)
    unfinished.replace(path)


def _go_back(workspace: Workspace, what: str, chance: random.Random) -> None:
    """Make a snapshot, or go back to one, or to before a step; refused where there is nothing to go back to."""
    try:
        names = [snapshot.name for snapshot in workspace.snapshots.all()]
        if what == "snapshot":
            workspace.snapshots.make(f"by-hand-{chance.randrange(10**9)}", dump=chance.random() < 0.5)
        elif what == "restore" and names:
            workspace.resume_from_snapshot(chance.choice(names))
        elif what == "resume":
            done = [step for step in workspace.steps.all() if step.status == "done" and step.table]
            if done:
                step = chance.choice(done)
                workspace.resume_from_row(step.table or "", step.key, step.phase)
    except AgentMemoryError as error:
        print(f"refused {error.code}", flush=True)


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
