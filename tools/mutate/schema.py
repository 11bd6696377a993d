"""Writes a source file that holds many mutants, one of which an environment variable selects."""

import re

SELECTION_HEADER = "weir_mutate.hpp"
SELECTION = """// Selects one planted fault; written by tools/mutate.
#pragma once

// Mutants leave variables unused, and the like.
#pragma clang diagnostic ignored "-Weverything"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace weir_mutate {

// One byte for each mutant, in a file that all processes of a test map: 1 if a test reached it.
inline unsigned char* reached() {
  static unsigned char* const bytes = [] {
    const char* const name = std::getenv("WEIR_MUTANTS_REACHED");
    const int file = name == nullptr ? -1 : ::open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return static_cast<unsigned char*>(nullptr);
    void* const made = ::mmap(nullptr, %(size)d, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return made == MAP_FAILED ? nullptr : static_cast<unsigned char*>(made);
  }();
  return bytes;
}

inline int chosen() {
  static const int number = [] {
    const char* const text = std::getenv("WEIR_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return number;
}

constexpr bool on(int number) noexcept {
  if consteval {
    return false;
  } else {
    if (unsigned char* const bytes = reached()) bytes[number] = 1;
    return chosen() == number;
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


def selection_header(count):
    """Returns the header that all files with mutants include."""
    return SELECTION % {"size": max(count, 1)}


def without_overlaps(mutants):
    """Returns those mutants that a file can hold together: each two are nested or apart."""
    kept = []
    for each in mutants:
        if all(apart_or_nested(each, other) for other in kept):
            kept.append(each)
    return kept


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


def numbers_at(rendered, line):
    """Returns the numbers of the mutants that a line of a rendered file (bytes) belongs to."""
    text = rendered.decode()
    found = set()
    for begin in re.finditer(r"/\*<(\d+)\*/", text):
        end = text.index(f"/*{begin[1]}>*/")
        first, last = text.count("\n", 0, begin.start()) + 1, text.count("\n", 0, end) + 1
        if first <= line <= last:
            found.add(int(begin[1]))
    return found


def plant(code, mutant):
    """Returns the code with this mutant alone, as a build without a selection has it."""
    if mutant.template.startswith("const weir_mutate::Guard"):
        planted = b";"
    elif is_expression(mutant):
        planted = f"({mutant.after})".encode()
    else:
        planted = ("{ " + mutant.after + " }").encode()
    # Assertions contain line numbers, which stay the same.
    lines = code.count(b"\n", mutant.begin, mutant.end)
    planted = planted.replace(b"\n", b" ") + b"\n" * lines
    return code[:mutant.begin] + planted + code[mutant.end:]
