"""How much a `MemoryStore` has, how large that is on the disk, and how many texts are found embedded."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.layout import folder_of
from agent_memory.lifecycle.entry_types import type_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.lifecycle.facade.configs import MemoryStoreConfig
    from agent_memory.lifecycle.facade.keeping import Kept
    from agent_memory.lifecycle.facade.metrics import MemoryPerformanceMetrics

_MEGABYTE: Final = 1_000_000
_TRUTH: Final = frozenset({".yaml", ".jsonl"})


async def statistics_of(kept: Kept, config: MemoryStoreConfig, performance: MemoryPerformanceMetrics) -> dict[str, Any]:
    """Return the figures of `MemoryStore.get_memory_statistics`.

    `cache_hit_rate` is the share of the texts of memories that are found embedded already, None without an embedder;
    there is no cache of queries, so `query_cache_hit_rate` is None.
    """
    types = Counter(type_of(record) for record in await kept.memories())
    async for record in kept.others():
        types[type_of(record)] += 1
    folder = folder_of(kept.service.agent_id, kept.service.settings.storage_root).path
    sizes = await asyncio.to_thread(_sizes, folder)
    truth = sum(size for name, size in sizes.items() if _is_truth(name))
    return {
        "total_entries": types.total(),
        "entries_by_type": dict(types),
        "storage_size_mb": truth / _MEGABYTE,
        "index_size_mb": (sum(sizes.values()) - truth) / _MEGABYTE,
        "cache_hit_rate": await _embedded(kept),
        "query_cache_hit_rate": None,
        "large_files": sorted(name for name, size in sizes.items() if size > config.max_file_size_mb * _MEGABYTE),
        "performance_metrics": performance.get_summary(),
    }


async def _embedded(kept: Kept) -> float | None:
    status = kept.service.admin.embedding_status()
    total = await kept.service.admin.count()
    if status.get("status") != "ready":
        return None
    return 1.0 if not total else max(0.0, 1 - int(status.get("pending", 0)) / total)


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def _is_truth(name: str) -> bool:
    return name.endswith(tuple(_TRUTH)) or name.startswith("blobs")
