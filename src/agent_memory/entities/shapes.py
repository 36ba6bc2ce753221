"""Names that are told by their form alone: files, hosts, packages, services, orders, tickets, accounts. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from agent_memory.entities.han import without_han
from agent_memory.entities.mention import Mention
from agent_memory.entities.tagger import word_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_memory.entities.mention import Kind

LONGEST: Final = 160
"""Characters in a row: a path or address is not longer; looking for its parts takes time by the square of them."""
_LONG_RUN: Final = re.compile(rf"\S{{{LONGEST},}}")

_ENDINGS: Final = (
    "py|pyi|ipynb|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|astro|mdx|rs|go|c|h|cc|cpp|hpp|cu|cs|java|kt|kts|swift|rb|erb|"
    "php|pl|lua|dart|ex|exs|erl|hs|clj|scala|zig|jl|nim|gd|tscn|tres|asm|sh|bash|zsh|fish|ps1|bat|cmd|vbs|md|rst|adoc|tex|"
    "bib|txt|rtf|toml|yaml|yml|json5?|jsonc|jsonl|ndjson|geojson|xml|xsd|xsl|xslt|wsdl|sql|graphql|gql|prisma|html?|xhtml|"
    "css|scss|sass|less|ejs|hbs|jinja2?|j2|tmpl|ini|cfg|conf|properties|lock|lockb|csv|tsv|parquet|avro|arrow|feather|"
    "h5|hdf5|npy|npz|pkl|onnx|gguf|safetensors|pth|env|log|pem|crt|cer|csr|key|pub|p12|pfx|jks|asc|sig|gpg|sha256|md5|"
    "proto|tf|tfvars|tfstate|hcl|gradle|sbt|cmake|mk|csproj|sln|gemspec|podspec|xcodeproj|xcworkspace|pbxproj|storyboard|"
    "xib|plist|entitlements|docx?|xlsx?|xlsm|pptx?|odt|ods|odp|pdf|epub|mobi|ics|eml|vcf|png|jpe?g|svg|gif|webp|ico|bmp|"
    "tiff?|psd|fig|mp3|mp4|m4a|m4v|m3u8?|wav|flac|ogg|aac|aiff?|mov|avi|mkv|webm|srt|vtt|ttf|otf|woff2?|zip|tar\\.gz|tgz|"
    "tar|gz|bz2|xz|7z|rar|iso|dmg|exe|msi|dll|dylib|deb|rpm|apk|ipa|jar|war|whl|egg|wasm|db|sqlite3?|rdb|dump|bak|old|"
    "orig|diff|patch|tmp|pid|sock|har|pcap|service|timer|socket|unity|prefab|blend|fbx|obj|stl|glb|gltf"
)
_BARE_FILES: Final = (
    "[Dd]ockerfile|[Mm]akefile|[Jj]ustfile|Jenkinsfile|Procfile|Gemfile|Rakefile|Vagrantfile|Brewfile|Caddyfile|Pipfile|"
    "[Pp]odfile|Fastfile|Appfile|Tiltfile|Berksfile|CODEOWNERS|CHANGELOG|README|LICENSE|AUTHORS|CONTRIBUTING|"
    r"go\.mod|go\.sum|\.env(?:\.\w+)?|\.gitignore|\.dockerignore|\.bashrc|\.bash_profile|\.zshrc|\.profile|\.npmrc|\.nvmrc|"
    r"\.editorconfig|\.gitattributes|\.gitmodules|\.netrc|\.vimrc|\.tmux\.conf|\.prettierrc|\.eslintrc|\.babelrc|"
    r"\.htaccess|\.python-version|\.tool-versions|\.cursorrules"
)
_FOLDERS: Final = (
    "src|docs?|apps?|tests?|specs?|lib|libs|packages?|config|configs|scripts|tools|infra|deploy|data|public|static|assets|"
    r"components|pages|modules|server|client|backend|frontend|services|internal|cmd|pkg|migrations|templates|examples|"
    r"benchmarks|notebooks|fixtures|schemas|\.github|\.vscode|\.claude"
)
_ROOTS: Final = (
    "var|etc|usr|home|Users|opt|tmp|srv|mnt|media|root|bin|sbin|dev|proc|sys|run|boot|lib|lib64|Library|Applications|"
    "Volumes|System|private|nix|data|app|code|repo|repos|project|projects|workspace|workspaces|work|src|docs|tests|"
    "builds|snap|storage|sdcard|models|logs"
)
_SEGMENT: Final = r"(?:[\w@+$-][\w.@+$-]*|\.[\w.@+$-]+|\([\w.$-]{1,40}\)[\w.$-]*|\[{1,2}[\w.$-]{1,40}\]{1,2}[\w.$-]*)"
"""Of a path; brackets stand for parts of a route: `app/[id]/(group)/page.tsx`."""
_ADDRESS: Final = (
    r"(?:[^\s<>\"'`()\[\]{}|\\^\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]|\([^\s()]{0,80}\)|\[[^\s\[\]]{0,80}\]|"
    r"\{[^\s{}]{0,80}\})+(?<![.,;:!?*])"
)
_DOMAINS: Final = (
    "com|org|net|io|dev|app|ai|co|de|at|ch|fr|es|it|nl|uk|eu|us|jp|cn|edu|gov|me|sh|cloud|tech|xyz|info|biz|"
    "local|internal|lan|corp|intra|example|test|svc"
)
_MACHINES: Final = (
    "db|web|app|srv|server|node|host|prod|staging|stage|dev|build|ci|gpu|cache|redis|pg|postgres|mysql|kafka|k8s|vm|"
    "edge|proxy|lb|nas|bastion|jump|runner|backup|mail|dns|vpn|worker|api|etl|ml|nfs|log|monitor|master|replica|mirror"
)
_SERVICES: Final = (
    "service|svc|api|worker|gateway|server|proxy|frontend|backend|queue|scheduler|consumer|producer|daemon|operator|"
    "controller|cron|bot|ui|db|store|cache|indexer|exporter|processor|handler|engine|hub|pipeline|router|runner|"
    "dispatcher|ingest|ingestor|importer|listener|agent|registry|portal|dashboard|cluster|topic|job|lambda|web|sync"
)
_NO_SERVICES_WORDS: Final = """
    co-worker self-service full-service customer-service room-service in-service out-of-service re-sync multi-agent
    sub-agent single-agent user-agent web-service non-service inter-service cross-service per-service half-hub rest-
    api web-api public-api open-api multi-cluster cross-cluster per-job on-job day-job off-topic on-topic hot-topic
    vector-store app-store drug-store in-store message-queue job-queue task-queue dead-letter-queue multi-db no-db
    web-server file-server http-server mail-server api-server ci-pipeline data-pipeline ci-runner search-engine
    real-time-sync two-way-sync code-agent ai-agent coding-agent event-handler error-handler reverse-proxy api-
    gateway in-cache read-cache write-cache double-agent deep-web world-wide-web cron-job
