"""Identifiers in a text by their form: files, hosts, addresses, packages, issues, orders, versions. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.entities.mention import Mention

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.entities.mention import Kind

_LONG_RUN: Final = re.compile(r"\S{160,}")
"""Finds runs that are too long for an identifier, and cost time by their square."""
_HAN: Final = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""Letters of scripts without spaces: they end an identifier."""

_ENDINGS: Final = (
    "py|pyi|ipynb|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|astro|mdx|rs|go|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|rb|erb|"
    "php|pl|lua|dart|ex|exs|erl|hs|clj|scala|zig|jl|nim|gd|asm|sh|bash|zsh|fish|ps1|bat|cmd|md|rst|adoc|tex|bib|txt|"
    "rtf|toml|yaml|yml|json5?|jsonc|jsonl|ndjson|geojson|xml|xsd|xslt?|sql|graphql|gql|prisma|html?|css|scss|sass|less|"
    "jinja2?|j2|tmpl|ini|cfg|conf|properties|lock|lockb|csv|tsv|parquet|avro|arrow|npy|npz|pkl|onnx|gguf|safetensors|"
    "env|log|pem|crt|cer|csr|key|pub|p12|asc|sig|gpg|sha256|md5|proto|tf|tfvars|tfstate|hcl|gradle|cmake|mk|csproj|sln|"
    "plist|docx?|xlsx?|xlsm|pptx?|odt|ods|odp|pdf|epub|ics|eml|vcf|png|jpe?g|svg|gif|webp|ico|bmp|tiff?|psd|mp3|mp4|m4a|"
    "wav|flac|ogg|mov|avi|mkv|webm|srt|vtt|ttf|otf|woff2?|zip|tar\\.gz|tgz|tar|gz|bz2|xz|7z|rar|iso|dmg|exe|msi|dll|"
    "dylib|deb|rpm|apk|ipa|jar|war|whl|egg|wasm|db|sqlite3?|dump|bak|old|orig|diff|patch|tmp|pid|sock|har|pcap"
)
_BARE_FILES: Final = (
    "[Dd]ockerfile|[Mm]akefile|[Jj]ustfile|Jenkinsfile|Procfile|Gemfile|Rakefile|Vagrantfile|Brewfile|Caddyfile|Pipfile|"
    r"Podfile|CODEOWNERS|CHANGELOG|README|LICENSE|go\.mod|go\.sum|\.env(?:\.\w+)?|\.gitignore|\.dockerignore|\.bashrc|"
    r"\.bash_profile|\.zshrc|\.profile|\.npmrc|\.editorconfig|\.gitattributes|\.gitmodules|\.vimrc|\.tmux\.conf|"
    r"\.htaccess|\.python-version|\.tool-versions"
)
_ROOTS: Final = (
    "var|etc|usr|home|Users|opt|tmp|srv|mnt|media|root|bin|sbin|dev|proc|sys|run|boot|lib|lib64|Library|Applications|"
    "Volumes|System|private|nix"
)
_SEGMENT: Final = r"(?:[\w@+$-][\w.@+$-]*|\.[\w.@+$-]+|\([\w.$-]{1,40}\)[\w.$-]*|\[{1,2}[\w.$-]{1,40}\]{1,2}[\w.$-]*)"
"""One segment of a path. Brackets are parts of a route: `app/[id]/(group)/page.tsx`."""
_ADDRESS: Final = (
    r"(?:[^\s<>\"'`()\[\]{}|\\^\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]|\([^\s()]{0,80}\)|\[[^\s\[\]]{0,80}\]|"
    r"\{[^\s{}]{0,80}\})+(?<![.,;:!?*])"
)
_DOMAINS: Final = (
    "com|org|net|io|dev|app|ai|co|de|at|ch|fr|es|it|nl|uk|eu|us|jp|cn|edu|gov|me|sh|cloud|tech|xyz|info|biz|"
    "local|internal|lan|corp|intra|example|test|svc"
)
_STANDARDS: Final = r"(?:RFC|PEP|IEEE)[ -]?\d{1,5}|ISO(?:/IEC)?[ -]?\d{3,5}(?:-\d{1,2})?"
_NO_ISSUE_WORDS: Final = (
    "UTF SHA ISO RFC GPT COVID AES RSA HTTP MP MD IEEE H DDR USB PEP ECMA ES WIN X F A B C D E G T CUDA RTX GTX RS IPV "
    "TLS SSL CO PM AM Q DIN EN EC BASE CRC BM TOP FY KB MB GB V PHASE STEP PART ROOM CHAPTER SECTION TYPE CLASS"
)
_NO_ISSUES: Final = frozenset(_NO_ISSUE_WORDS.split())
_ID: Final = r"#?(?=[\w-]*\d)[A-Za-z0-9]+(?:[-/][A-Za-z0-9]+)*"
_NUMBER: Final = r"(?:\s*(?:numbers?|no\.?|nr\.?|id))?"


class _Form(NamedTuple):
    rule: str
    kind: Kind
    pattern: str
    confidence: float


