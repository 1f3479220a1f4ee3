"""What could be changed in a module: every small mistake that its syntax allows."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

TARGETS = {
    "solver": ("methods/qp/*.py", "build/solve.py"),
    "search": ("search/*.py",),
    "symmetrize": ("build/symmetrize.py",),
    "duplicates": ("data/duplicates.py",),
    "grow": ("build/grow.py",),
    "connect": ("build/connect.py",),
    "update": ("build/update.py",),
    "resume": ("runtime/checkpoint.py", "build/shards.py"),
    "verify": ("tasks/verify/*.py",),
}
"""What is broken: names, and the modules of the package they stand for."""

COMPARISONS = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitXor: ("^", "|"),
}
OTHER_CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
OTHER_CALLS |= {"any": "all", "all": "any"}

# What is told to people, and how far a run is: nothing hangs on it but words.
TALK = {"note", "notes", "warn", "warnings", "progress", "advance", "done", "cast"}
TALK |= {"start_stage", "stage", "Protocol", "TypeVar", "ParameterError", "InputError"}
TALK |= {"OutputError", "ResourceError"}
WORDS = {"__repr__", "__str__"}
SIZES = {"row_slices"}
"""Calls whose arguments are sizes of blocks, on which no result depends."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    target: str
    path: str
    """Of the module, below the root."""
    line: int
    start: int
    stop: int
    """What is replaced, in bytes."""
    text: str
    inside: str
    """The function or class that it is in; nothing for the module itself."""
    compiled: bool
    """Whether it may change what the compiler sees."""
    lines: range
    """Of the statement that it is in; of a compound one, down to its body."""
    names: tuple[str, ...]
    """What a statement of the module itself settles: it is used somewhere else."""
    was: str
    now: str
    """The lines that change, without their indentation."""

    def applied(self, source: bytes) -> bytes:
        """Return the module with its change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is known by, wherever in its file it stands."""
        return self.path, self.inside, self.was, self.now