"""
_NO_SERVICES: Final = frozenset(_NO_SERVICES_WORDS.split())
_PREFIXES: Final = frozenset(
    {"cross", "multi", "single", "inter", "non", "per", "co", "self", "sub", "anti", "pre", "in"}
)
_NO_ISSUES_WORDS: Final = """
    UTF SHA ISO RFC GPT COVID AES RSA HTTP MP MD IEEE H DDR USB PEP ECMA ES WIN X F A B C D E G T CUDA RTX GTX RS
    IPV TLS SSL CO PM AM Q DIN EN EC BASE CRC BM TOP FY KB MB GB V PHASE STEP PART ROOM CHAPTER SECTION TYPE CLASS
"""
_NO_ISSUES: Final = frozenset(_NO_ISSUES_WORDS.split())
_NUMBERED: Final = (
    r"orders?|invoices?|shipments?|purchase orders?|P\.?O\.?|bo"
    r"okings?|reservations?|parcels?|refunds?|returns?(?!\s+[1-5]\d\d\b)|quotes?|"
    r"bestellung(?:en)?|auftrag|auftr\u00e4ge|rechnung(?:en)?|lieferung|sendung|pedidos?|factura|reserva|commandes?|"
    r"facture|r\u00e9servation|\u8ba2\u5355|\u8a02\u55ae|\u6ce8\u6587"
)
_COUNTED: Final = r"(?:\s*(?:numbers?|no\.?|nr\.?|id|ref\.?|nummer|n\u00famero|n\u00b0|\u53f7|\u865f|\u756a\u53f7))?"
_TICKETS: Final = (
    r"issues?|bugs?|tickets?|PRs?|pull requests?|MRs?|merge requests?|GH|incidents?|cases?|defects?|vorgang|"
    r"incidencias?"
)
_INSTALL: Final = (
    r"(?:pip3?|uv pip|uv|npm|pnpm|yarn|bun|cargo|brew|gem|poetry|conda|apt|apt-get|dnf|go)[ \t]+"
    r"(?:install|add|get|i)(?:[ \t]+-[\w-]+)*[ \t]+"
    r"(?!(?:is|was|were|has|had|and|or|then|but|if|when|to|in|on|for|from|with|took|takes|fails|failed|works|worked|hangs|"
    r"does|did|again|still|here|there)\b)"
)
"""Not before what goes on with the sentence: "npm install took ten minutes"."""
_ID: Final = r"#?(?=[\w-]*\d)[A-Za-z0-9]+(?:[-/][A-Za-z0-9]+)*"
_TECHNICAL: Final = r"(?<![\w./@-])(?P<name>[a-z][a-z0-9]*(?:[-_](?=[a-z0-9]*)[a-z0-9]+)+)(?![\w/(=-]|\.\w)"
_HANDLE: Final = r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*"
_DID: Final = (
    r"commented|opened this|closed this|merged|approved(?: these)?|requested (?:a review|changes)|reviewed|"
    r"force-pushed|assigned|self-assigned|pushed|referenced this|added \d+ commits?"
)
"""What a page of a forge says of who did it, whose handle stands before it."""
_FREQUENT: Final = 4
"""Power of ten from which on a word is an everyday one."""
_KEPT: Final = "namespace|realm|bucket|queue|cluster|topic|service|worker|environment|instance"
_CALLED: Final[tuple[tuple[Kind, str], ...]] = (
    (
        "service",
        "service|microservice|worker|job|queue|bucket|cluster|namespace|realm|function|pipeline|topic|deployment",
    ),
    ("host", "host|server|node|machine|VM|box"),
    ("package", "package|library|module|crate|gem|plugin"),
    ("product", "repo|repository|project|app"),
)


_ALONE: Final = frozenset({"service", "package"})
"""Kinds whose surroundings may name something else: npm beside a package, one more service in the sentence."""


@dataclass(frozen=True, slots=True)
class _Shape:
    rule: str
    kind: Kind
    pattern: str
    confidence: float
    accepts: Callable[[str], bool] = bool


def _shape(rule: str, kind: Kind, pattern: str, confidence: float, accepts: Callable[[str], bool] = bool) -> _Shape:
    return _Shape(rule, kind, pattern, confidence, accepts)


def _is_service(name: str) -> bool:
    return name not in _NO_SERVICES and name.partition("-")[0] not in _PREFIXES


def is_standard(name: str) -> bool:
    """Whether a name is a standard, a format or a size: UTF-8, SHA-256."""
    return re.fullmatch(r"[A-Z]+-\d+", name) is not None and name.partition("-")[0] in _NO_ISSUES


def _is_issue(name: str) -> bool:
    return not is_standard(name)


def _is_rare_service(name: str) -> bool:
    """Whether it is no compound of everyday words: `read-only`, `up-to-date`."""
    often = word_lists().frequency
    return name not in _NO_SERVICES and any(often.get(part, 0) < _FREQUENT for part in re.split(r"[-_]", name))


def _is_unknown(name: str) -> bool:
    return name not in word_lists().frequency


def _is_folder(path: str) -> bool:
    """Whether a path is not just words with strokes between: `adding/sorting/moving`."""
    first, *rest = path.split("/")
    often = word_lists().frequency
    is_plain = all(often.get(part, 0) >= _FREQUENT - 1 for part in (first, *rest))
    return not is_plain or re.fullmatch(_FOLDERS, first) is not None


def _is_machine(name: str) -> bool:
    return not name.startswith(("self.", "this.", "cls."))


def _is_rare(name: str) -> bool:
    return name not in word_lists().frequency and name not in _NO_SERVICES


def _is_route(path: str) -> bool:
    return re.match(r"/(?:api|v\d|graphql|rest|health|oauth|login|auth)\b", path) is not None


def _is_path(path: str) -> bool:
    return not _is_route(path)


_SHAPES: Final = (
    _shape("address with an account", "host",
           r"\b(?:[a-z][a-z0-9+]{1,9})://(?:[\w.-]+(?::[^@\s/]*)?@)(?P<name>[\w.-]*\w)[^\s)>\]]*", 0.95),
    _shape("e-mail", "other", r"(?P<name>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,10}\b)", 0.99),
    _shape("address", "host", rf"\b(?P<name>[a-z][a-z0-9+]{{1,9}}://{_ADDRESS})", 0.95),
    _shape("Windows path", "file",
           r"(?<!\w)(?P<name>[A-Za-z]:\\(?:[^\\/:*?\"<>|\n]{1,80}\\)*"
           rf"[^\\/:*?\"<>|\n]{{1,120}}?\.(?:{_ENDINGS}))(?!\w)", 0.95),
    _shape("Windows folder", "file", r"(?<!\w)(?P<name>[A-Za-z]:\\(?:[\w.-]+\\)*[\w.-]*\w\\?)", 0.9),
    _shape("named for an agent", "file",
           rf"(?<![\w@.])@(?P<name>/?(?:{_SEGMENT}/)+(?:[\w@+$-][\w.@+$-]*)?\.(?:{_ENDINGS}))(?![\w/-]|\.\w)", 0.95),
    _shape("site", "product", r"(?<![\w./@-])(?P<name>[A-Z]\w+\.(?:io|ai|com|net|org))(?![\w/-]|\.\w|\()", 0.8),
    _shape("folder for an agent", "file", rf"(?<![\w@/])@(?P<name>(?:{_FOLDERS})/(?:[\w.-]+/)*(?:[\w.-]*\w)?)", 0.9),
    _shape("scoped package", "package", r"(?<![\w@/])(?P<name>@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*)", 0.95),
    _shape("repository issue", "issue", r"(?<![\w/])(?P<name>[\w.-]+/[\w.-]+#\d+)\b", 0.95),
    _shape("file", "file",
           rf"(?<![\w/.@\\*\]}})-])@?(?P<name>(?:[A-Za-z]:)?(?:[~.]{{0,2}}[\\/])?(?:{_SEGMENT}[\\/])*"
           r"(?:(?<=/)(?:\([\w.$-]{1,40}\)|\[{1,2}[\w.$-]{1,40}\]{1,2}))?\.?"
           rf"(?:[\w+$-]|(?<=[)\]]\.))[\w@+$.-]*\.(?:{_ENDINGS}))(?![\w\\/-]|\.\w|\(|@)", 0.95),
    _shape("named file", "file", rf"(?<![\w/.$-])(?P<name>(?:[\w.-]+/)*(?:{_BARE_FILES}))(?![\w/=-]|\.\w)", 0.9),
    _shape("path", "file", rf"(?<![\w/.:<])(?P<name>(?:/(?={_ROOTS})[\w.@+-]*\w(?:/[\w.@+-]*\w)+|"
           r"(?:~|\.{1,2})(?:/[\w.@+-]*\w){2,}|~/[\w.-]*\w)/?)(?![\w/])", 0.8,
           _is_path),
    _shape("folder within", "file", rf"\b(?:in|under|to|into|from|inside|at)\s+[`'\"]?@?(?P<name>(?:{_FOLDERS})"
           r"(?:/[\w.-]*\w)+/?)(?![\w/])", 0.85),
    _shape("called folder", "file",
           r"\b(?i:folder(?:ze|u)?|directory|katalogu?|dossier|carpeta|ordner|cartella)\s+"
           rf"[`'\"]?(?P<name>(?:{_FOLDERS})\b/?)(?![\w./-])", 0.8),
    _shape("named folder", "file", r"[`'\"](?P<name>[\w.-]+/?)[`'\"]\s+(?:folder|directory)\b", 0.8),
    _shape("folder", "file", r"(?<![\w/.:<-])(?P<name>(?:[a-z_.][\w.-]*"
           r"/){2,}[\w.-]*\w|(?:[a-z_.][\w.-]*/)+(?=[\s,.;:)`'\"]|$))", 0.8, _is_folder),
    _shape("numeric address", "host", r"(?<![\w.])(?P<name>(?:\d{1,3}\.){3}\d{1,3}"
           r"(?:/\d{1,2})?)(?::\d{1,5})?(?![\w.]\d)", 0.9),
    _shape("host", "host", rf"(?<![\w.@/-])(?P<name>(?:[a-z0-9](?:[\w-]*[a-z0-9])?\.)+(?:{_DOMAINS}))(?::\d{{1,5}})?\b"
           r"(?![.(]\w|-|\()", 0.9, _is_machine),
    _shape("local host", "host", r"\b(?P<name>localhost)(?::\d{1,5})?\b", 0.8),
    _shape("vulnerability", "issue", r"\b(?P<name>CVE-\d{4}-\d{4,7}|GHSA(?:-\w{4}){3})\b", 0.99),
    _shape("order number", "order", r"\b(?P<name>(?:ORD|ORDER|PO|INV|SO|RMA|BK|SHP)[-#]?\d[\w-]*\w)\b", 0.95),
    _shape("order", "order", rf"(?i)\b(?:{_NUMBERED}){_COUNTED}[ \t:]*(?P<name>{_ID})(?![\w%]|[.,]\d)", 0.9,
           lambda name: len(name) > 2),  # noqa: PLR2004 - "order 12 cakes"
    _shape("order in Han", "order", r"(?:\u8ba2\u5355|\u8a02\u55ae|\u6ce8\u6587)(?:\u53f7|\u865f|\u756a\u53f7)?"
           rf"[\s:\uff1a]*(?P<name>{_ID})", 0.9),
    _shape("ticket key", "issue", r"(?<![\w-])(?P<name>[A-Z][A-Z0-9]{1,9}-\d{1,6})(?![\w-])", 0.9, _is_issue),
    _shape("ticket", "issue", rf"(?i)\b(?:{_TICKETS}){_COUNTED}[ \t:-]*(?P<name>#?\d{{1,7}})(?![\w%]|[.,]\d)", 0.85),
    _shape("numbered", "issue", r"(?<![\w#&/])(?P<name>#\d{2,5})\b", 0.7),
    _shape("installed", "package", _INSTALL + r"(?P<name>@?[A-Za-z][\w./-]*\w)", 0.95),
    _shape("required", "package", r"(?<![\w./-])(?P<name>[A-Za-z][\w.-]*\w)(?:\["
           r"[\w,-]+\])?(?=(?:==|@\^?)v?\d|\s?(?:==|>=|~=|<=)\s?v?\d+\.\d)", 0.9),
    _shape("versioned", "package", r"(?<![\w./@-])(?P<name>[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)"
           r"(?=\s+(?:v\d|\d+\.\d+\.\d))", 0.8, _is_rare),
    _shape("machine", "host", r"(?<![\w./@-])(?P<name>"
           r"(?=[a-z0-9]++(?:-[a-z0-9]++)*+(?:(?<=\d)|(?<=\d[a-z]))(?![\w/-]|\.\w))"
           rf"(?:[a-z0-9]+-)*?(?:{_MACHINES})(?=[a-z-]*\d)[a-z0-9-]*+)", 0.85, lambda name: "-" in name),
    _shape("service", "service", rf"(?<![\w./@-])(?P<name>[a-z][a-z0-9]*(?:-["
           rf"a-z0-9]+)*-(?:{_SERVICES}))(?![\w/-]|\.\w)", 0.85,
           _is_service),
    _shape("said to be", "service", rf"(?i:\b(?:{_KEPT})s?\b)[^.;\n]{{0,60}}?\b(?:is|are|was|called|named|to|into|from)"
           rf"\s+[`'\"\u201c]?{_TECHNICAL}", 0.8, _is_rare_service),
    _shape("the other", "service", rf"(?i:\b(?:{_KEPT})\b)[^.;\n]{{0,60}},\s+the\s+(?:one|other)(?:\s+for\s+\w+)?\s+"
           rf"(?:is\s+)?{_TECHNICAL}", 0.8, _is_rare_service),
    *(_shape(f"called {nouns.partition('|')[0]}", kind, rf"\b(?:{nouns})\s+[`'\"\u201c]?{_TECHNICAL}", 0.85,
             _is_service)
      for kind, nouns in _CALLED),
    *(_shape(f"named {nouns.partition('|')[0]}", kind, rf"{_TECHNICAL}[`'\"\u201d]?\s+(?:{nouns})s?\b", 0.85,
             _is_service)
      for kind, nouns in _CALLED),
    *(_shape(f"is {nouns.partition('|')[0]}", kind, rf"\b(?:the|our|this)\s+(?:{nouns})\s+(?:is|was|will be)\s+"
             rf"(?:(?:called|named)\s+)?[`'\"\u201c]?{_TECHNICAL}", 0.8, _is_rare_service)
      for kind, nouns in _CALLED),
    *(_shape(f"with the name {nouns.partition('|')[0]}", kind, rf"\b(?:{nouns})\s+(?:(?:is|was)\s+)?(?:called|named)\s+"
             r"[`'\"\u201c]?(?P<name>[a-z][a-z0-9_-]{2,30})(?![\w/(=.-]\w)", 0.8, _is_rare)
      for kind, nouns in _CALLED),
    _shape("rare library", "package",
           r"(?<![\w./@-])(?P<name>[a-z][a-z0-9]{3,24})\s+(?:library|framework|crate|gem|ORM|SDK|CLI)\b", 0.75,
           _is_unknown),
    _shape("runtime", "product", r"\b(?P<name>Node)(?=\s+v?\d)", 0.9),
    _shape("library", "package", r"(?<![\w./@-])(?P<name>lib[a-z]{2,20}\d{0,3}(?:-dev|-sys)?)(?![\w/(=-]|\.\w)", 0.75,
           _is_unknown),
    _shape("image", "product", r"(?i:\bimage|\bFROM|\bdocker (?:pull|run))[:=]?[ \t]+(?P<name>[a-z][a-z0-9_-]{1,40})"
           r"(?=:[\w.-]*\d|:latest\b)", 0.85),
    _shape("repository", "product", r"(?:\bgh repo \w+(?:[ \t]+-[\w-]+)*[ \t]+|\b[Rr]epo(?:sitory)?:\s+)"
           r"(?P<name>[\w.-]+/[\w.-]*\w|[A-Za-z][\w.]*(?:-[\w.]+)+)(?![\w/])", 0.85),
    _shape("who did it", "person", rf"(?m)^[ \t>*-]*@?(?P<name>{_HANDLE})[ \t]+(?:{_DID})\b", 0.8, _is_unknown),
    _shape("who is asked", "person",
           r"\b(?:[Aa]sk|[Pp]ing|cc|CC|(?:assigned to|(?:reviewed|opened|authored|merged) by))"
           rf"[ \t]+@?(?P<name>{_HANDLE})(?![\w/(=.-]\w|-)", 0.75, _is_unknown),
    _shape("standard", "concept",
           r"\b(?P<name>(?:RFC|PEP|IEEE)[ -]?\d{1,5}|ISO(?:/IEC)?[ -]?\d{3,5}(?:-\d{1,2})?)\b", 0.9),
    _shape("account", "person", r"(?<![\w.`/#])(?P<name>@[A-Za-z][\w-]{1,38})\b(?!/|\.\w|\s*=)", 0.8),
)  # fmt: skip


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile when first needed: all of them take as long as reading a hundred texts."""
    return re.compile(pattern)


def shapes_in(text: str) -> list[tuple[Mention, int, int]]:
    """Return what is told by form, the surest first, each with where the whole of what told it begins and ends."""
    looked_at = _LONG_RUN.sub(lambda match: " " * len(match[0]), text)
    apart = without_han(looked_at)
    found = list(_found(apart))
    if apart == looked_at:
        return found
    found = [each for each in found if each[0].rule != "account" or not _is_amid_han(looked_at, each[0])]
    return [*found, *_found(looked_at)]


def _is_amid_han(text: str, mention: Mention) -> bool:
    """Whether what would be an account has letters without spaces beside it: a variable of a program is written so."""
    around = text[max(0, mention.start - 1) : mention.start], text[mention.end : mention.end + 1]
    return any(each.isalpha() for each in around)


def _found(text: str) -> Iterator[tuple[Mention, int, int]]:
    for shape in _SHAPES:
        for match in _compiled(shape.pattern).finditer(text):
            name = match["name"]
            if shape.accepts(name):
                start, end = match.span("name")
                used = (start, end) if shape.kind in _ALONE else match.span()
                yield Mention(name, shape.kind, start, end, shape.confidence, shape.rule), *used
