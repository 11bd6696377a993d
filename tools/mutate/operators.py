"""Finds the faults that can be planted in a source file, on its syntax tree.

Each operator returns mutants: a range of the file and the text that replaces it. The replacement
selects the fault at run time: one build holds many mutants; see schema.py.
"""

import dataclasses
import hashlib
import itertools
import re

from clang import cindex

import independence

Kind = cindex.CursorKind
Binary = cindex.BinaryOperator

STRICTNESS = {Binary.LT: "<=", Binary.LE: "<", Binary.GT: ">=", Binary.GE: ">"}
EQUALITY = {Binary.EQ: "!=", Binary.NE: "=="}
COMPARISONS = STRICTNESS.keys() | EQUALITY.keys()
ARITHMETIC = {Binary.Add: "-", Binary.Sub: "+"}
OVERLOADED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-",
              "-": "+"}
CONNECTIVES = (Binary.LAnd, Binary.LOr)
# Faults that often only the thread sanitizer sees.
OF_THREADS = {"lock", "memory order"}
# The order of the arguments of these functions is no fault.
SYMMETRIC = {"equals_ignoring_case", "fast_equal", "gcd", "swap"}
# Functions that end the use of a resource.
RELEASES = {"clear", "close", "close_now", "destroy", "deallocate", "detach", "erase", "free",
            "join", "leave", "munmap", "pop", "pop_back", "pop_front", "release", "remove",
            "remove_prefix", "reset", "shut_down", "unlink", "unlock", "unregister"}
LOCK = re.compile("std::(lock_guard|scoped_lock)")
SEMICOLON = re.compile(rb"\s*;")
EXTREMA = {"min": "max", "max": "min"}
EXPRESSIONS = {Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR,
               Kind.CALL_EXPR, Kind.UNEXPOSED_EXPR, Kind.CXX_DELETE_EXPR, Kind.CXX_THROW_EXPR,
               Kind.CXX_STATIC_CAST_EXPR}
JUMPS = {Kind.BREAK_STMT, Kind.CONTINUE_STMT}
LEAVES_BLOCK = {Kind.RETURN_STMT, Kind.CONTINUE_STMT, Kind.BREAK_STMT}
# Code that the compiler evaluates, or that has no effect at run time.
CONSTANT_CODE = {Kind.STATIC_ASSERT, Kind.ENUM_CONSTANT_DECL, Kind.TYPE_ALIAS_DECL,
                 Kind.CONCEPT_DECL, Kind.TYPEDEF_DECL, Kind.FRIEND_DECL, Kind.CXX_BASE_SPECIFIER}