class _Finder(ast.NodeVisitor):
    """Collects changes: places of the text, and what to write there."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[tuple[int, int, int, str, str, bool, range, tuple]] = []
        self.inside: list[str] = []
        self.statement: ast.stmt | None = None
        self.lines = range(0)
        self.functions = 0
        self.compiled = [
            True
        ]  # what a module settles may be a constant of the compiler

    def visit(self, node: ast.AST) -> None:
        """Visit a node, and know in which statement it is."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before = self.statement, self.lines
        body = getattr(node, "body", None)
        last = node.end_lineno
        if isinstance(body, list):
            last = max(node.lineno, body[0].lineno - 1)
            if isinstance(node, ast.FunctionDef):
                last = node.end_lineno  # defaults are seen in all of it
        self.statement, self.lines = node, range(node.lineno, last + 1)
        super().visit(node)
        self.statement, self.lines = before

    def place(self, node: ast.AST, *, end: bool = False) -> int:
        if end:
            return self.starts[node.end_lineno - 1] + node.end_col_offset
        return self.starts[node.lineno - 1] + node.col_offset

    def written(self, node: ast.AST) -> str:
        return self.source[self.place(node) : self.place(node, end=True)].decode()

    def add(self, line: int, start: int, stop: int, text: str) -> None:
        where, settled = ".".join(self.inside), ()
        if not self.functions:
            targets = getattr(self.statement, "targets", None)
            targets = targets or [getattr(self.statement, "target", None)]
            settled = tuple(one.id for one in targets if isinstance(one, ast.Name))
        self.found.append(
            (line, start, stop, text, where, self.compiled[-1], self.lines, settled)
        )

    def replace(self, node: ast.AST, text: str) -> None:
        self.add(node.lineno, self.place(node), self.place(node, end=True), text)

    def operator(self, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """Replace what stands between two operands, whatever brackets there are."""
        start, stop = self.place(left, end=True), self.place(right)
        between = self.source[start:stop].decode()
        code = "".join(
            part.split("#")[0].ljust(len(part)) for part in between.splitlines(True)
        )
        at = code.find(old)
        if at >= 0:
            at += start
            line = self.source.count(b"\n", 0, at) + 1
            self.add(line, at, at + len(old), new)

    def negate(self, test: ast.AST) -> None:
        self.replace(test, f"not ({self.written(test)})")

    def drop(self, node: ast.AST) -> None:
        self.replace(node, "pass")

    # What is passed over

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "type_params"}:
                continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    self.visit(one)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.drop(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in WORDS:
            return
        names = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
        if "intrinsic" in names:  # in the compiler's own language
            return
        self.inside.append(node.name)
        self.compiled.append(bool(names & {"compiled", "inner"}))
        self.functions += 1
        self.generic_visit(node)
        self.functions -= 1
        self.inside.pop()
        self.compiled.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if "Protocol" in {getattr(one, "id", "") for one in node.bases}:
            return
        self.inside.append(node.name)
        self.compiled.append(False)
        for one in node.body:
            self.visit(one)
        self.inside.pop()
        self.compiled.pop()

    # Statements

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
            self.negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Call) and not _talks(value):
            self.drop(node)
            self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self.drop(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.drop(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        pass

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(one, ast.Subscript | ast.Attribute) for one in node.targets):
            self.drop(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            self.operator(node.target, node.value, old, new)
        self.drop(node)
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            old, others = COMPARISONS[type(op)]
            for new in others:
                self.operator(left, right, old, new)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC and not _is_text(node):
            self.operator(node.left, node.right, *ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.operator(left, right, *pair)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self.replace(node, f"({self.written(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _talks(node):
            return
        name = node.func
        said = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        if said in SIZES:
            return
        if said in OTHER_CALLS:
            stop = self.place(name, end=True)
            self.add(name.end_lineno, stop - len(said), stop, OTHER_CALLS[said])
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # zip's: nothing but a check of our own
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.replace(node, str(not value))
        elif isinstance(value, int):
            self.replace(node, str(value + 1))
            if value > 0:
                self.replace(node, str(value - 1))
        elif isinstance(value, float):
            self.replace(node, repr(value * 2 if value else 1.0))


def _talks(node: ast.Call) -> bool:
    name = node.func
    said = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    owner = getattr(getattr(name, "value", None), "attr", "")
    return said in TALK or owner in TALK


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in (node.left, node.right)
    )


def mutants_of(target: str, path: Path, root: Path = ROOT) -> list[Mutant]:
    """Return every mutant of a module, in the order of its text."""
    source = path.read_bytes()
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    made = []
    for line, start, stop, text, inside, compiled, lines, names in finder.found:
        begin = source.rfind(b"\n", 0, start) + 1
        end = source.find(b"\n", stop)
        was = source[begin:end].decode()
        now = (source[begin:start] + text.encode() + source[stop:end]).decode()
        made.append(
            Mutant(
                target,
                path.relative_to(root).as_posix(),
                line,
                start,
                stop,
                text,
                inside,
                compiled,
                lines,
                names,
                " ".join(was.split()),
                " ".join(now.split()),
            )
        )
    return sorted(made, key=lambda one: (one.start, one.stop, one.text))


def every(only: list[str] | None = None) -> dict[str, list[Mutant]]:
    """Return all mutants of all targets, or of some."""
    home = ROOT / "nnkgraph"
    return {
        target: [
            one
            for pattern in patterns
            for path in sorted(home.glob(pattern))
            for one in mutants_of(target, path)
        ]
        for target, patterns in TARGETS.items()
        if not only or target in only
    }


def _lot(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()


def drawn(count: int, seed: int, only: list[str] | None = None) -> list[Mutant]:
    """Draw mutants: as many of each target as it has of all, but ten at least."""
    found = every(only)
    total = sum(map(len, found.values()))
    least = min(10, count // len(found))
    spare = max(count - least * len(found), 0)
    chosen, seen = [], 0
    for some in found.values():
        before, seen = seen, seen + len(some)
        share = least + spare * seen // total - spare * before // total
        # By what they are, so that other changes of a module draw no others.
        chosen += sorted(some, key=lambda one: _lot(one, seed))[:share]
    return sorted(chosen, key=lambda one: (one.path, one.start, one.text))
