#include "weir/app/describe/detail/descriptor.hpp"

#include <gtest/gtest.h>

#include "weir/app/chosen.hpp"
#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/requester.hpp"

namespace weir::wiring {
namespace {

struct A {};
struct B {
  explicit B(A&) {}
};
struct Reader {
  explicit Reader(const A&) {}
};
struct Any {
  bool operator()(const Properties&) const { return true; }
};

/// What App::shared() asks of each constructor and factory, at compile time.
TEST(Plan, ASharedServiceTakesNothingThatItCouldWrite) {
  static_assert(!only_reads(Parameters<A&>()));
  static_assert(!only_reads(Parameters<const A&, A&>()));
  static_assert(!only_reads(Parameters<Chosen<A, Any>>()));
  static_assert(!only_reads(Parameters<Optional<A>>()));
  static_assert(!only_reads(Parameters<All<A>>()));
  static_assert(!only_reads(Parameters<Lazy<A>>()));
  static_assert(!only_reads(decltype(constructor_parameters<B>())()));
}

TEST(Plan, WhatItReadsAndWhatIsItsOwnItMayTake) {
  static_assert(only_reads(Parameters<>()));
  static_assert(only_reads(Parameters<const A&, Chosen<const A, Any>>()));
  static_assert(only_reads(Parameters<Optional<const A>, All<const A>, Lazy<const A>>()));
  static_assert(only_reads(Parameters<Scope&, Loop&, App&, Requester>()));
  static_assert(only_reads(decltype(constructor_parameters<Reader>())()));
}

}  // namespace
}  // namespace weir::wiring
