"""Writes a source file that holds many mutants, one of which an environment variable selects."""

import collections
import re

SELECTION_HEADER = "weir_mutate.hpp"
SELECTION = """// Selects one planted fault; written by tools/mutate.
#pragma once

// Mutants leave variables unused, and the like.
#pragma clang diagnostic ignored "-Weverything"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <mutex>

namespace weir_mutate {

// The number of the selected mutant.
inline constinit int selected = -1;

// One byte for each mutant, in a file that all processes of a test map: 1 if a test reached it.
inline constinit unsigned char* reached = nullptr;
inline constinit std::size_t reached_size = 0;

inline bool read_environment() {
  if (const char* const text = std::getenv("WEIR_MUTANT")) selected = std::atoi(text);
  const char* const name = std::getenv("WEIR_MUTANTS_REACHED");
  const int file = name == nullptr ? -1 : ::open(name, O_RDWR | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || ::fstat(file, &status) != 0) return false;
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  void* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (made == MAP_FAILED) return false;
  reached = static_cast<unsigned char*>(made);
  reached_size = size;
  return true;
}

inline const bool environment_was_read = read_environment();

constexpr bool on(int number) noexcept {
  if consteval {
    return false;
  } else {
    if (reached != nullptr) [[unlikely]] reached[number] = 1;
    return selected == number;
  }
}

// A lock guard that the mutant omits.
template <class Mutex>
class Guard {
 public:
  Guard(Mutex& mutex, bool omitted) : mutex_(omitted ? nullptr : &mutex) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~Guard() {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Mutex* mutex_;
};

}  // namespace weir_mutate
"""


def without_overlaps(mutants):
    """Returns the mutants that a single build can hold together, in the same order: each two of a
    file are nested or apart. Of two that cross, the first is kept."""
    kept = collections.defaultdict(list)
    for each in mutants:
        if all(apart_or_nested(each, other) for other in kept[each.path]):
            kept[each.path].append(each)
    together = {each for of_path in kept.values() for each in of_path}
    return [each for each in mutants if each in together]


def apart_or_nested(one, other):
    apart = one.end <= other.begin or other.end <= one.begin
    inside = one.begin <= other.begin and other.end <= one.end
    outside = other.begin <= one.begin and one.end <= other.end
    return apart or inside or outside


def render(code, numbers):
    """Returns the code (bytes) with the mutants in `numbers`, {mutant: number}, chosen at run
    time. A larger range holds the smaller ones in its original alternative."""
    ordered = sorted(numbers, key=lambda each: (each.begin, -each.end, is_expression(each)))
    include = f'#include "{SELECTION_HEADER}"\n'
    return include.encode() + _render(code, 0, len(code), ordered, numbers)


def is_expression(mutant):
    return mutant.template.startswith("({on} ?")


def _render(code, begin, end, mutants, numbers):
    parts, position, index = [], begin, 0
    while index < len(mutants):
        outer = mutants[index]
        last = index + 1
        while last < len(mutants) and mutants[last].begin < outer.end:
            last += 1
        parts.append(code[position:outer.begin])
        inner = _render(code, outer.begin, outer.end, mutants[index + 1:last], numbers)
        number = numbers[outer]
        text = outer.template.format(on=f"weir_mutate::on({number})", code=inner.decode())
        parts.append(f"/*<{number}*/{text}/*{number}>*/".encode())
        position, index = outer.end, last
    parts.append(code[position:end])
    return b"".join(parts)


def number_at(rendered, line, column):
    """Returns the number of the innermost mutant at a place of a rendered file (bytes), as a
    compiler counts lines and columns; None if there is none."""
    lines = rendered.splitlines(keepends=True)
    place = sum(map(len, lines[:line - 1])) + column - 1
    innermost = None  # of those that hold the place, the one that begins last
    for begin in re.finditer(rb"/\*<(\d+)\*/", rendered):
        end = rendered.index(b"/*" + begin[1] + b">*/", begin.end())
        if begin.start() <= place < end:
            innermost = int(begin[1])
    return innermost


def plant(code, mutant):
    """Returns the code with this mutant alone, as a build without a selection has it."""
    if mutant.template.startswith("const weir_mutate::Guard"):
        planted = b";"
    elif mutant.operator in ("condition", "negation"):
        planted = f"(static_cast<bool>({mutant.after}))".encode()
    elif is_expression(mutant):
        planted = f"({mutant.after})".encode()
    else:
        planted = ("{ " + mutant.after + " }").encode()
    # Assertions contain line numbers, which stay the same.
    lines = code.count(b"\n", mutant.begin, mutant.end)
    planted = planted.replace(b"\n", b" ") + b"\n" * lines
    return code[:mutant.begin] + planted + code[mutant.end:]
