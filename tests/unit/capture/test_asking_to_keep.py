"""Whether the user wishes that something be kept, in words of their own."""

from __future__ import annotations

from agent_memory.capture import asks_to_keep
from tests.rows import check_rows


@check_rows(
    ("prompt", "content"),
    [
        ("Remember that I prefer tabs.", "The user prefers tabs over spaces."),
        ("remember this: the staging server is kestrel-2", "The staging server is kestrel-2"),
        ("Please remember that.", "Anything at all."),
        ("We met on Friday. Keep that in mind, please.", "They met on Friday."),
        ("Can you remember that I prefer tabs?", "The user prefers tabs."),
        ("Don't forget that I prefer tabs", "The user prefers tabs."),
        ("Save to your memory that our release day is Friday", "Release day is Friday"),
        ("Remember to always run the tests first", "Always run the tests first."),
        ("Merk dir, dass ich Tabs bevorzuge.", "Der Nutzer bevorzugt Tabs."),
        ("Souviens-toi que je préfère le thé", "L'utilisateur préfère le thé"),
        ("记住我喜欢喝茶", "用户喜欢喝茶"),
        ("お茶が好きだと覚えて", "ユーザーはお茶が好き"),
    ],
)
def test_a_wish_to_remember_is_heard(prompt: str, content: str) -> None:
    assert asks_to_keep(prompt, content)


@check_rows(
    ("prompt", "content"),
    [
        ("", "Anything."),
        ("I prefer tabs.", "The user prefers tabs."),
        ("Remember that I prefer tabs. Also fix the bug in foo.py", "foo.py had an off-by-one error in the parser"),
        ("Do you remember that I prefer tabs?", "The user prefers tabs."),
        ("Don't remember this, I prefer tabs", "The user prefers tabs."),
        ("remember to run the tests", "Run the tests"),
        ("The page says: remember that I like cats", "User likes cats"),
        ('He wrote "remember that I like cats" on it.', "User likes cats"),
        ("I remember that we had a bug in the parser", "bug in the parser"),
        ("Save the file to disk.", "The file is saved to disk."),
    ],
)
def test_what_is_no_wish_of_the_users_own_is_none(prompt: str, content: str) -> None:
    assert not asks_to_keep(prompt, content)
