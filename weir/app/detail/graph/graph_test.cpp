// Tests of the service graph: places of removed services, and services that return.
#include "weir/app/detail/graph/graph.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

#include "weir/app/app.hpp"

namespace weir::inject::graph_test {
namespace {

struct Base {};
struct User {
  User(Base&, All<Base>) {}
};
struct Own {
  explicit Own(Requester) {}
};
struct OwnUser {
  OwnUser(Base&, Own&) {}
};

/// The indices that the instances of a service and their dependencies have.
struct Places {
  Index registration = no_index;
  Index slots = no_index;
  std::set<Index> instances;
  std::set<Index> dependencies;
  std::set<Index> dynamic;
  std::set<Index> children;
  bool operator==(const Places&) const = default;
};

class GraphTest : public testing::Test {
 protected:
  GraphTest() {
    add<Base>();
    add<Own>();
    graph_.build(2, 0);
    graph_.take_touched();
  }

  template <class T>
  ServiceId add() {
    return graph_.add(constructor_registration<T>(), Placement::per_core, 0, {});
  }
  Places places_of(ServiceId id) {
    const Registration& registration = graph_.registration(id.index());
    Places places;
    places.registration = id.index();
    places.slots = registration.slots;
    for (const Index each : graph_.slots(registration)) {
      const Instance& instance = graph_.instance(each);
      places.instances.insert(each);
      places.dependencies.insert(instance.first_dependency);
      for (std::size_t i = 0; i < registration.descriptor->parameters.size(); ++i) {
        const Dependency& dependency = instance.dependencies[i];
        if (dependency.child) places.children.insert(dependency.provider);
        if (!graph_.is_dynamic(dependency)) continue;
        const auto& seen = graph_.dynamic_providers_of(dependency).dependencies;
        places.dynamic.insert(seen.begin(), seen.end());
      }
    }
    return places;
  }
  /// Adds a service, and removes it again.
  template <class T>
  Places add_and_remove() {
    const ServiceId id = add<T>();
    EXPECT_EQ(graph_.extend(), std::vector<Index>{id.index()});
    const Places places = places_of(id);
    graph_.remove(id.index());
    EXPECT_EQ(graph_.find(id), nullptr);
    graph_.take_touched();
    return places;
  }

  Graph graph_;
};

TEST_F(GraphTest, ARemovedServiceGivesItsPlacesBack) {
  const Index registrations = graph_.registration_count();
  const Index instances = graph_.instance_count();
  const Places user = add_and_remove<User>();
  EXPECT_EQ(user.instances.size(), 2U) << "one for each core";
  EXPECT_EQ(user.dependencies.size(), 2U);
  EXPECT_EQ(user.dynamic.size(), 2U) << "each core has one Base";
  for (int round = 0; round < 3; ++round) EXPECT_EQ(add_and_remove<User>(), user);
  EXPECT_EQ(graph_.registration_count(), registrations + 1) << "only the first round adds a place";
  EXPECT_EQ(graph_.instance_count(), instances + 2);
}

TEST_F(GraphTest, AnInstanceByRequestGivesItsPlaceBackWithItsOwner) {
  const Index instances = graph_.instance_count();
  for (int round = 0; round < 4; ++round) {
    const Places user = add_and_remove<OwnUser>();
    EXPECT_EQ(user.instances.size(), 2U);
    EXPECT_EQ(user.children.size(), 2U);
    EXPECT_EQ(graph_.instance_count(), instances + 2 + 2);
  }
}

TEST_F(GraphTest, AWithdrawnServiceReturnsToItsPlaces) {
  const ServiceId id = add<User>();
  EXPECT_TRUE(graph_.is_pending(id.index()));
  graph_.extend();
  EXPECT_FALSE(graph_.is_pending(id.index()));
  const Places places = places_of(id);
  for (int round = 0; round < 3; ++round) {
    graph_.withdraw(id.index());
    ASSERT_NE(graph_.find(id), nullptr);
    EXPECT_TRUE(graph_.slots(*graph_.find(id)).empty());
    for (const Index each : places.instances) {
      EXPECT_EQ(graph_.instance(each).registration, nullptr);
    }
    graph_.extend_by(id.index());
    EXPECT_EQ(places_of(id), places);
  }
  graph_.withdraw(id.index());
  graph_.remove(id.index());
  EXPECT_EQ(graph_.find(id), nullptr);
}

TEST_F(GraphTest, ARemovedProviderIsReplacedByTheOnlyOther) {
  const ServiceId user = add<User>();
  graph_.extend();
  const Index instance = *places_of(user).instances.begin();
  const Index before = graph_.instance(instance).dependencies[0].provider;
  ASSERT_NE(before, no_index);
  graph_.take_touched();
  graph_.remove(graph_.instance(before).registration_index);
  EXPECT_EQ(graph_.instance(instance).dependencies[0].provider, no_index);
  EXPECT_TRUE(
      graph_.dynamic_providers_of(graph_.instance(instance).dependencies[1]).dependencies.empty());
  const ServiceId other = add<Base>();
  graph_.extend();
  const Index after = graph_.instance(instance).dependencies[0].provider;
  ASSERT_NE(after, no_index);
  EXPECT_EQ(graph_.instance(after).registration_index, other.index());
  EXPECT_EQ(graph_.instance(after).core, graph_.instance(instance).core);
  EXPECT_EQ(
      graph_.dynamic_providers_of(graph_.instance(instance).dependencies[1]).dependencies.size(),
      1U);
}

struct Any {
  bool operator()(const Properties&) const { return true; }
};
struct FirstUser {
  explicit FirstUser(Where<Base, Any>) {}
};

TEST_F(GraphTest, AServiceThatReturnsKeepsItsPlaceInTheOrderOfRegistration) {
  const auto provider_of = [this](ServiceId user) {
    const Index instance = *places_of(user).instances.begin();
    const Index provider = graph_.instance(instance).dependencies[0].provider;
    return graph_.instance(provider).registration_index;
  };
  const ServiceId before = add<FirstUser>();
  const ServiceId second = add<Base>();
  graph_.extend();
  const Index first = provider_of(before);
  EXPECT_NE(first, second.index());
  graph_.withdraw(first);
  EXPECT_EQ(provider_of(before), second.index());
  graph_.extend_by(first);
  EXPECT_EQ(provider_of(before), second.index()) << "a bound dependency keeps its provider";
  const ServiceId after = add<FirstUser>();
  graph_.extend();
  EXPECT_EQ(provider_of(after), first);
}

}  // namespace
}  // namespace weir::inject::graph_test
