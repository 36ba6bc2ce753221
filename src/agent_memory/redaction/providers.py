"""Secrets known by their own form: provider tokens, keys, JWTs, headers, URLs with credentials, card numbers.

Patterns here need no word such as "password" nearby. All are linear: a literal start and a bounded or possessive tail.
Sources of the forms: each provider's documentation and the rule sets of detect-secrets and gitleaks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import looks_random, looks_random_alone, passes_luhn

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAYBE: Final = "api-key?"  # a beginning that names share with identifiers: only if the rest looks generated

# kind, literal beginnings (any of which makes the pattern worth trying), pattern. Group `s`, if any, is the secret.
_FORMS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("jwt", ("eyJ",), r"(?<![\w-])eyJ[\w-]{8,4000}+(?:\.[\w-]{4,4000}+){1,4}=*"),
    ("github-token", ("gh", "github_pat_"), r"(?<![A-Za-z0-9])(?:gh[opusr]_[A-Za-z0-9]{16,255}|github_pat_\w{16,255})"),
    ("gitlab-token", ("gl", "GR1348941"), r"\b(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-|GR1348941)[\w.-]{12,}+"),
    ("npm-token", ("npm_",), r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{16,}+"),
    ("npm-token", ("_authToken", "_auth"), r"_auth(?:Token)?\s{0,3}=\s{0,3}(?P<s>[\w+/=-]{8,}+)"),
    ("pypi-token", ("pypi-",), r"\bpypi-[\w-]{16,}+"),
    ("slack-token", ("xox", "xapp-", "xwfp-"), r"\b(?:xox[a-z]-|xox[a-z]\.xox[a-z]-|xapp-|xwfp-)[\w-]{10,}+"),
    ("slack-webhook", ("hooks.slack",), r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<s>[\w/-]{8,}+)"),
    ("webhook", ("webhook",), r"(?:discord(?:app)?\.com/api(?:/v\d+)?/webhooks|webhook\.office\.com/webhookb2|outlook\.office\.com/webhook)/(?P<s>[\w/@-]{8,}+)"),
    ("stripe-key", ("_live_", "_test_"), r"(?<![A-Za-z0-9])(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}+"),
    ("api-key", ("_live_", "_test_", "_prod_", "_sandbox_", "_secret_", "-live-"), r"(?<![A-Za-z0-9])[A-Za-z]{2,12}[_-](?:live|test|prod|sandbox|secret)[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{16,}+"),
    ("webhook-secret", ("whsec_",), r"\bwhsec_[\w+/=]{16,}+"),
    ("anthropic-key", ("sk-ant-",), r"\bsk-ant-[\w-]{12,}+"),
    ("openai-key", ("sk-",), r"(?<![\w-])sk-(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])[\w-]{20,}+"),
    ("api-key", ("sk-",), r"(?<![\w-])sk-[a-z]{0,6}-?(?:v1-)?[0-9a-f]{24,}+"),
    ("huggingface-token", ("hf_", "api_org_"), r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{20,}+"),
    ("google-key", ("AIza", "ya29.", "GOCSPX-", "1//0"), r"(?:\bAIza[\w-]{30,}+|\bya29\.[\w-]{16,}+|\bGOCSPX-[\w-]{16,}+|\b1//0[\w-]{30,}+)"),
    ("aws-key", ("AKIA", "ASIA", "ABIA", "ACCA", "AIDA", "AROA"), r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA|AIDA|AROA)[A-Z0-9]{12,20}(?![A-Za-z0-9])"),
    ("aws-key", ("ABSK",), r"\bABSK[A-Za-z0-9+/]{60,}+={0,2}"),
    ("azure-key", ("AccountKey", "SharedAccessKey", "sharedaccesskey", "accountkey"), r"(?i)(?:AccountKey|SharedAccessKey)=(?P<s>[\w+/=-]{16,}+)"),
    ("azure-key", ("8Q~", "7Q~"), r"[\w~.-]{3}[78]Q~[\w~.-]{30,40}"),
    ("signed-url", ("ig=", "ignature=", "oken=", "redential="), r"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token|x-amz-credential)=(?P<s>[\w%+/=.~-]{8,}+)"),
    ("url-token", ("?", "&"), r"(?i)[?&#](?:[\w-]{0,20}(?:token|secret|api_?key|apikey|password|passwd|pwd)|auth|key)=(?P<s>(?=[^\s&#\"'<>]{0,60}\d)[^\s&#\"'<>]{8,}+)"),
    ("sendgrid-key", ("SG.",), r"\bSG\.[\w-]{10,}+\.[\w-]{10,}+"),
    ("mailgun-key", ("key-",), r"\bkey-[0-9a-f]{32}\b"),
    ("mailchimp-key", ("-us",), r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("twilio-key", ("SK", "AC"), r"\b(?:SK|AC)[0-9a-f]{32}\b"),
    ("telegram-token", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{30,}+"),
    ("discord-token", (".",), r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{25,40}(?![\w.-])"),
    ("sentry-token", ("sntry",), r"\bsntry[su]_[\w=+/-]{20,}+"),
    ("sentry-dsn", ("ingest", "sentry"), r"https://(?P<s>[0-9a-f]{32})(?::[0-9a-f]{32})?@[\w.-]{0,80}(?:ingest|sentry)"),
    ("digitalocean-token", ("_v1_",), r"\bdo[opr]_v1_[0-9a-f]{32,}+"),
    ("shopify-token", ("shp",), r"\bshp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{16,}+"),
    ("atlassian-token", ("ATATT", "ATBB", "ATCTT"), r"\b(?:ATATT3|ATBB|ATCTT3)[\w=+/-]{16,}+"),
    ("hashicorp-token", ("hvs.", "hvb.", "hvr.", "atlasv1", "s."), r"(?:\bhv[sbr]\.[\w-]{20,}+|\b[\w]{14}\.atlasv1\.[\w=-]{40,}+|(?<![\w.])s\.(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{24}\b)"),
    ("databricks-token", ("dapi",), r"\bdapi[0-9a-f]{28,}+"),
    ("grafana-token", ("gl",), r"\bgl(?:c|sa)_[\w+/=]{24,}+"),
    ("airtable-token", ("pat",), r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{32,}+"),
    ("facebook-token", ("EAA",), r"\bEAA[A-Za-z0-9]{40,}+"),
    ("docker-token", ("dckr_",), r"\bdckr_(?:pat|oat)_[\w-]{16,}+"),
    ("api-key", (), r"(?<![A-Za-z0-9_-])(?:lin_api_|figd_|ntn_|PMAK-|NRAK-|NRII-|rubygems_|tskey-[a-z]{2,8}-|sbp_|xai-|gsk_|pplx-|nvapi-|tvly-|dp\.(?:pt|st|ct|sa|scim|audit)\.|sq0[a-z]{3}-|FlyV1 fm\d_|ph[cx]_|pscale_\w{2,8}_|CFPAT-|ops_ey|LTAI|ccipat_|CCIPAT_|shippo_(?:live|test)_|duffel_(?:live|test)_|lsv2_[a-z]{2}_)[\w.-]{16,}+"),
    (_MAYBE, (), r"(?<![A-Za-z0-9_-])(?:secret|token|key|api|re|r8|pul|rnd|fly[a-z]{0,4}\d?|vercel|bkua|sgp|fw|jina|[spar]k|pat|tok|oy2|EAAAE)[_-](?=\w{0,40}\d)[\w.-]{16,}+"),
    ("age-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[0-9A-Z]{20,}+"),
    ("password-hash", ("$",), r"\$(?:2[abxy]|argon2(?:id|i|d)|[156y]|apr1|pbkdf2[\w-]{0,12}|scrypt)\$[\w./$=,+-]{16,}+"),
    ("bearer-token", ("earer", "EARER"), r"(?i)\bbearer[ \t]{1,4}(?P<s>(?=[^\s\"']{0,40}[\d._~+/=-])[\w.~+/=-]{8,}+)"),
    ("authorization", ("uthorization", "UTHORIZATION"), r"(?i)\bauthorization[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:(?:basic|bearer|token|digest|apikey|api-key|negotiate|aws4-hmac-sha256|bot|key)[ \t]{1,3})?(?P<s>(?!basic\b|bearer\b|token\b|digest\b)[^\s\"'<>{}$][^\s\"'<>]{5,}+)"),
    ("basic-auth", ("asic ",), r"\b[Bb]asic (?P<s>(?=[A-Za-z+/]{0,40}[\dA-Z])[A-Za-z0-9+/]{12,}+={0,2})(?![\w-])"),
    ("cookie", ("ookie:", "OOKIE:"), r"(?i)\b(?:set-)?cookie:[ \t]{0,3}(?P<s>(?!SameSite|HttpOnly|Secure|Path=|Domain=|Max-Age)[\w.-]{1,64}=[^\r\n\"']{4,})"),
    ("api-key", ("-",), r"(?i)\bx-[\w-]{0,30}(?:key|token|secret|auth|signature|password)[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?(?P<s>[^\s\"'<>{}$]{6,}+)"),
    ("connection-password", ("://",), r"\b[a-z][a-z0-9+.-]{1,24}://(?:[^\s/:@\"'<>]{0,100}):(?P<s>[^\s/\"'<>]{1,200})@(?=[\w\[$.-])"),
    ("url-token", ("://",), r"\bhttps?://(?P<s>(?=[\w-]{0,60}\d)[\w-]{16,200})@(?=\w)"),
    ("connection-password", ("assword=", "ASSWORD=", "wd=", "WD="), r"(?i)\b(?:password|pwd)=(?P<s>[^;\s\"'&]{3,200})(?=;)"),
    ("password", ("curl", "-u", "--user"), r"(?:\s-u|--user)[ =]{1,2}[\"']?[\w.@+-]{1,64}:(?P<s>[^\s\"'$]{3,})"),
    ("password", ("sshpass", "mysql", "mariadb", "PGPASSWORD"), r"(?:\bsshpass\s{1,3}-p\s{0,2}|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,80}?\s-p)[\"']?(?P<s>[^\s\"'$-][^\s\"']{2,})"),
    ("password", ("--pass", "--token", "--secret", "--api-key", "--pw"), r"--(?:pass(?:word|wd|phrase)?|pw|token|secret|api-key)[ =][\"']?(?P<s>[^\s\"'$<{-][^\s\"']{3,})"),
)  # fmt: skip
_COMPILED: Final = tuple((kind, starts, re.compile(pattern)) for kind, starts, pattern in _FORMS)

_CARD: Final = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_CARD_WORD: Final = re.compile(
    r"(?i)(?:\b(?:visa|amex|mastercard|kreditkarte\w*|carte|tarjeta|cart[aã]o)\b|card|カード|信用卡)[^\n\d]{0,40}$"
)
_CARD_GROUPS: Final = re.compile(r"[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}")
_IBAN: Final = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])")
_LONG_TOKEN: Final = re.compile(r"(?<![\w+/=.-])[A-Za-z0-9+/_-]{32,512}+={0,2}(?![\w+/=-])")
_INTEGRITY: Final = re.compile(r"(?i)(?:sha\d{1,3}[-:]|ssh-\w+ |ecdsa-\S{1,30} |integrity\W{1,4})$")
_KEY_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_KEY_END: Final = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: ?[0-9a-f]{1,80}")
_KEY_LINE: Final = re.compile(
    r"(?:[ \t>|*#\"'\\rn+]{0,8})(?:[A-Za-z0-9+/=]{1,200}|[A-Z][\w-]{1,30}: [^\n]{0,100})?[ \t\\rn\"',]{0,8}"
)


def find_provider_secrets(text: str) -> Iterator[Finding]:
    """Yield every secret in `text` that is recognised by its own form."""
    yield from _private_keys(text)
    for kind, starts, pattern in _COMPILED:
        if starts and not any(start in text for start in starts):
            continue
        for match in pattern.finditer(text):
            if kind == _MAYBE and not looks_random(match[0]):
                continue
            start, end = match.span("s") if "s" in pattern.groupindex else match.span()
            yield Finding(start, end, kind.rstrip("?"))
    yield from _numbers(text)
    for match in _LONG_TOKEN.finditer(text):
        if looks_random_alone(match[0]) and not _INTEGRITY.search(text, max(0, match.start() - 40), match.start()):
            yield Finding(*match.span(), "high-entropy")


def _numbers(text: str) -> Iterator[Finding]:
    for match in _CARD.finditer(text):
        if (
            passes_luhn(match[0].replace(" ", "").replace("-", ""))
            or _CARD_GROUPS.fullmatch(match[0])
            or _CARD_WORD.search(text, max(0, match.start() - 60), match.start())
        ):
            yield Finding(*match.span(), "credit-card")
    for match in _IBAN.finditer(text):
        if _is_iban(match[0].replace(" ", "")):
            yield Finding(*match.span(), "iban")


def _is_iban(account: str) -> bool:
    """Check the two digits of ISO 13616: the number read in base 36, rotated by four, leaves 1 modulo 97."""
    rotated = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in rotated)) % 97 == 1


def _private_keys(text: str) -> Iterator[Finding]:
    """Yield whole key blocks; one that was cut off at its end or its beginning loses every line that is key material."""
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return
    position = 0
    while begin := _KEY_BEGIN.search(text, position):
        end = _KEY_END.search(text, begin.end())
        following = _KEY_BEGIN.search(text, begin.end())
        if end and not (following and following.start() < end.start()):
            position = end.end()
        else:
            position = _end_of_key_lines(text, begin.end())
        yield Finding(begin.start(), position, "private-key")
    if (tail := _KEY_END.search(text)) and not _KEY_BEGIN.search(text, 0, tail.start()):
        yield Finding(_start_of_key_lines(text, tail.start()), tail.end(), "private-key")


def _end_of_key_lines(text: str, start: int) -> int:
    end = start
    while end < len(text):
        line_end = text.find("\n", end + 1)
        line_end = len(text) if line_end < 0 else line_end
        line = text[end:line_end].lstrip("\n")
        if not _KEY_LINE.fullmatch(line) or (" " in line.strip() and ":" not in line):
            break
        end = line_end
    return end


def _start_of_key_lines(text: str, end: int) -> int:
    start = end
    while start > 0:
        line_start = text.rfind("\n", 0, start - 1) + 1
        if not re.fullmatch(r"\s*[A-Za-z0-9+/=]{16,200}\s*", text[line_start:start]):
            break
        start = line_start
    return start
