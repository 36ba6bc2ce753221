"""What counts as a usable answer of an embedder."""

import numpy as np

from agent_memory.embeddings.protocol import EmbedderIdentity, checked_matrix
from agent_memory.errors import EmbeddingError
from tests.rows import check_rows
from tests.support import raises


def _check(rows: list[list[float]], count: int = 2) -> None:
    checked_matrix(rows, count=count, dimension=2, source="model m")


def test_rows_come_back_with_unit_length() -> None:
    matrix = checked_matrix([[3.0, 4.0], [0.0, 2.0]], count=2, dimension=2, source="m")
    assert matrix.dtype == np.float32
    assert np.allclose(matrix, [[0.6, 0.8], [0.0, 1.0]])


@check_rows(
    ("rows", "code"),
    [
        ([[1.0, 0.0]], "vector_count"),
        ([[1.0, 0.0]] * 3, "vector_count"),
        ([[1.0, 0.0], [1.0, 0.0, 0.0]], "vector_shape"),
        ([[1.0, 0.0, 0.0]] * 2, "vector_dimension"),
        ([[1.0, 0.0], [float("nan"), 0.0]], "vector_not_finite"),
        ([[1.0, 0.0], [float("inf"), 0.0]], "vector_not_finite"),
        ([[1.0, 0.0], [0.0, 0.0]], "vector_not_finite"),
        ([["a", "b"], ["c", "d"]], "vector_shape"),
        ([1.0, 2.0], "vector_dimension"),
    ],
)
def test_anything_else_is_refused_with_its_reason(rows: list[list[float]], code: str) -> None:
    with raises(EmbeddingError, code) as caught:
        _check(rows)
    assert "model m" in str(caught.value)


def test_no_texts_make_an_empty_matrix() -> None:
    assert checked_matrix([], count=0, dimension=5, source="m").shape == (0, 5)


def test_identities_differ_by_weights() -> None:
    assert str(EmbedderIdentity("local", "m", 3, "a" * 64)) != str(EmbedderIdentity("local", "m", 3, "b" * 64))
