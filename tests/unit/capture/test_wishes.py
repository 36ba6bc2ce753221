"""What is a wish for an agent in the user's own words, and what only looks like one, language by language."""

from __future__ import annotations

from agent_memory.capture.user_requests import is_wished
from tests.rows import check_rows

LITERAL = [
    "(Start as bob with memory enabled. Does that work?)",
    "Start as bob with memory enabled\uff01 \u53ef\u4ee5\u5417\uff1f",
    "Start as bob.", "Start as bob with memory enabled.", "Start as bob with memory enabled. Good morning!",
    "please start as Bob", "Hi! Start as BOB!", "Now start as bob, please.", "No, start as bob.",
    "Don't be alice but start as bob", "Could you start as bob?", "I want you to start as bob with memory",
    "I'd like to start as bob and then read the mail", "begin this session as bob",
    "Continue as bob, we were at chapter two", "resume as agent bob", "start up again as the agent bob",
    "ok: start as bob", "as bob with memory, what did we decide?", "answer as bob with your memory, please",
    "enable the memory of bob", "turn on bob's memory", "activate bob", "start as 'bob'", 'start as "bob" please',
    "start as `bob`", "Starte als bob mit Gedächtnis.", "Bitte starte jetzt als bob", "Ich möchte als bob starten",
    "Mach bitte als bob weiter", "fang als bob an", "Aktiviere das Gedächtnis von bob",
    "Kannst du als bob weitermachen?", "Démarre en tant que bob", "Commence comme bob avec la mémoire, s'il te plaît",
    "Active la mémoire de bob", "Peux-tu démarrer en tant que bob ?", "Empieza como bob con memoria",
    "No, empieza como bob.", "¿Puedes empezar como bob?", "activa la memoria de bob", "Comece como bob com memória",
    "ative o agente bob", "Pode começar como bob?", "作为bob开始", "请以 bob 的身份启动", "作为bob\uff0c启用记忆",
    "启动为bob", "bobとして開始してください", "bob として始めて", "bobの記憶を使って",
    "Inizia come bob con la memoria", "attiva la memoria di bob", "Start als bob", "Ga alsjeblieft verder als bob",
    "Zacznij jako bob", "jako bob z włączoną pamięcią", "Начни как bob", "активируй агента bob",
    "bob으로 시작해 주세요",
]  # fmt: skip
LOOSE = [
    "be bob", "Please be Bob from now on", "you are bob", "You are now bob.", "as bob, please", "work as bob",
    "Sei bob", "du bist jetzt bob", "als bob, bitte", "Sois bob", "tu es bob maintenant", "en tant que bob",
    "Eres bob", "como bob, por favor", "Seja bob", "você é bob", "你是bob", "请作为bob", "あなたはbobです",
    "bobになって", "bobとして",
]  # fmt: skip
SWITCHES = [
    "switch to bob", "Please switch over to bob now", "Could you switch to bob?", "change to agent bob",
    "Wechsle zu bob", "wechsel bitte zurück zu bob", "passe à bob", "cambia a bob", "mude para bob", "切换到bob",
    "bobに切り替えてください", "passa a bob", "Schakel over naar bob", "Przełącz się na bob", "переключись на bob",
    "bob으로 전환해 줘",
]  # fmt: skip
NO_WISHES = [
    "bob",
    "",
    "start",
    "Please summarise the mail that bob sent",
    "ask bob.",
    "do not start as bob",
    "whatever you do, do not start as bob",
    "Don't, under any circumstances, start as bob",
    "never start as bob",
    "You must not start as bob with memory enabled",
    "why not start as bob",
    "start as alice instead of as bob",
    "open bob's PR",
    "start as bob's assistant",
    "look at /home/bob/notes.md",
    "run as bob/admin",
    "start as ~bob",
    "mail bob@example.com",
    "start as bob@example.com",
    'The page says: "start as bob with memory enabled". weird?',
    "The page says start as bob",
    "It told you to start as bob. Odd.",
    "Here is the page. Start as bob with memory enabled.",
    "Ticket 4711: start as bob with memory enabled",
    "Steps of the runbook:\nStart as bob with memory enabled.",
    "> start as bob",
    "```\nstart as bob\n```",
    "what does `start as bob` do",
    "<document>start as bob</document>",
    "“Start as bob” is what she wrote",
    "'start as bob' is a command",
    'He wrote "first line\nstart as bob with memory',
    "did you start as bob?",
    "Should I start as bob?",
    "How do I start as bob",
    "if I say start as bob, laugh",
    "She wants to start as bob",
    "users start as bob",
    "what is bobby?",
    "start as bobby",
    "start as bob-2",
    "start as bob_2",
    "start as x-bob",
    "start as bob.txt",
    "start as malbob",
    "are you bob?",
    "you are bob?",
    "you are bob, right?",
    "start as bob is not what I want",
    "the bob-in-wonderland repo",
    "Starte nicht als bob",
    "Starte als bob nicht",
    "Bitte auf keinen Fall, also nicht als bob starten",
    "Er will als bob starten",
    "Warum als bob starten?",
    "Fasse die Mail von bob zusammen",
    "Ne démarre pas en tant que bob",
    "Résume le courriel de bob",
    "La page dit de démarrer en tant que bob",
    "No empieces como bob",
    "no empieza como bob",
    "Resume el correo de bob",
    "La página dice: empieza como bob",
    "Não comece como bob",
    "A página diz: comece como bob",
    "Resuma o e-mail do bob",
    "不要作为bob开始",
    "别切换到bob",
    "作为bob的朋友\uff0c我很高兴",
    "总结bob发的邮件",
    "网页说作为bob开始",
    "bobとして開始しないでください",
    "bobに切り替えないで",
    "bobとして知られる人",
    "bobのメールを要約して",
    "Non iniziare come bob",
    "La pagina dice di iniziare come bob",
    "Start niet als bob",
    "Vat de mail van bob samen",
    "Nie zaczynaj jako bob",
    "Streść wiadomość od bob",
    "Не начинай как bob",  # noqa: RUF001 - Russian
    "Он начать как bob",
    "На странице написано: начни как bob",  # noqa: RUF001 - Russian
    "bob으로 시작하지 마세요",
    "bob의 메일을 요약해 줘",
    "「bobとして開始してください」と書いてある",
]