VARIABLES = {Kind.VAR_DECL, Kind.FIELD_DECL, Kind.UNEXPOSED_DECL}  # unexposed: of a template
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.FUNCTION_TEMPLATE}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A planted fault. `template` has {on}, true if the mutant is selected, and {code}, the
    original code with its own mutants."""
    path: str
    begin: int
    end: int
    line: int
    operator: str
    before: str
    after: str
    template: str
    occurrence: int = 0  # among equal mutants of the file, in order

    @property
    def key(self):
        """Identifies the mutant as long as its code and its file's equal code stay the same."""
        parts = (self.path, self.operator, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def text(self):
        after = self.after or "(nothing)"
        return (f"{self.path}:{self.line}: {self.operator}: {shorten(self.before)} -> "
                f"{shorten(after)}")


def shorten(code, columns=60):
    line = " ".join(code.split())
    return line if len(line) <= columns else line[:columns - 3] + "..."


class Finder:
    """Finds the mutants of one file in a parsed translation unit."""

    def __init__(self, unit, path, name):
        self._path = path
        self._name = name
        with open(name, "rb") as file:
            self._bytes = file.read()
        self._mutants = {}
        self._macros = [
            (each.extent.start.offset, each.extent.end.offset)
            for each in unit.cursor.get_children()
            if each.kind == Kind.MACRO_INSTANTIATION and self._is_here(each)]
        self._visit(unit.cursor, None)

    def mutants(self):
        """Returns the mutants in the order of the file, each once."""
        return numbered(self._mutants.values())

    def _is_here(self, cursor):
        return is_in(cursor, self._name)

    def _code(self, begin, end):
        return self._bytes[begin:end].decode()

    def _text(self, cursor):
        return self._code(cursor.extent.start.offset, cursor.extent.end.offset)

    def _add(self, operator, begin, end, after, template):
        if any(self._splits(macro, begin, end) for macro in self._macros):
            return
        before = self._code(begin, end)
        if before == after or not before:
            return
        line = self._bytes[:begin].count(b"\n") + 1
        mutant = Mutant(self._path, begin, end, line, operator, before, after, template)
        self._mutants.setdefault((begin, end, after), mutant)

    def _splits(self, macro, begin, end):
        """Returns true if a range has only a part of a macro, or nothing but the macro."""
        macro_begin, macro_end = macro
        apart = macro_end <= begin or end <= macro_begin
        inside = begin <= macro_begin and macro_end <= end
        return not apart and (not inside or self._code(macro_end, end).strip() in ("", ";") and (
            begin == macro_begin))

    def _add_expression(self, operator, cursor, after):
        self._add(operator, cursor.extent.start.offset, cursor.extent.end.offset, after,
                  alternative(after))

    def _add_condition(self, operator, cursor, after):
        """The two alternatives may have different types, such as bool and a pointer."""
        self._add(operator, cursor.extent.start.offset, cursor.extent.end.offset, after,
                  "({on} ? static_cast<bool>(" + escaped(after) + ") : static_cast<bool>({code}))")

    def _add_statement(self, operator, begin, end, after=""):
        self._add(operator, begin, end, after,
                  "if ({on}) {{ " + escaped(after) + " }} else {code}")

    def _visit(self, cursor, parent):
        for child in cursor.get_children():
            if self._is_here(child) and not is_constant(child, cursor):
                self._mutate(child, cursor)
                self._visit(child, cursor)

    def _mutate(self, cursor, parent):
        kind = cursor.kind
        if kind == Kind.BINARY_OPERATOR:
            self._mutate_binary(cursor)
        elif kind == Kind.IF_STMT:
            self._mutate_if(cursor)
        elif kind in (Kind.CONDITIONAL_OPERATOR, Kind.WHILE_STMT):
            condition = next(cursor.get_children())
            if condition.kind.is_expression():  # not a declaration
                self._negate(condition)
        elif kind == Kind.RETURN_STMT:
            self._mutate_return(cursor)
        elif kind == Kind.CALL_EXPR:
            # The arguments of an initializer, such as `T a(b, c);`, are no expression.
            if parent.kind not in (Kind.VAR_DECL, Kind.CONSTRUCTOR) or not (
                    cursor.referenced and cursor.referenced.kind == Kind.CONSTRUCTOR):
                self._mutate_call(cursor)
        elif kind == Kind.DECL_REF_EXPR:
            self._mutate_reference(cursor)
        elif kind == Kind.INTEGER_LITERAL:
            self._add_expression("constant", cursor, self._text(cursor) + " + 1")
        elif kind == Kind.CXX_BOOL_LITERAL_EXPR:
            other = "false" if self._text(cursor) == "true" else "true"
            self._add_expression("constant", cursor, other)
        elif kind == Kind.DECL_STMT:
            self._mutate_lock(cursor)
        if kind == Kind.COMPOUND_STMT:
            self._mutate_block(cursor)
        elif parent.kind in (Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CASE_STMT,
                             Kind.CXX_FOR_RANGE_STMT, Kind.DEFAULT_STMT):
            self._drop(cursor, parent)

    def _mutate_binary(self, cursor):
        left, right = cursor.get_children()
        operator = cursor.binary_operator
        replaced = STRICTNESS.get(operator) or EQUALITY.get(operator) or ARITHMETIC.get(operator)
        if replaced:
            name = "comparison" if operator not in ARITHMETIC else "arithmetic"
            self._add_expression(name, cursor,
                                 f"{self._text(left)} {replaced} {self._text(right)}")
        if operator in CONNECTIVES:
            self._add_condition("condition", cursor, self._text(left))
            self._add_condition("condition", cursor, self._text(right))

    def _negate(self, condition):
        if condition.kind == Kind.BINARY_OPERATOR and condition.binary_operator in COMPARISONS:
            return  # the comparison has mutants of its own
        if condition.kind == Kind.CXX_BOOL_LITERAL_EXPR:
            return
        overloaded = overloaded_comparison(condition)
        if overloaded and self._operands(overloaded)[0].extent.start == condition.extent.start:
            return
        if condition.type.kind == cindex.TypeKind.BOOL or is_contextual_bool(condition):
            self._add_condition("negation", condition, f"!({self._text(condition)})")

    def _mutate_if(self, cursor):
        if is_constexpr(cursor):
            return
        condition, *branches = cursor.get_children()
        declared = ""
        if condition.kind == Kind.DECL_STMT:  # before the condition, and a semicolon
            declared = self._text(condition)
            condition, *branches = branches
        if condition.kind.is_expression():  # not a declaration
            self._negate(condition)
        if len(branches) == 1 and leaves(branches[0]):
            begin, end = cursor.extent.start.offset, self._statement_end(branches[0])
            if end is not None:
                self._add_statement("error check", begin, end, declared)

    def _mutate_return(self, cursor):
        value = next(cursor.get_children(), None)
        if value is not None and value.type.kind == cindex.TypeKind.BOOL:
            self._negate(value)

    def _operands(self, call):
        """Returns the operands of an overloaded operator in the order of the file."""
        first, _, second = call.get_children()
        return sorted((first, second), key=lambda each: each.extent.start.offset)

    def _mutate_overloaded(self, call):
        left, right = self._operands(call)
        begin, middle = left.extent.start.offset, left.extent.end.offset
        end = right.extent.end.offset
        operator = self._code(middle, right.extent.start.offset).strip()
        if operator in OVERLOADED and "string" not in call.type.get_canonical().spelling:
            name = "arithmetic" if operator in "+-" else "comparison"
            after = f"{self._text(left)} {OVERLOADED[operator]} {self._text(right)}"
            self._add(name, begin, end, after, alternative(after))

    def _mutate_call(self, cursor):
        if is_overloaded(cursor):
            self._mutate_overloaded(cursor)
            return
        arguments = list(cursor.get_arguments())
        callee = next(cursor.get_children(), None)
        if callee is None or not all(map(self._is_here, arguments)):
            return
        if cursor.spelling in EXTREMA and self._text(callee).startswith("std::"):
            after = EXTREMA[cursor.spelling]
            self._add_expression("extremum", cursor,
                                 self._text(cursor).replace(cursor.spelling, after, 1))
        elif cursor.spelling.startswith("operator") or "<" in self._text(callee):
            return
        for first, second in zip(arguments, arguments[1:]):
            same = first.type.get_canonical().spelling == second.type.get_canonical().spelling
            if same and self._text(first) != self._text(second) and (
                    cursor.spelling not in SYMMETRIC | EXTREMA.keys()):
                self._add_expression("arguments", cursor, self._swapped(cursor, first, second))

    def _swapped(self, whole, first, second):
        begin, end = whole.extent.start.offset, whole.extent.end.offset
        return (self._code(begin, first.extent.start.offset) + self._text(second) +
                self._code(first.extent.end.offset, second.extent.start.offset) +
                self._text(first) + self._code(second.extent.end.offset, end))

    def _mutate_reference(self, cursor):
        target = cursor.referenced
        if target is None:
            return
        if "memory_order" in cursor.type.spelling and target.kind != Kind.PARM_DECL:
            self._add_expression("memory order", cursor, "std::memory_order_relaxed")
        elif target.kind == Kind.ENUM_CONSTANT_DECL:
            names = [each.spelling for each in target.semantic_parent.get_children()
                     if each.kind == Kind.ENUM_CONSTANT_DECL]
            other = names[(names.index(target.spelling) + 1) % len(names)]
            text = self._text(cursor)
            if text.endswith(target.spelling):
                self._add_expression("enumerator", cursor,
                                     text[:len(text) - len(target.spelling)] + other)

    def _mutate_lock(self, cursor):
        variables = list(cursor.get_children())
        if len(variables) != 1 or not LOCK.search(variables[0].type.spelling):
            return
        name = variables[0].spelling
        mutex = escaped(self._text(cursor).partition("(")[2].rpartition(")")[0])
        if mutex and "," not in mutex:
            self._add("lock", cursor.extent.start.offset, cursor.extent.end.offset, "",
                      f"const weir_mutate::Guard {name}({mutex}, {{on}});")

    def _mutate_block(self, block):
        statements = list(block.get_children())
        for each in statements:
            self._drop(each, block)
        for first, second in zip(statements, statements[1:]):
            ends = self._statement_end(first), self._statement_end(second)
            if (is_droppable(first) and is_droppable(second) and None not in ends and
                    not independence.independent(first, second)):
                begin, middle = first.extent.start.offset, second.extent.start.offset
                swapped = self._code(middle, ends[1]) + " " + self._code(begin, ends[0])
                # A release that comes first is a release that comes too early.
                operator = "release" if is_release(second) else "order"
                self._add(operator, begin, ends[1], swapped,
                          "if ({on}) {{ " + escaped(swapped) + " }} else {{ {code} }}")

    def _drop(self, cursor, parent):
        if not is_droppable(cursor) and cursor.kind not in JUMPS:
            return
        if parent.kind == Kind.FOR_STMT and list(parent.get_children())[-1] != cursor:
            return  # not the body
        end = self._statement_end(cursor)
        if end is not None:
            operator = "release" if is_release(cursor) else "dropped statement"
            self._add_statement(operator, cursor.extent.start.offset, end)

    def _statement_end(self, cursor):
        """Returns the end of a statement with its semicolon; None if no semicolon follows."""
        end = cursor.extent.end.offset
        semicolon = SEMICOLON.match(self._bytes, end)
        if semicolon:
            return semicolon.end()
        return end if self._bytes[end - 1:end] == b"}" else None


def numbered(mutants):
    """Returns the mutants of a file in its order, with their numbers among equal ones."""
    count, found = {}, []
    for each in sorted(mutants, key=lambda each: (each.begin, each.after)):
        same = (each.operator, each.before, each.after)
        found.append(dataclasses.replace(each, occurrence=count.get(same, 0)))
        count[same] = found[-1].occurrence + 1
    return found


def is_in(cursor, name):
    """Returns true if the code of the cursor is in the file of that name."""
    return cursor.location.file is not None and cursor.location.file.name == name


def escaped(code):
    """Returns code for a template of str.format()."""
    return code.replace("{", "{{").replace("}", "}}")


def is_overloaded(call):
    """Returns true for the call of a binary operator of a class, written as an operator."""
    if call.spelling not in ("operator<=>", *(f"operator{each}" for each in OVERLOADED)):
        return False
    children = list(call.get_children())
    return len(children) == 3 and children[1].spelling == call.spelling


def overloaded_comparison(expression):
    """Returns the call behind a comparison of classes, such as `a < b` by operator<=>, or None."""
    while expression and not is_overloaded(expression):
        if expression.kind not in (Kind.UNEXPOSED_EXPR, Kind.UNARY_OPERATOR, Kind.CALL_EXPR):
            return None
        expression = next(expression.get_children(), None)
    return expression


def alternative(after):
    """Returns the template of an expression that the mutant replaces."""
    return "({on} ? (" + escaped(after) + ") : ({code}))"


def is_first(parent, child):
    return next(parent.get_children()) == child


def first_token(cursor):
    return next((token.spelling for token in cursor.get_tokens()), "")


def without_conversions(expression):
    """Returns the expression that implicit conversions convert."""
    while expression.kind == Kind.UNEXPOSED_EXPR and (
            inner := next(expression.get_children(), None)):
        expression = inner
    return expression


def is_constexpr(statement):
    """Returns true for `if constexpr`."""
    return [token.spelling for token in itertools.islice(statement.get_tokens(), 2)] == [
        "if", "constexpr"]


def is_constant(cursor, parent):
    """Returns true for code that only the compiler evaluates, in which no fault is ever selected:
    initializers of constants, consteval functions, arguments of templates and bounds of arrays."""
    kind = cursor.kind
    if kind in CONSTANT_CODE:
        return True
    if parent.kind == Kind.CASE_STMT or (parent.kind == Kind.IF_STMT and is_constexpr(parent)):
        return is_first(parent, cursor)
    if kind in VARIABLES | FUNCTIONS:
        spellings = (token.spelling for token in cursor.get_tokens())
        head = set(itertools.takewhile(lambda each: each not in ("=", "(", "{"), spellings))
        return bool(head & {"constexpr", "constinit"} if kind in VARIABLES else
                    head & {"consteval"})
    if parent.kind in VARIABLES and kind.is_expression():
        if parent.type.kind == cindex.TypeKind.CONSTANTARRAY and kind != Kind.INIT_LIST_EXPR:
            return True
        return cursor.extent.start.offset < parent.location.offset  # in the type of a variable
    return False


def is_contextual_bool(cursor):
    return cursor.kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR, Kind.CALL_EXPR,
                           Kind.UNEXPOSED_EXPR, Kind.UNARY_OPERATOR)


def leaves(body):
    """True for a body that only leaves the block: return, co_return, continue or break."""
    if body.kind == Kind.COMPOUND_STMT:
        statements = list(body.get_children())
        return len(statements) == 1 and leaves(statements[0])
    if body.kind in LEAVES_BLOCK:
        return True
    return first_token(body) == "co_return"


def is_release(statement):
    """True for a statement whose outermost call ends the use of a resource."""
    statement = without_conversions(statement)
    return statement.kind == Kind.CXX_DELETE_EXPR or statement.spelling in RELEASES


def is_droppable(cursor):
    """True for an expression that stands as a statement."""
    return cursor.kind in EXPRESSIONS
