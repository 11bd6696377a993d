// Tests of the detection of a constructor's parameters.
#include "weir/app/describe/detail/signature.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/http/client/client.hpp"

namespace weir::inject::signature_test {
namespace {

struct A {};
struct B {};

template <class T>
using Of = decltype(constructor_parameters<T>());

struct Nothing {};
struct One {
  explicit One(const A&) {}
};
struct Implicit {
  Implicit(A&) {}
};
struct Two {
  Two(const A&, B&) {}
};
struct Wrapped {
  Wrapped(inject::Optional<const A>, const inject::All<B>&, inject::Requester) {}
};
struct Movable {
  explicit Movable(A&) {}
  Movable(Movable&&) = default;
};
struct Fixed {
  explicit Fixed(A&) {}
  Fixed(const Fixed&) = delete;
};
struct Base {
  explicit Base(A&) {}
};
struct Inheriting : Base {
  using Base::Base;
};
struct TakesBase {
  explicit TakesBase(Base&) {}
};
struct Members {
  const A& a;
  B& b;
};
struct MembersAndState {
  const A& a;
  int count = 0;
  std::string text;
};
struct State {
  int count = 0;
  std::string text;
};
struct Wide {
  Wide(A&, B&, const A&, const B&, A&, B&, A&, B&, A&, B&, A&, B&, A&, B&, A&, B&) {}
};

TEST(Constructor, ParametersAreFound) {
  static_assert(std::is_same_v<Of<Nothing>, Parameters<>>);
  static_assert(std::is_same_v<Of<One>, Parameters<const A&>>);
  static_assert(std::is_same_v<Of<Implicit>, Parameters<A&>>);
  static_assert(std::is_same_v<Of<Two>, Parameters<const A&, B&>>);
  static_assert(std::is_same_v<Of<Movable>, Parameters<A&>>);
  static_assert(std::is_same_v<Of<Fixed>, Parameters<A&>>);
  static_assert(std::is_same_v<Of<Inheriting>, Parameters<A&>>);
  static_assert(std::is_same_v<Of<TakesBase>, Parameters<Base&>>);
  static_assert(std::is_same_v<Of<Wide>, Parameters<A&, B&, const A&, const B&, A&, B&, A&, B&, A&,
                                                    B&, A&, B&, A&, B&, A&, B&>>);
}

TEST(Constructor, ParametersOfAnAggregateAreItsRequiredMembers) {
  static_assert(std::is_same_v<Of<Members>, Parameters<const A&, B&>>);
  static_assert(std::is_same_v<Of<MembersAndState>, Parameters<const A&>>);
  static_assert(std::is_same_v<Of<State>, Parameters<>>);
}

TEST(Constructor, ParametersByValueAreFound) {
  const auto& parameters = detail::Invoker<ConstructorTag<Wrapped>, Of<Wrapped>>::parameters;
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[0].type, &type<A>);
  EXPECT_EQ(parameters[0].kind, DependencyKind::optional);
  EXPECT_FALSE(parameters[0].writable);
  EXPECT_EQ(parameters[1].type, &type<B>);
  EXPECT_EQ(parameters[1].kind, DependencyKind::optional);
  EXPECT_TRUE(parameters[1].writable);
  EXPECT_EQ(parameters[2].kind, DependencyKind::requester);
}

struct SeveralWays {
  explicit SeveralWays(A&) {}
  SeveralWays(A&, B&) {}
};
struct SameCount {
  explicit SameCount(A&) {}
  explicit SameCount(B&) {}
};
struct WithDefault {
  explicit WithDefault(A&, int = 0) {}
};
struct OptionallyNothing {
  OptionallyNothing() = default;
  explicit OptionallyNothing(A&) {}
};
struct Options {
  int count = 0;
  std::string text;
};
struct OptionallyAValue {
  explicit OptionallyAValue(Options = {}) {}
  OptionallyAValue(const OptionallyAValue&) = delete;
};
struct OptionallyTwoValues {
  OptionallyTwoValues() = default;
  OptionallyTwoValues(int, A&) {}
};
struct SeveralOptionalValues {
  explicit SeveralOptionalValues(Options = {}, int = 0) {}
};
struct OptionallyAHandle {
  OptionallyAHandle() = default;
  explicit OptionallyAHandle(inject::Optional<A>) {}
};
struct ByRvalue {
  explicit ByRvalue(A&&) {}
};
class Private {
  explicit Private(A&) {}
};

TEST(Constructor, AmbiguousOrPrivateConstructorsAreRejected) {
  static_assert(has_one_constructor<One>);
  static_assert(has_one_constructor<Nothing>);
  static_assert(!has_one_constructor<SeveralWays>);
  static_assert(!has_one_constructor<SameCount>);
  static_assert(!has_one_constructor<WithDefault>);
  static_assert(!has_one_constructor<OptionallyNothing>);
  static_assert(!has_one_constructor<ByRvalue>);
  static_assert(!has_one_constructor<Private>);
}

TEST(Constructor, AClassThatTakesOptionalValuesIsMadeWithoutArguments) {
  static_assert(std::is_same_v<Of<OptionallyAValue>, Parameters<>>);
  static_assert(std::is_same_v<Of<OptionallyTwoValues>, Parameters<>>);
  static_assert(std::is_same_v<Of<http::Client>, Parameters<>>);
  static_assert(!has_one_constructor<SeveralOptionalValues>);
  static_assert(!has_one_constructor<OptionallyAHandle>);
}

}  // namespace
}  // namespace weir::inject::signature_test
