"""Finds `co_await` expressions that GCC 12 compiles wrongly, as far as text shows them.

GCC 12 destroys some temporaries twice if they are created inside a full expression that awaits.
Text hardly shows types, so the rules are wider than the faults. The remedy is a named value.
"""

import re

import classes
import cxx_text

AWAIT = re.compile(r"\bco_(?:await|yield)\b")
COROUTINE = re.compile(r"\bco_(?:await|yield|return)\b")
ELSEWHERE = re.compile(r"\b(?:static|thread_local|struct|class|union|new|using)\b")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
CONTROL = re.compile(r"^(?:else\s+)?(?:if(?:\s+constexpr)?|while|for|switch)\s*\(")
LAMBDA = re.compile(r"(?<![\w)\]\[])\s*\[(?!\[)([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]\s*[({<]")
BY_REFERENCE = re.compile(r"^(?:&|&\s*\w+(?:\s*=.*)?|this|)$", re.DOTALL)
DESIGNATED = re.compile(r"\{\s*\.\s*\w+\s*[={]")
# A temporary of a named type. The type after `->` is a lambda's return type.
NAMED_BRACES = re.compile(r"(?<![\w.:])(?<!->)(?<!-> )((?:\w+::)*[A-Za-z_]\w*(?:<[^;{}()]*>)?)"
                          r"\s*\{")
# An IoOptions has no destructor that could run twice.
IO_OPTIONS = re.compile(r"(\b(?:read|read_into|write|connect)\([^{}]*)\{\s*\.timeout\s*=[^{},]*\}")
BARE_BRACES = re.compile(r"[(,]\s*\{\s*[^}\s]")
SOMETIMES = re.compile(r"(?:&&|\|\|)[\s!(*]*co_await\b")
CONDITION = re.compile(r"\b(?:if(?:\s+constexpr)?|while|for|switch)\s*$")
NESTING = re.compile(r"(?:\b(?:else|do)|[;{}]|^)\s*$")
NO_TYPE = r"(?!(?:return|co_return|co_await|co_yield|else|delete|new|throw|goto|case|using)\b)"
DECLARATION = re.compile(
    r"(?:^|[;{}(]|\belse\b)\s*(?:(?:static|constexpr|const)\s+)*"
    rf"(?:auto\s*&{{0,2}}\s*\[|{NO_TYPE}[A-Za-z_]\w*(?:::\w+)*(?:<[^;{{}}()]*>)?(?:\s*[&*]+\s*|\s+)"
    r"(?:const\s+)?[A-Za-z_]\w*\s*(?:=(?!=)|\{|\(|;|:(?!:)|\[))")
LAMBDA_BEFORE = re.compile(r"\]\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*(?:mutable|noexcept)?\s*"
                           r"(?:->\s*[\w:<>,*&\s]+)?$")
BINDING = re.compile(r"\bauto\s*&{0,2}\s*\[[^\]]*\]\s*=\s*[^;]*\bco_await\b")


def is_block(code, partner, brace):
    """Returns true if the braces hold statements, not the elements of an initializer."""
    offset = brace + 1
    while offset < partner[brace]:
        if code[offset] == ";":
            return True
        if code[offset] in "([{":
            # A nested block ends without a semicolon: `{ if (x) { y; } }`.
            if code[offset] == "{" and is_block(code, partner, offset):
                return True
            offset = partner[offset]
        offset += 1
    return not code[brace + 1 : partner[brace]].strip()


def full_expression(code, partner, offset):
    """Returns the bounds of the full expression around `offset`."""
    start = offset
    while start > 0:
        char = code[start - 1]
        if char == ";" or (char == "{" and is_block(code, partner, start - 1)):
            break
        if char == "}" and is_block(code, partner, partner[start - 1]):
            before = code[: partner[start - 1]].rstrip()
            if not before.endswith((")", "]", "mutable", "noexcept")) or is_statement(code, start):
                break  # the block before this statement, not a lambda within it
            start = partner[start - 1]
        elif char in ")]}":
            start = partner[start - 1]
        else:
            start -= 1
    head = code[start:offset]
    lead = len(head) - len(head.lstrip())
    if control := CONTROL.match(head.lstrip()):
        opening = start + lead + control.end() - 1
        if opening < offset < partner[opening]:
            return opening + 1, partner[opening]
        return full_expression_after(code, partner, partner[opening] + 1, offset)
    return full_expression_after(code, partner, start + lead, offset)


