"""The mutations of a few lines, counted by hand."""

from __future__ import annotations

import ast

from tests.mutation.mutations import mutated, mutations


def test_the_mutations_of_a_function() -> None:
    source = "def f(a, b):\n    print(a)\n    if a < 1 and not b:\n        return True\n    return a\n"
    assert [(each.line, each.what) for each in mutations(source)] == [
        (2, "print(a) -> None"),
        (3, "a < 1 and (not b) -> a < 1 or not b"),
        (3, "a < 1 -> a <= 1"),
        (3, "not b -> not not b"),
        (3, "a < 1 -> a < 2"),
        (4, "return True -> return False"),
        (5, "return a -> return None"),
    ]


def test_what_no_test_can_notice_is_left_out() -> None:
    source = """
if TYPE_CHECKING:
    LIMIT = 1
__slots__ = tuple(range(2))
@dataclass(frozen=True)
class C:
    x: Literal[3]
    def __repr__(self) -> str:
        return "C"
def f(a: Literal[4]) -> Literal[5]:
    assert a, str(6)
    for b, c in zip(a, a, strict=True):
        pass
    return f"{a:>7}"
"""
    assert [(each.line, each.scope, each.what) for each in mutations(source)] == [
        (14, "f", "return f'{a:>7}' -> return None")
    ]


def test_the_lines_are_those_of_the_statement_or_of_its_head() -> None:
    source = "def f(a):\n    if (\n        a == 1\n    ):\n        g(\n            2,\n        )\n"
    assert {each.what: each.lines for each in mutations(source)} == {
        "a == 1 -> a != 1": range(2, 5),
        "a == 1 -> a == 2": range(2, 5),
        "g(2) -> None": range(5, 8),
        "g(2) -> g(3)": range(5, 8),
    }


def test_the_mutated_module_has_the_one_change() -> None:
    source = "def f(a):\n    return a + 1 if a else 0\n"
    changed = {each.what: ast.unparse(mutated(source, each.place)) for each in mutations(source)}
    assert changed["a + 1 -> a + 2"] == "def f(a):\n    return a + 2 if a else 0"
    assert len(set(changed.values())) == 3
