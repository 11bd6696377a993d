// Helpers of the operations of the gate.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"

namespace weir::gate {

/// Hides the content of `value` from the compiler, which must then compute it.
template <class T>
void use(T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

inline void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "gate: %s: unexpected result\n", what);
  std::exit(1);
}

inline Loop& loop() {
  static OsPlatform platform;
  static const std::unique_ptr<Loop> made =
      Loop::make(platform, {.backend = BackendChoice::poll}).value();
  return *made;
}

}  // namespace weir::gate
