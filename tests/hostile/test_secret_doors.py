"""No way into the memory leaves a byte of a secret that is known by its form, in any file, log, event or output."""

from __future__ import annotations

from benchmarks.secrets.kinds import PlantedSecret
from tests.hostile.secret_doors import DOORS, left_of, through
from tests.rows import check_rows

TOKENS = ["gh" + "p_" + "x7Kq2mZ9" * 4 + "aB3d", "gl" + "pat-" + "q7Vt2mX9bK4dR8sW1zLp", "Pebble%78" + "rT"]
SECRETS = [PlantedSecret(f"We decided that the deploy token of the build is {token}", (token,)) for token in TOKENS]


# What a person calls a file is theirs, and printed as they typed it.
@check_rows("door", [door for door in DOORS if door != "names of files"])
def test_nothing_is_left_behind_a_door(door: str) -> None:
    found = through(door, SECRETS[:2] if DOORS[door].bare else SECRETS)  # names have no signs
    least = 1 if door == "declarations of workspaces" else 4  # a declaration with a secret is refused
    assert found["files"] >= least, "nothing was kept: the test would prove nothing"
    assert (found["left"], found["where"]) == (0, [])


def test_a_secret_in_any_byte_is_found() -> None:
    for data in (TOKENS[0].encode(), f'{{"a": "x\\"{TOKENS[0]}"}}'.encode(), TOKENS[0][:22].encode()):
        assert left_of(SECRETS, {"there": b"...", "here": data}, bare=False)["where"] == ["here"]
    assert left_of(SECRETS, {"here": TOKENS[0][:15].encode()}, bare=False)["left"] == 0
