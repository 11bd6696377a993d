"""Says whether two neighbouring statements may change places without effect.

The analysis names each variable that a statement reads or changes. It includes the called
functions whose code is in the translation unit. Members count by class and name, whatever
the object. Failed allocations are not considered.
"""

import dataclasses

from clang import cindex

import independence
import operators

Kind = cindex.CursorKind
TypeKind = cindex.TypeKind
DEPTH_MAX = 5  # of calls
ANY_OBJECT = "*"  # the name of what a pointer or a reference leads to
# Calls of these classes have effects that no variable shows, or effects on other threads.
CLASSES_WITH_OTHER_EFFECTS = ("mutex", "condition_variable", "thread", "function", "lock")


def independent_neighbours(root, mutant, flags):
    """Returns true for a mutant that swaps two statements of which neither changes a variable that
    the other uses."""
    return independent_in(parsed(str(root / mutant.path), flags), mutant)


def parsed(name, flags):
    return cindex.Index.create().parse(name, args=["-x", "c++", *flags])


def independent_in(unit, mutant):
    """Returns the result of independent_neighbours() for the parsed file of the mutant."""
    pair = neighbours(unit.cursor, unit.spelling, mutant.begin, mutant.end)
    if pair is None:
        return False
    first, second = map(effects_of, pair)
    return not first.concern(second) and not second.concern(first)


def neighbours(cursor, name, begin, end):
    """Returns the two statements at a place of a file; None if there are no two."""
    for child in cursor.get_children():
        if not operators.is_in(child, name):
            continue
        if child.kind == Kind.COMPOUND_STMT:
            inside = [each for each in child.get_children()
                      if begin <= each.extent.start.offset < end]
            if len(inside) == 2:
                return inside
        found = neighbours(child, name, begin, end)
        if found:
            return found
    return None


@dataclasses.dataclass
class Effects:
    used: set = dataclasses.field(default_factory=set)  # includes `changed`; "A::*" is a whole A
    changed: set = dataclasses.field(default_factory=set)
    known: bool = True  # false if there can be other effects

    def concern(self, other):
        """Returns true if these effects change what `other` uses, or if that is unknown."""
        objects = {f"{each.rpartition('::')[0]}::*" for each in self.changed}
        unclear = bool(self.changed) and ANY_OBJECT in other.used
        return not self.known or unclear or bool((self.changed | objects) & other.used)


def effects_of(statement):
    text = "".join(token.spelling for token in statement.get_tokens())
    if "co_" in text:
        return Effects(known=False)
    effects = Effects()
    Walk(effects, 0).visit(statement)
    return effects


