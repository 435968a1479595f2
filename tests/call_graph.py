"""The functions that a command can reach, by static analysis, and the errors that they raise.

A name in a function is looked up in its module and that module's imports. An attribute is a name of an
imported module, or a method of any reached class. Kinds of figures are imported by name at run time, so a
function that reaches their registry reaches all methods of their interface.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import shakedown

PACKAGE = Path(shakedown.__file__).parent
REGISTRY = "shakedown.experiments.figure_kinds"


@dataclass
class Unit:
    """A function, a method, a class or a constant."""

    module: str
    name: str
    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    """Local variables, which hide the module's names."""
    attributes: set[str] = field(default_factory=set)
    of_names: set[tuple[str, str]] = field(default_factory=set)
    """Attributes of a name: `module.function`."""
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    """Texts of the errors that it raises; for a constant, its own text."""

    def read(self, node: ast.AST) -> None:
        """Adds what a piece of source text mentions."""
        for one in ast.walk(node):
            if isinstance(one, ast.Name):
                (self.names if isinstance(one.ctx, ast.Load) else self.variables).add(one.id)
            elif isinstance(one, ast.Attribute):
                self.attributes.add(one.attr)
                if isinstance(one.value, ast.Name):
                    self.of_names.add((one.value.id, one.attr))
            elif isinstance(one, ast.ImportFrom):
                for what in one.names:
                    self.imports[what.asname or what.name] = (one.module or "", what.name)
            elif isinstance(one, ast.Import):
                self.imports |= {what.asname or what.name: (what.name, "") for what in one.names}
            elif isinstance(one, ast.Raise) and one.exc is not None:
                self.errors += texts(one.exc)


def texts(node: ast.AST) -> Iterator[str]:
    """The texts of an expression, values in them as an ellipsis."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
    else:
        for one in ast.iter_child_nodes(node):
            yield from texts(one)


@cache
def modules() -> dict[str, tuple[Unit, dict[str, Unit]]]:
    """Each module: what it imports, and its units."""
    found: dict[str, tuple[Unit, dict[str, Unit]]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("shakedown", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        own: tuple[Unit, dict[str, Unit]] = (Unit(name, ""), {})
        found[name] = own
        for node in ast.parse(path.read_text("utf-8")).body:
            for named, node_of_it in _named(node):
                unit = own[1].setdefault(named, Unit(name, named)) if named else own[0]
                unit.read(node_of_it)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
                    unit.errors += texts(node.value)
    return found


def _named(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """The parts of a statement with their units; decorators do not belong to a function."""
    if isinstance(node, ast.FunctionDef):
        for one in node.body:
            yield node.name, one
    elif isinstance(node, ast.ClassDef):
        for one in node.body:
            plain = isinstance(one, ast.FunctionDef) and not one.name.startswith("__")
            yield f"{node.name}.{one.name}" if plain else node.name, one
        for base in node.bases:
            yield node.name, base
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for one in ast.walk(target):
                if isinstance(one, ast.Name):
                    yield one.id, node
    else:
        yield "", node


def _found(name: str, unit: Unit, most: int = 5) -> Iterator[Unit]:
    """The unit that a name refers to, unless it is a module."""
    module, units = modules()[unit.module]
    imported = unit.imports.get(name) or module.imports.get(name)
    if name in units and name not in unit.imports:
        yield units[name]
    elif imported is not None and most and imported[0] in modules():
        yield from _found(imported[1], Unit(imported[0], ""), most - 1)


def _following(unit: Unit) -> Iterator[Unit]:
    """The units that a unit mentions."""
    for name in unit.names - (unit.variables if unit.name not in unit.variables else set()):
        yield from _found(name, unit)
    for name, attribute in unit.of_names:
        imported = unit.imports.get(name) or modules()[unit.module][0].imports.get(name)
        if imported is not None and (module := ".".join(filter(None, imported))) in modules():
            yield from _found(attribute, Unit(module, ""))
    if unit.module == REGISTRY and unit.name == "KINDS":
        yield from _kinds()


_KNOWN: dict[tuple[str, str], list[Unit]] = {}


def reached(start: Unit) -> list[Unit]:
    """A unit, and all that it can call."""
    seen = {(start.module, start.name): start}
    todo = [start]
    attributes: set[str] = set()
    while todo:
        unit = todo.pop()
        attributes |= unit.attributes
        if (unit.module, unit.name) not in _KNOWN:
            _KNOWN[unit.module, unit.name] = list(_following(unit))
        following = _KNOWN[unit.module, unit.name]
        if not todo:
            methods = [one for each in seen.values() for one in _methods(each)]
            following = following + [one for one in methods if one.name.partition(".")[2] in attributes]
        for one in following:
            if (one.module, one.name) not in seen:
                seen[one.module, one.name] = one
                todo.append(one)
    return list(seen.values())


@cache
def _by_class(module: str) -> dict[str, list[Unit]]:
    found: dict[str, list[Unit]] = {}
    for name, unit in modules()[module][1].items():
        found.setdefault(name.partition(".")[0], []).append(unit)
    return found


def _methods(unit: Unit) -> Iterator[Unit]:
    """The methods of a class."""
    for one in _by_class(unit.module).get(unit.name, ()):
        if "." in one.name:
            yield one


def _kinds() -> list[Unit]:
    interface = {name.rpartition(".")[2] for name in modules()[REGISTRY][1] if name.startswith("Kind.")} | {
        "TABLE",
        "job",
    }
    return [
        unit
        for module, (_, units) in modules().items()
        if module.startswith(f"{REGISTRY}.")
        for name, unit in units.items()
        if name in interface
    ]