def is_statement(code, end_of_block):
    """Returns true if a new statement begins after a block, rather than the rest of a call."""
    following = code[end_of_block:].lstrip()[:1]
    return following not in (",", ")", "(", ".", "}", "]", "?", ":")


def full_expression_after(code, partner, start, offset):
    end = offset
    while end < len(code) and code[end] not in ";":
        if code[end] in "([{":
            end = partner[end]
        elif code[end] in ")]}":
            if is_opening_of_block(code, partner, end):
                break
        end += 1
    return start, end


def is_opening_of_block(code, partner, closing):
    return code[closing] == "}" and is_block(code, partner, partner[closing])


def without_blocks(code, partner, start, end):
    """Returns the expression with the bodies of lambdas blanked out: they are checked alone."""
    text = list(code[start:end])
    offset = start
    while offset < end:
        if code[offset] == "{" and partner[offset] < end and is_block(code, partner, offset):
            for inner in range(offset + 1, partner[offset]):
                text[inner - start] = " "
            offset = partner[offset]
        offset += 1
    return "".join(text)


def faults(expression):
    expression = IO_OPTIONS.sub(r"\1IoOptions()", expression)
    for match in LAMBDA.finditer(expression):
        captures = [capture.strip() for capture in match.group(1).split(",")]
        if not all(BY_REFERENCE.match(capture) for capture in captures):
            yield f"a lambda that captures [{match.group(1).strip()}]"
    if DESIGNATED.search(expression):
        yield "an aggregate with designated members"
    elif BARE_BRACES.search(expression):
        yield "a braced argument"
    if "?" in expression:
        yield "a conditional expression"
    if SOMETIMES.search(expression):
        yield "a result that && or || may leave out"


def fragile_temporaries(file, expression, types):
    """Yields the types of temporaries without a constructor but with a non-trivial destructor."""
    for match in NAMED_BRACES.finditer(expression):
        if types.fragile(file, match.group(1)):
            yield match.group(1)


def check_awaits(repository, report):
    types = repository.types
    for file in repository.cxx:
        if not AWAIT.search(file.code):
            continue
        try:
            partner = cxx_text.brackets(file.code)
        except cxx_text.UnbalancedBraces:
            continue  # sizes.check_functions() reports it
        seen = set()
        for match in AWAIT.finditer(file.code):
            start, end = full_expression(file.code, partner, match.start())
            if start in seen:
                continue
            seen.add(start)
            line = cxx_text.line_of(file.code, match.start())
            expression = without_blocks(file.code, partner, start, end)
            for fault in faults(expression):
                report(file, line, "coroutines",
                       f"{fault} is created in a co_await expression: name it first")
            for name in fragile_temporaries(file, expression, types):
                report(file, line, "coroutines", f"{name}, which has no constructor, is created in "
                       "a co_await expression: name it first")
            if BINDING.search(expression):
                report(file, line, "coroutines",
                       "structured bindings straight from a co_await: name the value first")


def enclosing(code, partner, offset):
    """Returns the innermost bracket around `offset`, or None."""
    while offset > 0:
        offset -= 1
        if code[offset] in ")]}":
            offset = partner[offset]
        elif code[offset] in "([{":
            return offset
    return None


def body_around(code, partner, offset):
    """Returns (the braces of the function or lambda around `offset`, true within a try); (None,
    False) outside functions."""
    tried = False
    brace = enclosing(code, partner, offset)
    while brace is not None:
        before = code[:brace].rstrip()
        if before.endswith("try"):
            tried = True
        elif code[brace] == "{" and not NESTING.search(before):
            opening = partner[len(before) - 1] if before.endswith(")") else None
            if opening is None or not CONDITION.search(code[:opening]):
                return brace, tried
        brace = enclosing(code, partner, brace)
    return None, False


