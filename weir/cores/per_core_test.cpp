#include "weir/cores/per_core.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weir/cores/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory_host.hpp"

namespace weir {
namespace {

TEST(PerCore, MakesOneForEachCore) {
  PerCore<std::string> names(3, [](unsigned core) { return "core " + std::to_string(core); });
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names.on(0), "core 0");
  EXPECT_EQ(names.on(2), "core 2");
  PerCore<int> zeros(2);
  EXPECT_EQ(zeros.on(0) + zeros.on(1), 0);
}

TEST(PerCore, HoldsWhatCannotMove) {
  struct Fixed {
    explicit Fixed(unsigned core) : of(core) {}
    Fixed(const Fixed&) = delete;
    Fixed& operator=(const Fixed&) = delete;
    unsigned of;
  };
  PerCore<Fixed> fixed(4, [](unsigned core) { return Fixed(core); });
  for (unsigned core = 0; core < 4; ++core) EXPECT_EQ(fixed.on(core).of, core);
}

TEST(PerCore, SharesNoCacheLine) {
  PerCore<char> values(4);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const auto one = reinterpret_cast<std::uintptr_t>(&values.on(a));
      const auto two = reinterpret_cast<std::uintptr_t>(&values.on(b));
      EXPECT_NE(one / 64, two / 64);
    }
  }
}

TEST(PerCore, LocalIsTheCoresOwn) {
  for (const bool simulated : {true, false}) {
    MemoryHost host({.cores = 3});
    RuntimeOptions options;
    options.announce = false;
    options.cores = 3;
    options.pin = false;
    const auto count = [](Scope& scope, PerCore<long>& counts) -> Task<> {
      for (int i = 0; i < 1000; ++i) {
        counts.local(scope.loop()) += scope.loop().core() + 1;
        co_await yield();
      }
    };
    PerCore<long> counts(3);
    if (simulated) {
      EXPECT_EQ(Runtime(host, options).run_on_each_core(count, std::ref(counts)), 0);
    } else {
      EXPECT_EQ(Runtime(options).run_on_each_core(count, std::ref(counts)), 0);
    }
    for (std::size_t core = 0; core < 3; ++core) {
      EXPECT_EQ(counts.on(core), 1000 * (static_cast<long>(core) + 1));
    }
  }
}

}  // namespace
}  // namespace weir
