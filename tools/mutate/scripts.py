"""Plants faults in Python scripts, and runs their unit tests.

A script needs no build: each fault is planted alone, in a copy of the repository.
"""

import ast
import concurrent.futures
import pathlib
import queue
import subprocess
import sys
import time

import operators
import runner
import tree as trees

COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=",
               ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not",
               ast.IsNot: "is"}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+"}
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
SLOWDOWN_MAX = 3  # the time limit of the tests, as a multiple of their usual time
DROPPABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)


class Finder(ast.NodeVisitor):
    """Finds the mutants of one script."""

    def __init__(self, path, code):
        self._path = path
        self._code = code.encode()
        self._starts = [0]
        for line in self._code.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._mutants = {}
        self.visit(ast.parse(code))

    def mutants(self):
        """Returns the mutants in the order of the file, each once."""
        return operators.numbered(self._mutants.values())

    def _range(self, node):
        return (self._starts[node.lineno - 1] + node.col_offset,
                self._starts[node.end_lineno - 1] + node.end_col_offset)

    def _text(self, node):
        begin, end = self._range(node)
        return self._code[begin:end].decode()

    def _add(self, operator, node, after):
        begin, end = self._range(node)
        before = self._code[begin:end].decode()
        if before != after:
            mutant = operators.Mutant(self._path, begin, end, node.lineno, operator, before, after,
                                      "")
            self._mutants.setdefault((begin, end, after), mutant)

    def generic_visit(self, node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                self._visit_block(block)
        super().generic_visit(node)

    def _visit_block(self, block):
        for each in block:
            if isinstance(each, DROPPABLE) and not is_text(each):
                self._add("dropped statement", each, "pass")
            if isinstance(each, ast.If) and not each.orelse and isinstance(each.body[0], LEAVES):
                self._add("error check", each, "pass")

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            other = COMPARISONS[type(node.ops[0])]
            left, right = self._text(node.left), self._text(node.comparators[0])
            self._add("comparison", node, f"({left} {other} {right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in node.values:
            kept = [self._text(each) for each in node.values if each is not left_out]
            self._add("condition", node, f"({word.join(kept)})")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        other = ARITHMETIC.get(type(node.op))
        if other:
            self._add("arithmetic", node,
                      f"({self._text(node.left)} {other} {self._text(node.right)})")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self._add("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self._add("constant", node, str(node.value + 1))

    def visit_If(self, node):
        self._negate(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_If

    def _negate(self, test):
        if not isinstance(test, (ast.Compare, ast.Constant)):
            self._add("negation", test, f"(not ({self._text(test)}))")

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in operators.EXTREMA:
            self._add("extremum", node.func, operators.EXTREMA[node.func.id])
        else:
            for first, second in zip(node.args, node.args[1:]):
                if type(first) is type(second) and isinstance(first, (ast.Name, ast.Attribute)):
                    self._add("arguments", node, self._swapped(node, first, second))
        self.generic_visit(node)

    def _swapped(self, whole, first, second):
        begin, end = self._range(whole)
        (first_begin, first_end), (second_begin, second_end) = map(self._range, (first, second))
        parts = (self._code[begin:first_begin], self._code[second_begin:second_end],
                 self._code[first_end:second_begin], self._code[first_begin:first_end],
                 self._code[second_end:end])
        return b"".join(parts).decode()


def is_text(statement):
    """True for a string that stands as a statement, such as a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def plant(code, mutant):
    """Returns the code (bytes) with this mutant."""
    return code[:mutant.begin] + mutant.after.encode() + code[mutant.end:]


class Scripts:
    """The copies of the repository in which the unit tests of a folder of scripts run, one for each
    job."""

    def __init__(self, root, folder, jobs):
        self._root = pathlib.Path(root)
        self._copies = queue.Queue()
        self._seconds = {}  # usual time of each file of tests
        self._jobs = jobs
        for number in range(jobs):
            tree = trees.Tree(root, pathlib.Path(folder) / f"scripts-{number}", jobs)
            tree.write({})
            subprocess.run(["git", "init", "-q", str(tree.folder)], check=True)
            self._copies.put(tree.folder)

    def judge(self, folder, mutants):
        """Runs the tests of a folder. Yields (mutant, verdict)."""
        for path in sorted((self._root / folder).glob("*_test.py")):
            begun = time.monotonic()
            how = self._fails(folder, path.name, 600)
            if how:
                raise trees.BuildFailed(f"{path.name} fails without a mutant: {how}")
            self._seconds[path.name] = time.monotonic() - begun
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            waiting = {pool.submit(self._judge, folder, each): each for each in mutants}
            for future in concurrent.futures.as_completed(waiting):
                yield waiting[future], future.result()

    def _judge(self, folder, mutant):
        """Runs the files of tests, the fastest first, until one fails."""
        for name in sorted(self._seconds, key=self._seconds.get):
            limit = runner.LEAST_SECONDS + SLOWDOWN_MAX * self._seconds[name]
            how = self._fails(folder, name, limit, mutant)
            if how:
                return {"found": "own", "how": f"{name}: {how}"}
        return {"found": "no", "how": "the unit tests pass"}

    def _fails(self, folder, name, limit, mutant=None):
        """Returns how a file of tests fails, with a mutant or without; empty if it passes."""
        copy = self._copies.get()
        try:
            if mutant:
                code = (self._root / mutant.path).read_bytes()
                (copy / mutant.path).write_bytes(plant(code, mutant))
            command = [sys.executable, "-B", "-m", "unittest", "discover", "--failfast", "-s",
                       str(copy / folder), "-p", name]
            status = runner.run(command, limit, {}, copy)
        finally:
            if mutant:
                (copy / mutant.path).write_bytes(code)
            self._copies.put(copy)
        if status is None:
            return "hang"
        return f"status {status}" if status else ""


def find(root, path):
    """Returns the mutants of a script."""
    return Finder(path, (pathlib.Path(root) / path).read_text()).mutants()