def without_lambdas(code, partner, start, end):
    """Returns statements with the bodies of their lambdas blanked out."""
    text = list(code[start:end])
    offset = start
    while offset < end:
        if code[offset] == "{" and LAMBDA_BEFORE.search(code[max(start, offset - 400):offset]):
            for inner in range(offset + 1, partner[offset]):
                text[inner - start] = " "
            offset = partner[offset]
        offset += 1
    return "".join(text)


def check_conditions(repository, report):
    """Checks conditions that await in a function, not a lambda, without a local variable. GCC 12
    puts eight extra bytes at the start of the frame and resumes the frame elsewhere."""
    for file in repository.cxx:
        if "co_await" not in file.text:
            continue
        try:
            partner = cxx_text.brackets(file.code)
        except cxx_text.UnbalancedBraces:
            continue
        for match in AWAIT.finditer(file.code):
            opening = enclosing(file.code, partner, match.start())
            while opening is not None and file.code[opening] != "{" and not CONDITION.search(
                    file.code[:opening]):
                opening = enclosing(file.code, partner, opening)
            if opening is None or file.code[opening] == "{":
                continue
            body, tried = body_around(file.code, partner, opening)
            if body is None or tried or LAMBDA_BEFORE.search(file.code[max(0, body - 400):body]):
                continue
            statements = without_lambdas(file.code, partner, body + 1, partner[body])
            if not DECLARATION.search(statements):
                report(file, cxx_text.line_of(file.code, match.start()), "coroutines",
                       "a condition awaits in a function without a variable: name the value")


def check_awaiters(repository, report):
    """Checks that awaiters have a constructor: GCC 12 would destroy an aggregate twice."""
    types = repository.types
    for file in repository.cxx:
        for each in types.of_files[file.path]:
            if each.awaited and each.aggregate and (each.members or each.bases):
                report(file, each.line, "coroutines",
                       f"{each.name} is awaited and has no constructor: give it one")


def check_alignment(repository, report):
    """Checks that no variable of a coroutine is aligned beyond memory from `new`."""
    types = repository.types
    wide = {each.name for found in types.of_files.values() for each in found if each.aligned}
    variable = re.compile(rf"(?<![\w.>:])(?:\w+::)*({'|'.join(sorted(wide)) or '(?!)'})"
                          r"(?:<[^;{}()]*>)?\s+[A-Za-z_]\w*\s*[;{(=\[]")
    for file in repository.cxx:
        if not COROUTINE.search(file.code):
            continue
        try:
            partner = cxx_text.brackets(file.code)
        except cxx_text.UnbalancedBraces:
            continue
        found = [match for match in classes.ALIGNED.finditer(file.code)
                 if classes.over_aligned(match.group(0))]
        found += [match for match in variable.finditer(file.code)
                  if any(each.aligned for each in types.named(file, match.group(1)))]
        for match in found:
            if in_frame(file.code, partner, match.start()):
                report(file, cxx_text.line_of(file.code, match.start()), "coroutines",
                       "a coroutine's frame ignores alignment: keep this elsewhere")


def beginning(code, offset):
    """Returns the text before `offset` in the same statement or head."""
    text = code[max(0, offset - 400):offset]
    return classes.without_template_arguments(re.split(r"[;{}]", text)[-1])


def in_frame(code, partner, offset):
    """Returns true if the declaration at `offset` is a variable of a coroutine."""
    brace, _ = body_around(code, partner, offset)
    if brace is None or ELSEWHERE.search(beginning(code, offset)):
        return False
    if SCOPE.search(beginning(code, brace)):
        return False  # not in a function at all
    return bool(COROUTINE.search(without_lambdas(code, partner, brace + 1, partner[brace])))


CHECKS = [check_awaits, check_conditions, check_awaiters, check_alignment]
