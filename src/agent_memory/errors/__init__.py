"""Every error this project raises on purpose, and nothing else.

    AgentMemoryError
    ├── ConfigurationError     a setting is wrong, or two settings contradict each other
    │   ├── IdentityError      no agent is active, or a switch needs the user's own words
    │   └── DeclarationError   what a workspace is declared to be is wrong, or was changed so that rows might not fit
    ├── ValidationError        an input breaks a rule of the data model (also a ValueError)
    │   ├── UnknownIdError     no memory has that id
    │   │   ├── ResourceNotFoundError   no resource has that id
    │   │   ├── CategoryNotFoundError   no topic has that name
    │   │   └── RowNotFoundError        no row, step or snapshot has that name
    │   ├── CategoryExistsError         a topic has that name already
    │   ├── NotAllowedError    this agent may not write this
    │   └── ConflictError      it was changed by somebody else since it was read
    │       └── LeaseError     somebody else has claimed it, or the claim has ended
    ├── StorageError           the journal or an index could not be read or written
    │   ├── BusyError          another process held the lock longer than we wait
    │   ├── ReadOnlyError      the folder, the disk or the journal's format forbids writing
    │   ├── DiskFullError      the disk, or a quota, has no room; what was stored before is safe
    │   └── VectorIndexError   an index of vectors is damaged or missing; words still find everything
    ├── UnsupportedError       what was asked for is nothing this storage can do
    ├── EmbeddingError         an embedder is missing, broken or answered nonsense
    ├── IngestionError         a turn or an event could not be taken in; nothing of it was stored
    ├── ExtractionError        nothing could be drawn from a resource or an episode, which is stored
    ├── SummarizationError     no summary could be made; what it was to cover is stored
    ├── ConsolidationError     a topic's page could not be made anew; the one before stays
    ├── RetrievalError         knowledge could not be searched
    ├── MigrationError         a move between backends failed and was rolled back
    └── SystemRefusedError     the operating system has no file, thread or memory left for what was to be done

Each carries `code`, a stable word for programs, and `recovery`, one sentence for people that says what to do next; and
`number`, such as MEM-009, with `recovery_suggestions`, all that may help.
The root is not called `MemoryError`: that name is Python's own.
"""

from agent_memory.errors.inputs import (
    CategoryExistsError,
    CategoryNotFoundError,
    ConfigurationError,
    ConflictError,
    DeclarationError,
    IdentityError,
    LeaseError,
    NotAllowedError,
    ResourceNotFoundError,
    RowNotFoundError,
    UnknownIdError,
    ValidationError,
)
from agent_memory.errors.root import (
    AgentMemoryError,
)
from agent_memory.errors.storage import (
    BusyError,
    DiskFullError,
    MigrationError,
    ReadOnlyError,
    StorageError,
    SystemRefusedError,
    UnsupportedError,
    VectorIndexError,
    refused_by_system,
    unknown_outcome,
)
from agent_memory.errors.work import (
    ConsolidationError,
    EmbeddingError,
    ExtractionError,
    IngestionError,
    RetrievalError,
    SummarizationError,
)

__all__ = [
    "AgentMemoryError",
    "BusyError",
    "CategoryExistsError",
    "CategoryNotFoundError",
    "ConfigurationError",
    "ConflictError",
    "ConsolidationError",
    "DeclarationError",
    "DiskFullError",
    "EmbeddingError",
    "ExtractionError",
    "IdentityError",
    "IngestionError",
    "LeaseError",
    "MigrationError",
    "NotAllowedError",
    "ReadOnlyError",
    "ResourceNotFoundError",
    "RetrievalError",
    "RowNotFoundError",
    "StorageError",
    "SummarizationError",
    "SystemRefusedError",
    "UnknownIdError",
    "UnsupportedError",
    "ValidationError",
    "VectorIndexError",
    "refused_by_system",
    "unknown_outcome",
]