class Walk:
    """Adds the effects of code to `effects`."""

    def __init__(self, effects, depth):
        self._effects = effects
        self._depth = depth
        self._objects = set()  # of which only a member is used, by hash

    def visit(self, cursor):
        """Adds the effects of an expression."""
        kind = cursor.kind
        if kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR):
            self._use(cursor)
        elif kind in (Kind.CXX_DELETE_EXPR, Kind.CXX_THROW_EXPR):
            self._effects.known = False
        elif kind == Kind.CALL_EXPR:
            self._call(cursor)
        elif independence.assigns(cursor):
            self._change(next(cursor.get_children()))
        elif kind == Kind.UNARY_OPERATOR and operators.first_token(cursor) == "*":
            self._effects.used.add(ANY_OBJECT)
        self.visit_children(cursor)

    def visit_children(self, cursor):
        for child in cursor.get_children():
            self.visit(child)

    def _use(self, cursor):
        self._objects |= {operators.without_conversions(each).hash
                          for each in cursor.get_children()}
        if cursor.referenced is None:  # a name in a template
            return
        self._effects.used.add(name_of(cursor.referenced))
        if is_alias(cursor.referenced) and cursor.type.get_canonical().kind != TypeKind.RECORD:
            self._effects.used.add(ANY_OBJECT)
        record = cursor.type.get_canonical().get_declaration()
        if record.spelling and cursor.hash not in self._objects:
            self._effects.used.add(f"{record.spelling}::*")

    def _change(self, target):
        """Notes that an expression is changed."""
        while True:
            children = list(target.get_children())
            if target.kind == Kind.CONDITIONAL_OPERATOR:
                self._change(children[1])
                self._change(children[2])
                return
            if target.kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR):
                break
            element = target.kind == Kind.ARRAY_SUBSCRIPT_EXPR and is_array(children[0])
            accessor = target.spelling == "operator[]" and independence.is_of_std(target.referenced)
            if not children or not (element or accessor or target.kind in (
                    Kind.PAREN_EXPR, Kind.UNEXPOSED_EXPR)):
                self._effects.known = False
                return
            target = children[0]
        variable = target.referenced
        if variable is None or not is_variable(variable) or is_alias(variable):
            self._effects.known = False
        else:
            self._effects.changed.add(name_of(variable))

    def _call(self, cursor):
        function = cursor.referenced
        if function is None or function.is_virtual_method() or is_variable(function):
            self._effects.known = False
        elif function.spelling == "__assert_fail":
            pass
        elif independence.is_of_std(function):
            self._call_std(cursor, function)
        elif function.kind == Kind.CONSTRUCTOR and function.get_definition() is None and (
                takes_values(function)):
            pass  # a new object, which no other statement knows
        else:
            self._enter(function)

    def _enter(self, function):
        definition = function.get_definition()
        if definition is None and function.kind == Kind.FUNCTION_DECL and (
                takes_values(function) and function.result_type.kind != TypeKind.VOID and (
                not function.location.is_in_system_header)):
            return
        if definition is None or self._depth == DEPTH_MAX:
            self._effects.known = False
            return
        Walk(self._effects, self._depth + 1).visit_children(definition)

    def _call_std(self, cursor, function):
        scope = function.semantic_parent.spelling
        text = "".join(token.spelling for token in cursor.get_tokens())
        if any(each in scope for each in CLASSES_WITH_OTHER_EFFECTS) or (
                "atomic" in scope and "memory_order_relaxed" not in text):
            self._effects.known = False
        arguments = list(cursor.get_arguments())
        if function.kind == Kind.CXX_METHOD and not function.is_const_method() and (
                not function.is_static_method()) and not is_accessor(function):
            self._change(object_of(cursor, arguments))
            if function.spelling.startswith("operator"):
                arguments = arguments[1:]
        for argument, parameter in zip(arguments, function.type.argument_types()):
            if parameter.kind == TypeKind.LVALUEREFERENCE:
                if not parameter.get_pointee().is_const_qualified():
                    self._change(argument)
            elif parameter.kind == TypeKind.POINTER:
                if not parameter.get_pointee().is_const_qualified():
                    self._effects.known = False


def object_of(call, arguments):
    """Returns the expression of the object whose method is called."""
    callee = next(call.get_children())
    if call.spelling.startswith("operator"):
        return next(iter(arguments), callee)
    return next(callee.get_children(), callee)


def takes_values(function):
    """Returns true for a function that takes only values."""
    kinds = {parameter.type.kind for parameter in function.get_arguments()}
    return not kinds & {TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE, TypeKind.POINTER}


def is_accessor(function):
    return function.spelling in ("operator[]", "operator*", "operator->", "at", "back", "begin",
                                 "data", "end", "front", "get")


def is_variable(cursor):
    return cursor.kind in (Kind.VAR_DECL, Kind.PARM_DECL, Kind.FIELD_DECL)


def is_alias(variable):
    """Returns true if the variable is a name of another variable."""
    return variable.type.get_canonical().kind in (TypeKind.LVALUEREFERENCE,
                                                  TypeKind.RVALUEREFERENCE)


def is_array(expression):
    array = operators.without_conversions(expression)
    return array.type.get_canonical().kind == TypeKind.CONSTANTARRAY


def name_of(variable):
    if variable.kind == Kind.FIELD_DECL:  # the same in all instances of a template
        return f"{variable.semantic_parent.spelling}::{variable.spelling}"
    return variable.get_usr()
