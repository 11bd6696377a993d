// Tests of the rules for the parameters of shared services.
#include "weir/app/describe/detail/descriptor.hpp"

#include <gtest/gtest.h>

#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"

namespace weir::inject::descriptor_test {
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

/// Checks what App::shared() requires of each constructor and factory at compile time.
TEST(TypeDescriptor, ASharedServiceTakesNothingWritable) {
  static_assert(!has_only_const_dependencies(Parameters<A&>()));
  static_assert(!has_only_const_dependencies(Parameters<const A&, A&>()));
  static_assert(!has_only_const_dependencies(Parameters<inject::Where<A, Any>>()));
  static_assert(!has_only_const_dependencies(Parameters<inject::Optional<A>>()));
  static_assert(!has_only_const_dependencies(Parameters<inject::All<A>>()));
  static_assert(!has_only_const_dependencies(Parameters<inject::Lazy<A>>()));
  static_assert(!has_only_const_dependencies(decltype(constructor_parameters<B>())()));
  EXPECT_FALSE(has_only_const_dependencies(Parameters<A&>()));
  EXPECT_FALSE(has_only_const_dependencies(Parameters<const A&, inject::Lazy<A>>()));
}

TEST(TypeDescriptor, ASharedServiceTakesConstServicesAndItsOwnHandles) {
  static_assert(has_only_const_dependencies(Parameters<>()));
  static_assert(has_only_const_dependencies(Parameters<const A&, inject::Where<const A, Any>>()));
  static_assert(has_only_const_dependencies(
      Parameters<inject::Optional<const A>, inject::All<const A>, inject::Lazy<const A>>()));
  static_assert(has_only_const_dependencies(Parameters<Scope&, Loop&, App&, Requester>()));
  static_assert(has_only_const_dependencies(decltype(constructor_parameters<Reader>())()));
  EXPECT_TRUE(has_only_const_dependencies(Parameters<const A&, inject::Optional<const A>>()));
  EXPECT_TRUE(has_only_const_dependencies(Parameters<Scope&, Requester>()));
}

}  // namespace
}  // namespace weir::inject::descriptor_test
