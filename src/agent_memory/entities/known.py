"""Names of software, services, firms and standards that agents meet every day, and words that are never a name."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.entities.mention import Kind

_SECTION: Final = re.compile(r"^\[(\w+) (\w+)\]\n([^\[]*)", re.MULTILINE)
_NO_NAMES: Final = """
    i monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays january february march april may june july august september october november december jan feb
    mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun today tomorrow yesterday
    tonight yes yeah no ok okay thanks thank hey hi hello wow great sure sorry well oh haha lol omg please also but
    so and or not never always god let lets good nice cool awesome absolutely definitely glad congrats
    congratulations sounds bye later anyway actually by am pm est pst cet utc gmt api apis url urls json yaml xml
    html css http https sql cli gui ui ux pr prs ci cd id ids uuid todo fixme note warning error debug info true
    false none null get post put delete patch head options cpu gpu ram ssd pdf csv ok faq eta asap fyi imo btw tbd
    mvp qa ceo cto cfo vp hr user users customer client assistant agent team q1 q2 q3 q4 mr mrs ms dr prof sir madam
    merry christmas xmas easter thanksgiving halloween new happy log_level debug dns tls ssl ssh vpn tcp udp ip ipv4
    ipv6 jwt oauth sso mfa 2fa otp rest crud orm sdk ide llm llms rag ai ml utf ascii regex env stdin stdout stderr
    tdd bdd sla slo kpi okr poc rfc adr mock mocks stub python-only the a an english german french spanish chinese
    japanese italian russian portuguese dutch turkish arabic korean
    vat uid uids gid pid csrf cors xss ssrf pos nit nits uri uris sdks ides guis clis llms gpus cpus etas slas slos
    crc gif gifs png jpg jpeg svg webp mp3 mp4 wav zip tar md txt toml ini tsv docx xlsx pptx epub bom eof dto dtos dao
    pojo mvc mvvm spa ssr ssg csr pwa cms crm erp seo cta kyc aml b2b b2c saas paas iaas cdn dba sre devops
    traceback medium high low markdown midnight csp acs r2 phase severity
    iso jsonl tldr ast e2e
    dev prod qa uat e2e tba wip lgtm rfp rfq nda kpi kpis okrs roi fte pto hq ngo usd eur gbp jpy chf vs etc ps nb
    http/https i18n l10n a11y iot ar vr xr nlp ocr tts stt asr cv gan nan inf lhs rhs dom bom ssl cert certs db dbs os
    nosql olap oltp etl elt acl acls cidr nat lan wan vlan wifi usb hdmi led lcd tv ac dc ev isbn sku skus gtin ean qr
    rgb rgba hex hsl cmyk dpi ppi fps hz khz mhz ghz kb mb gb tb kib mib gib ms ns px em rem vh vw ascii
    lr ga eol lts ttl rto rpo
    spi abi ffi ipc wal jit aot fifo lifo mvcc cte ctes ddl dml dsn uuids cuid ulid dag dags fsm bfs dfs lcp inp ttfb
    rps qps rtt mtu nic lvm bios uefi pragma
    british american swiss austrian polish swedish danish norwegian finnish greek indian mexican canadian brazilian
    irish scottish european african asian australian czech hungarian ukrainian hebrew hindi belgian
"""
NO_NAMES: Final = frozenset(_NO_NAMES.split())
"""Small. What is written large, or looks like a name, and names nobody: days, greetings, abbreviations of the trade."""


@dataclass(frozen=True, slots=True)
class Known:
    """Names that ship with the package, with their kinds.

    Attributes:
        free: Found in any writing.
        written: Found only as written here.
        opening: Those of `written` that may be a common word where they open a sentence.
        context: Small words that are a name only where the words around tell so.
        near: Those of `context` for which a word of place before them is enough.
        han: In Chinese characters, which stand without spaces.
    """

    free: Mapping[str, Kind]
    written: Mapping[str, Kind]
    opening: Mapping[str, Kind]
    context: Mapping[str, Kind]
    near: Mapping[str, Kind]
    han: Mapping[str, Kind]


@cache
def known() -> Known:
    """Return the names of `data/known.txt`, read when first asked for."""
    found: dict[str, dict[str, Kind]] = {field.name: {} for field in fields(Known)}
    text = (files(__package__) / "data" / "known.txt").read_text(encoding="utf-8")
    for kind, writing, names in _SECTION.findall(text):
        listed = (" ".join(name.split()) for name in names.split(","))
        found[writing].update((name, cast("Kind", kind)) for name in listed if name)
    found["written"].update(found["opening"])
    found["context"].update(found["near"])
    return Known(**found)