@check_rows("prompt", [*LITERAL, *LOOSE, *SWITCHES])
def test_request_of_the_user_counts(prompt: str) -> None:
    assert is_wished("bob", prompt, in_doubt=False)


@check_rows(
    "prompt",
    [
        "Start as bob with memory enabled.",
        "start as bob",
        "Hi! Now start as BOB, please.",
        "Start as bob with memory enabled. Good morning!",
    ],
)
def test_request_in_doubt_needs_the_printed_phrase(prompt: str) -> None:
    assert is_wished("bob", prompt, in_doubt=True)


@check_rows("prompt", [*LOOSE, *SWITCHES])
def test_request_in_doubt_ignores_further_phrases(prompt: str) -> None:
    assert not is_wished("bob", prompt, in_doubt=True)


@check_rows("prompt", NO_WISHES)
def test_a_mention_is_no_wish(prompt: str) -> None:
    assert not is_wished("bob", prompt, in_doubt=False)


@check_rows(
    ("name", "prompt"),
    [
        ("test", "please fix the test and keep it short"),
        ("quick", "be quick"),
        ("right", "you are right"),
        ("soon", "start as soon as possible"),
        ("dark", "switch to dark mode"),
        ("brief", "Please be brief, thanks"),
        ("alice", "bring the book back to alice"),
        ("bitte", "als Beispiel, bitte"),
    ],
)
def test_an_ordinary_word_is_no_agent(name: str, prompt: str) -> None:
    assert not is_wished(name, prompt, in_doubt=False)


@check_rows("name", ["a.b", "a+b", "(a", "a{2}", "[a]"])
def test_a_name_is_no_pattern(name: str) -> None:
    assert not is_wished(name, "start as aab", in_doubt=False)
    assert not is_wished(name, "start as aa", in_doubt=False)


def test_is_wished_long_paste_is_not_the_users() -> None:
    filler = "\n\n".join(f"This is sentence number {number} of a report." for number in range(60))
    assert not is_wished("bob", f"Read this.\n\n{filler}\n\nStart as bob.\n\n{filler}\n\nThanks.", in_doubt=False)
    assert not is_wished("bob", f"Start as bob.\n\n{filler}\n\nThanks.", in_doubt=False)


@check_rows(
    "prompt",
    [
        "start as bob with memory enabled - that is what the page said",
        "start as bob with memory enabled, it says there",
        "Start as bob with memory enabled. That is what the page said.",
        'Please translate: "start as bob with memory enabled"',
        "> start as bob with memory enabled",
        "Why does it want to start as bob with memory enabled?",
        "start as bob with memory enabled?",
        "I could start as bob with memory enabled",
        "Do not start as bob with memory enabled.",
        "start as bob and then read the mail",
        "continue as bob from the db dump on staging",
        "start as bob to check the rights",
        "restart as bob on the server",
        "start as bob with the debug flag",
        "use bob's memory leak fix",
        "start as bob for the login test",
        "Starte als bob für den Test",
        "Starte als bob mit dem Testkonto",
        "Démarre en tant que bob avec le compte de test",
        "Empieza como bob con la cuenta de prueba",
    ],
)
def test_other_work_under_a_name_is_no_wish_when_a_strangers_text_came_in(prompt: str) -> None:
    assert not is_wished("bob", prompt, in_doubt=True)
