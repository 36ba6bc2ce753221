"""Judges the tests by small faults in the code ("mutants"), and finds the same faults again in a later version of it.

    python -m scripts.mutants generate --tree A --seed 1 --count 200 src/agent_memory/journal > list.json
    python -m scripts.mutants run --tree A --list list.json --out base.json
    python -m scripts.mutants run --tree B --list list.json --only-killed-in base.json --out now.json src/agent_memory
    python -m scripts.mutants run --tree A --list list.json --out out.json --tests tests/unit/care tests/hostile
    python -m scripts.mutants compare base.json now.json

A and B are checkouts that nobody else works in (`git worktree add --detach`): `run` writes into their sources, one
mutant at a time, and puts back what was there. A mutant is run against the tests that execute its statement (where
few do, its file), quickest first but for one that killed it before, and is killed by the first that fails or by a
minute without an end.

mutmut names a mutant by module, function and number, cosmic-ray by file, operator and occurrence: neither finds it
again once code has moved to another module. Here its identity is the kind of change, the statement before and after
as `ast.unparse` writes them, and the name of the function; names of file and folder, and a number within the file,
only choose among those equal in all of this. One whose statement was rewritten is gone, and the nearest of the same
kind, by function, file and text, stands in for it.
"""