_FORMS: Final = (
    _Form("address with an account", "host",
     r"\b(?:[a-z][a-z0-9+]{1,9})://(?:[\w.-]+(?::[^@\s/]*)?@)(?P<name>[\w.-]*\w)[^\s)>\]]*", 0.95),
    _Form("e-mail", "mail", r"(?P<name>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,10}\b)", 0.99),
    _Form("address", "url", rf"\b(?P<name>[a-z][a-z0-9+]{{1,9}}://{_ADDRESS})", 0.95),
    _Form("Windows path", "file",
     r"(?<!\w)(?P<name>[A-Za-z]:\\(?:[^\\/:*?\"<>|\n]{1,80}\\)*"
     rf"[^\\/:*?\"<>|\n]{{1,120}}?\.(?:{_ENDINGS}))(?!\w)", 0.95),
    _Form("Windows folder", "file", r"(?<!\w)(?P<name>[A-Za-z]:\\(?:[\w.-]+\\)*[\w.-]*\w)", 0.9),
    _Form("scoped package", "package",
     r"(?<![\w@/])(?P<name>@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*\w)(?![\w/]|\.\w)", 0.95),
    _Form("repository issue", "issue", r"(?<![\w/])(?P<name>[\w.-]+/[\w.-]+#\d+)\b", 0.95),
    _Form("file", "file",
     rf"(?<![\w/.@\\*\]}})-])@?(?P<name>(?:[A-Za-z]:)?(?:[~.]{{0,2}}[\\/])?(?:{_SEGMENT}[\\/])*"
     r"(?:(?<=/)(?:\([\w.$-]{1,40}\)|\[{1,2}[\w.$-]{1,40}\]{1,2}))?\.?"
     rf"(?:[\w+$-]|(?<=[)\]]\.))[\w@+$.-]*\.(?:{_ENDINGS}))(?![\w\\/-]|\.\w|\(|@)", 0.95),
    _Form("named file", "file", rf"(?<![\w/.$-])(?P<name>(?:[\w.-]+/)*(?:{_BARE_FILES}))(?![\w/=-]|\.\w)", 0.9),
    _Form("path", "file", rf"(?<![\w/.:<])(?P<name>(?:/(?={_ROOTS})[\w.@+-]*\w(?:/[\w.@+-]*\w)+|"
     r"(?:~|\.{1,2})(?:/[\w.@+-]*\w){2,}|~/[\w.-]*\w)/?)(?![\w/])", 0.8),
    _Form("numeric address", "host",
     r"(?<![\w.])(?P<name>(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?)(?::\d{1,5})?(?![\w.]\d)", 0.9),
    _Form("host", "host", r"(?<![\w.@/-])(?!(?:self|this|cls)\.)(?P<name>(?:[a-z0-9](?:[\w-]*[a-z0-9])?\.)+"
     rf"(?:{_DOMAINS}))(?::\d{{1,5}})?\b(?![.(]\w|-|\()", 0.9),
    _Form("local host", "host", r"\b(?P<name>localhost)(?::\d{1,5})?\b", 0.8),
    _Form("vulnerability", "issue", r"\b(?P<name>CVE-\d{4}-\d{4,7}|GHSA(?:-\w{4}){3})\b", 0.99),
    _Form("order number", "order", r"\b(?P<name>(?:ORD|ORDER|PO|INV|SO|RMA|BK|SHP)[-#]?\d[\w-]*\w)\b", 0.95),
    _Form("order", "order", rf"(?i)(?<![\w-])(?:orders?|invoices?|shipments?|bookings?|bestellung|rechnung){_NUMBER}"
     rf"(?:[ \t:]+|(?=#))(?P<name>(?=\S{{3}}){_ID})(?![\w%]|[.,]\d)", 0.9),
    _Form("ticket key", "issue", r"(?<![\w-])(?P<name>[A-Z][A-Z0-9]{1,9}-\d{1,6})(?![\w-])", 0.9),
    _Form("ticket", "issue", r"(?i)(?<![\w-])(?:issues?|bugs?|tickets?|PRs?|pull requests?|MRs?|merge requests?)"
     rf"{_NUMBER}[ \t:-]*(?P<name>#?\d{{1,7}})(?![\w%]|[.,]\d)", 0.85),
    _Form("required", "package", r"(?<![\w./-])(?P<name>[A-Za-z][\w.-]*\w)(?:\[[\w,-]+\])?(?=(?:==|@\^?)v?\d|"
     r"\s?(?:==|>=|~=|<=)\s?v?\d+\.\d)", 0.9),
    _Form("version", "version", r"(?<![\w./-])(?P<name>v\d+(?:\.\d+){1,3}(?:-[a-z0-9.]*\w)?)(?![\w/]|\.\d)", 0.9),
    _Form("standard", "concept", rf"\b(?P<name>{_STANDARDS})\b", 0.9),
)  # fmt: skip
_ACCOUNT: Final = _Form("account", "name", r"(?<![\w.`/#])(?P<name>@[A-Za-z][\w-]{1,38})\b(?!/|\.\w|\s*=)", 0.8)


def find_identifiers(text: str) -> Iterator[Mention]:
    """Yield identifiers by their form, surest forms first; they may overlap."""
    short = _LONG_RUN.sub(lambda match: " " * len(match[0]), text if text.isascii() else _HAN.sub(" ", text))
    for form in _FORMS:
        for match in _compile(form.pattern).finditer(short):
            name = match["name"]
            if form.rule != "ticket key" or name.partition("-")[0] not in _NO_ISSUES:
                yield Mention(name, form.kind, *match.span("name"), form.confidence, form.rule)


def find_accounts(text: str) -> Iterator[Mention]:
    """Yield accounts such as `@priya` in prose; code writes decorators so."""
    for match in _compile(_ACCOUNT.pattern).finditer(text):
        yield Mention(match["name"], _ACCOUNT.kind, *match.span("name"), _ACCOUNT.confidence, _ACCOUNT.rule)


def is_identifier(name: str) -> bool:
    """Return True if a whole name is an identifier by its form."""
    return any(mention.name == name for mention in find_identifiers(name))


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at first use: all take as long as 100 texts."""
    return re.compile(pattern)
