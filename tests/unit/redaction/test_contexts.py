"""Secrets that the form around them gives away: locks, options of commands, properties, links between words."""

from __future__ import annotations

from agent_memory.redaction import SecretRedactor
from tests.rows import check_rows

REDACTOR = SecretRedactor()


@check_rows(
    ("text", "secret"),
    [
        ("front door: 1603#", "1603"),
        ("the gate opens with 7067#", "7067"),
        ("my phone unlocks with 903482", "903482"),
        ("the code for the front door is 8051", "8051"),
        ("G-357385 is your Google code", "357385"),
        ("<key>apiToken</key><string>dragon+marble2549</string>", "marble2549"),
        ("requests.get(url, auth=('ann', 'lantern_nectar4618'))", "nectar4618"),
        ("ipmitool -H 10.0.0.6 -U ADMIN -P pepper479? power status", "pepper479"),
        ("echo pebble&willow5821 | kinit island@CORP.LOCAL", "willow5821"),
        ("xfreerdp /v:10.0.0.5 /u:ann /p:wIHMYBf7gkZb7849", "gkZb7849"),
        ("setup key: uvbp aahv mtzv ragl utgb vyuo qqzz abwp", "ragl utgb"),
        ("product key is EDIE8-1L1ZI-38Q0F-CM62F-4SO92", "38Q0F"),
        ("hasło to qirzjmdboe", "qirzjmdboe"),
        ("changed the root password to odbmacxqaw", "odbmacxqaw"),
        ("the passphrase is forest-meadow-velvet-magnet", "velvet"),
        ("the master password is Dragon Zephyr Garnet Olive", "Garnet"),
        ("passwords: db WillowQuartz3951, web magnet.breeze1491", "breeze1491"),
        ("// password:\n// dragon_velvet8338", "velvet8338"),
        ("GarnetBreeze2732\n^ that's the db password", "2732"),
        ("pa55word = hazel@pepper1694", "pepper1694"),
        ("MAILPW=harbor6168", "harbor6168"),
        ("Authorization: Splunk f8b3846a-2e96-4d74-a76f-038fa26c5b80", "4d74"),
        ("key box code: 8790", "8790"),
        ("Dein Code ist 911384", "911384"),
        ("Use 287437 to verify your account", "287437"),
        ("password's pebblemagnet", "pebblemagnet"),
        ("the password is correct horse battery staple", "horse"),
        ("BitLocker key 123456-234567-345678-456789-567890-678901-789012-890123", "456789"),
        ("forest:3944Saddle!", "3944Saddle"),
        ("Netflix ann@magnet.io Anchor+1089", "1089"),
        ("bike lock: 2510", "2510"),
        ("Geheimzahl 1538", "1538"),
        ("le mot de passe wifi c'est Marble.6966", "6966"),
        ("depot_org_34284cd31e3cb467f6a15f88711949345492e9ef8168ad93", "8871194934"),
        ("try Falcon+6712", "6712"),
        ("Island_2682 should work", "2682"),
        ('{"kty": "RSA", "e": "AQAB", "d": "vIU4z1d1460aZOGs34km9pzBCcNFuT0k"}', "aZOGs34km9"),
    ],
)
def test_it_is_taken_out(text: str, secret: str) -> None:
    assert secret not in REDACTOR.redact(text).text


@check_rows(
    "text",
    [
        "The door opens at 0800 and closes at 1900.",
        "docker run -p 8080:80 nginx",
        "Citation key vaswani2017attention and devlin2019bert.",
        "recovery='Give the key that this memory was encrypted with, and start the command again, please.'",
        "| the briefing with 500 tokens | .06 |\n| 2,000 tokens | .03 |",
        "The password in it is shown nowhere.",
        'if key == "properties": return',
        "secret = await service.keep(text)",
        "vectors of local:all-MiniLM-L6-v2, about mem-a3f2c1b4e5d6 of the account",
        '$password = "[redacted:password]"',
        "Order 4711 is the code for the perfume, not for the door.",
        "error code: 80070005, zip code: 10178",
        "Idempotency-Key: 04e14a6c-72b2-4181-9f36-62520afa4a13",
        "Set-Cookie: theme=dark; Path=/; Max-Age=31536000",
        "La password è quella di sempre.",
        "密码保存在 1Password 里。",
        "password: Optional[SecretStr] = Field(default=None)",
        'create(name: "bob", password: SecureRandom.hex)',
        "The password is correct but the account is locked.",
        "the password is invalid after the reset today",
        "PIN diode BAR64-02V on GPIO17",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTOR.redact(text).text == text


@check_rows(
    ("text", "secret"),
    [
        ("define('AUTH_SALT', 'k9#Lm2[xQ<7vB!z4Tn@W8e^Yc1Ru5pJd');", "k9#Lm2[xQ<7vB!z4Tn@W8e^Yc1Ru5pJd"),
        ('define( "NONCE_SALT",  "aQ3 wE5 rT7 yU9 iO1 pA2 sD4 fG6 hJ8" );', "aQ3 wE5 rT7 yU9 iO1 pA2 sD4 fG6 hJ8"),
        ('DriverManager.getConnection(url, "sa", "winterhat");', "winterhat"),
        ('getConnection("jdbc:h2:mem:x", "sa", "Winter-24")', "Winter-24"),
        ('$db = new mysqli("localhost", "root", "falcon", "shop");', "falcon"),
        ("new PDO($dsn, 'root', 'falcon_7')", "falcon_7"),
    ],
)
def test_secret_at_its_place_in_a_call_is_found(text: str, secret: str) -> None:
    assert secret not in SecretRedactor().redact(text).text


@check_rows(
    "text",
    [
        "define('WP_HOME', 'https://www.example.org/a/longer/path/to/the/site');",
        "define('TABLE_PREFIX', 'wp_');",
        'getConnection(url, "sa", "")',
        "new PDO($dsn, $user, $password)",
        "postgres://user:password@localhost:5432/app",
        "correlation token 6f1c2b1e-8a0e-4b7c-9d2e-1a2b3c4d5e6f",
        "user 01HQZX3V9K8J7M6N5P4Q3R2S1T logged in by the admin",
    ],
)
def test_call_or_identifier_without_a_secret_stays(text: str) -> None:
    assert SecretRedactor().redact(text).text == text
