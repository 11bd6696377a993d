"""Says by the syntax of two statements whether their order has no effect.

The analysis does not look into called functions. effects.py does, for faults that no test finds.
"""

from clang import cindex

Kind = cindex.CursorKind
Binary = cindex.BinaryOperator


def independent(first, second):
    """True for statements of which neither changes a variable that the other uses: their order is
    no fault."""
    if not all(is_pure(each) for statement in (first, second)
               for each in statement.walk_preorder() if each.kind == Kind.CALL_EXPR):
        return False
    used = [used_by(each) for each in (first, second)]
    changed = [changed_by(each, names) for each, names in zip((first, second), used)]
    return not changed[0] & used[1] and not changed[1] & used[0]


def used_by(statement):
    """Returns the variables of a statement. Of a member, that is the member, not its object."""
    used, bases = set(), set()
    for each in statement.walk_preorder():
        if each.kind == Kind.MEMBER_REF_EXPR:
            bases.update(base.hash for base in each.get_children())
        if each.referenced and each.hash not in bases and each.kind in (
                Kind.MEMBER_REF_EXPR, Kind.DECL_REF_EXPR):
            used.add(each.referenced.get_usr())
    functions = {each.referenced.get_usr() for each in statement.walk_preorder()
                 if each.kind == Kind.CALL_EXPR}
    return used - functions


def changed_by(statement, used):
    """Returns the variables that a statement can change: the target of an assignment, else all."""
    assignments = [each for each in statement.walk_preorder() if assigns(each)]
    if len(assignments) != 1:
        return used
    target = next(assignments[0].get_children(), None)
    while target is not None and target.kind not in (Kind.MEMBER_REF_EXPR, Kind.DECL_REF_EXPR):
        if target.kind == Kind.CALL_EXPR and target.spelling != "operator[]" or (
                target.kind == Kind.UNARY_OPERATOR):
            return used
        target = next(target.get_children(), None)
    return {target.referenced.get_usr()} if target is not None and target.referenced else used


def assigns(cursor):
    """True for an assignment, an increment and a decrement."""
    if cursor.kind == Kind.CALL_EXPR:
        return cursor.spelling.endswith(("=", "++", "--"))
    if cursor.kind == Kind.UNARY_OPERATOR:
        return any(token.spelling in ("++", "--") for token in cursor.get_tokens())
    return cursor.kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR or (
        cursor.kind == Kind.BINARY_OPERATOR and cursor.binary_operator == Binary.Assign)


def is_pure(call):
    """True for a call that changes nothing but the variables in it: const methods, functions of
    values, and operators and element access of the standard library."""
    function = call.referenced
    if function is None:
        return False
    if is_of_std(function) and (function.spelling.startswith("operator") or
                                function.spelling in ("at", "back", "begin", "data", "front")):
        return True
    if function.result_type.kind == cindex.TypeKind.VOID:
        return False
    if function.kind == Kind.CXX_METHOD and not (function.is_const_method() or
                                                 function.is_static_method()):
        return False
    for parameter in function.get_arguments():
        kind, pointee = parameter.type.kind, parameter.type.get_pointee()
        if kind in (cindex.TypeKind.LVALUEREFERENCE, cindex.TypeKind.POINTER) and (
                not pointee.is_const_qualified()):
            return False
    return True


def is_of_std(function):
    """True for a function of namespace std, or of a class in it."""
    scope = function.semantic_parent
    while scope is not None:
        if scope.spelling == "std":
            return True
        scope = scope.semantic_parent
    return False
