// Tests that handles work on their service's core only, also in a shared service that other cores
// call. Every other use ends the program.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "weir/app/app.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::own_core_test {
namespace {

struct Part {
  int value() const { return 7; }
};
struct Late {};
struct Worker {
  int work() { return 8; }
};

/// A shared service on core 0 with all kinds of dynamic parameters.
struct Shared {
  Shared(inject::Optional<const Part> one, inject::All<const Part> every,
         inject::Lazy<const Late> later, inject::Remote<Worker> elsewhere)
      : optional(one), all(every), lazy(later), remote(elsewhere) {}
  inject::Optional<const Part> optional;
  inject::All<const Part> all;
  inject::Lazy<const Late> lazy;
  inject::Remote<Worker> remote;
};

class OwnCoreTest : public testing::Test {
 protected:
  OwnCoreTest() : platform_({.cores = 2}) {
    app_.shared<Part>();
    app_.shared<Late>();
    app_.on_core<Worker>(1);
    app_.shared([this](inject::Optional<const Part> one, inject::All<const Part> every,
                       inject::Lazy<const Late> later, inject::Remote<Worker> elsewhere) {
      auto made = std::make_unique<Shared>(one, every, later, elsewhere);
      shared_ = made.get();
      return made;
    });
  }
  /// Calls `use` with the service on that core.
  void use_on(unsigned core, const std::function<Task<>(const Shared&)>& use) {
    RuntimeOptions options;
    options.cores = 2;
    options.pin = false;
    options.announce = false;
    Runtime runtime(platform_, options);
    const auto body = [&](Scope& scope) -> Task<> {
      if (scope.loop().core() != 0) co_return;
      EXPECT_TRUE(co_await app_.start());
      co_await on_core(core, use, std::cref(*shared_));
      co_await app_.stop();
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }

  MemoryPlatform platform_;
  App app_;
  const Shared* shared_ = nullptr;
};

Task<> look_at_optional(const Shared& shared) {
  EXPECT_TRUE(shared.optional);
  co_return;
}
Task<> look_at_all(const Shared& shared) {
  EXPECT_EQ(shared.all.begin()->value(), 7);
  co_return;
}
Task<> register_callback(const Shared& shared) {
  shared.all.on_change([] {});
  co_return;
}
Task<> get_lazy(const Shared& shared) {
  EXPECT_TRUE(co_await shared.lazy.get());
}
Task<> look_at_remote(const Shared& shared) {
  EXPECT_TRUE(shared.remote);
  co_return;
}
Task<> call_remote(const Shared& shared) {
  EXPECT_EQ((co_await shared.remote.call(&Worker::work)).value(), 8);
}

TEST_F(OwnCoreTest, AllHandlesWorkOnTheOwnCore) {
  for (const auto use :
       {look_at_optional, look_at_all, register_callback, get_lazy, look_at_remote, call_remote}) {
    use_on(0, use);
  }
}

TEST_F(OwnCoreTest, CallsMayBeMadeFromAnyCore) {
  use_on(1, call_remote);
}

#ifndef NDEBUG
TEST_F(OwnCoreTest, OtherHandlesAbortOnAnotherCore) {
  for (const auto use :
       {look_at_optional, look_at_all, register_callback, get_lazy, look_at_remote}) {
    EXPECT_DEATH(use_on(1, use), "another core than its service");
  }
}

TEST_F(OwnCoreTest, AResolvedLazyAbortsOnAnotherCore) {
  const auto get_it_twice = [](const Shared& shared) -> Task<> {
    co_await on_core(0U, get_lazy, std::cref(shared));
    co_await get_lazy(shared);
  };
  EXPECT_DEATH(use_on(1, get_it_twice), "another core than its service");
}
#endif

}  // namespace
}  // namespace weir::own_core_test
