"""The mutations of a module, one changed place each: comparisons, constants, boolean operators, deleted
calls, returned values.

Left out is what no test of behaviour can notice: annotations, blocks under ``TYPE_CHECKING``, ``__slots__``
and ``__all__``, decorators (``frozen``, ``slots``, sizes of caches), messages of ``assert``, the widths in
format strings, ``zip(strict=...)``, ``__repr__``, and what runs only as a command
(``__name__ == "__main__"``). Strings are not mutated, so the words of messages are not; the values that a
message names are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CHANGED: Final = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Return, ast.Expr)
_NOT_RULES: Final = {"__slots__", "__all__"}
_WIDEST: Final = 100


class Mutation(NamedTuple):
    """One changed place.

    ``place`` is its number in ``ast.walk``. ``lines`` are those of the statement: if none of them runs, the
    mutation does not either. ``scope`` is the function or class it stands in. ``what`` says before and after.
    """

    place: int
    line: int
    lines: range
    scope: str
    what: str


def mutations(source: str) -> Iterator[Mutation]:
    """All mutations of a module, in the order of its lines."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for place, node in enumerate(ast.walk(tree)):
        if not isinstance(node, _CHANGED):
            continue
        above = list(_above(node, parents))
        if any(_is_no_rule(inner, outer) for inner, outer in above):
            continue
        shown = _shown(node, above)
        before = ast.unparse(shown)
        # the node is changed in place for a moment: the text of what stands around it says where it is
        saved = dict(vars(node))
        changed = _change(node)
        after = ast.unparse(shown)
        vars(node).update(saved)
        if changed and before != after:
            what = f"{_short(before)} -> {_short(after)}"
            found.append(Mutation(place, node.lineno, _lines(node, above), _scope(above), what))
    yield from sorted(found, key=lambda each: (each.line, each.place))


def mutated(source: str, place: int) -> ast.Module:
    """The module with the change at ``place``."""
    tree = ast.parse(source)
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == place)
    _change(node)
    return tree


def _change(node: ast.AST) -> bool:
    """Change the node in place, if there is a change of its kind. Lists are replaced, never written into."""
    match node:
        case ast.Compare():
            node.ops = [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        case ast.BoolOp():
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node.operand)
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int(number)):
            node.value = number + 1
        case ast.Return(value=ast.Constant(value=bool())):  # the constant itself is changed
            return False
        case ast.Return(value=ast.expr()) | ast.Expr(value=ast.Call()):
            node.value = ast.copy_location(ast.Constant(None), node)
        case _:
            return False
    return True


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The pairs (inner, outer) from the node up to the module."""
    while (outer := parents.get(node)) is not None:
        yield node, outer
        node = outer


def _is_no_rule(inner: ast.AST, outer: ast.AST) -> bool:  # noqa: PLR0911 - one answer per kind of node
    match outer:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return outer.name == "__repr__" or inner is outer.returns or inner in outer.decorator_list
        case ast.ClassDef():
            return inner in outer.decorator_list
        case ast.arg():
            return inner is outer.annotation
        case ast.AnnAssign():
            return inner is outer.annotation or _assigns_no_rule(outer)
        case ast.Assign():
            return _assigns_no_rule(outer)
        case ast.Assert():
            return inner is outer.msg
        case ast.FormattedValue():
            return inner is outer.format_spec
        case ast.keyword(arg="strict"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return inner in outer.body
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case _:
            return False


def _assigns_no_rule(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in _NOT_RULES
        case _:
            return False


def _shown(node: ast.AST, above: list[tuple[ast.AST, ast.AST]]) -> ast.AST:
    """Return the name of the place: a number alone does not, so the expression or the simple statement around
    it."""
    if not isinstance(node, ast.Constant):
        return node
    for _inner, outer in above:
        if isinstance(outer, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr, ast.Call)):
            return outer
        if isinstance(outer, (ast.Compare, ast.BinOp, ast.Subscript, ast.keyword)):
            return outer
        if isinstance(outer, (ast.stmt, ast.arguments, ast.pattern, ast.match_case)):
            break
    return node


def _lines(node: ast.expr | ast.stmt, above: list[tuple[ast.AST, ast.AST]]) -> range:
    """The lines of the simple statement, or of the head of the compound one."""
    own = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    for each in (node, *(outer for _inner, outer in above)):
        if not isinstance(each, ast.stmt):
            continue
        if isinstance(each, (ast.Match, ast.Try)):
            return own
        body = getattr(each, "body", None)
        last = (
            max(each.lineno, body[0].lineno - 1) if isinstance(body, list) else each.end_lineno or each.lineno
        )
        return range(each.lineno, max(last, own.stop - 1) + 1)
    return own


def _scope(above: list[tuple[ast.AST, ast.AST]]) -> str:
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return ".".join(reversed([outer.name for _inner, outer in above if isinstance(outer, named)])) or "module"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."
