// Tests of the queue between cores, of the states of instances, and of failures.
#include "weir/app/lifecycle/detail/lifecycle.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/lifecycle/detail/replacement.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::inject::lifecycle_test {
namespace {

using Values = std::vector<int>;

class BatchQueueTest : public LoopTest {
 protected:
  static void receive(void* batches, Values& batch) {
    static_cast<std::vector<Values>*>(batches)->push_back(batch);
  }
  std::vector<Values> batches_;
};

TEST_F(BatchQueueTest, ValuesThatWaitArriveTogetherInOrder) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  Values first{1, 2};
  Values second{3, 4, 5};
  queue.send(first);
  queue.send(second);
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(batches_.empty()) << "not before the loop's next turn";
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(batches_, (std::vector<Values>{{1, 2, 3, 4, 5}}));
}

TEST_F(BatchQueueTest, LaterValuesArriveInAnotherBatch) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  for (int i = 1; i <= 3; ++i) {
    Values one{i};
    queue.send(one);
    platform_.run_until_idle(*loop_);
  }
  EXPECT_EQ(batches_, (std::vector<Values>{{1}, {2}, {3}}));
}

TEST_F(BatchQueueTest, AnEmptyBatchWakesNothing) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  Values none;
  queue.send(none);
  platform_.run_until_idle(*loop_);
  EXPECT_TRUE(batches_.empty());
}

TEST(LifecycleFailure, OneThatARequesterSawConcernsOnlyChangesOfItsService) {
  Lifecycle::Failure failure{};
  failure.service = ServiceId(1, 1);
  EXPECT_TRUE(failure.affects(ServiceId()));
  EXPECT_TRUE(failure.affects(ServiceId(2, 1)));
  failure.seen_by_requester = true;
  EXPECT_FALSE(failure.affects(ServiceId()));
  EXPECT_FALSE(failure.affects(ServiceId(2, 1)));
  EXPECT_TRUE(failure.affects(ServiceId(1, 1)));
}

constexpr std::array all_states{
    State::waiting, State::waiting_for_children, State::starting, State::cancelling,
    State::running, State::opening_routes,       State::draining, State::stopping,
    State::failed};

/// Returns the states in which `change` leaves an instance legal.
template <class Change>
std::set<State> states_that_permit(Change change) {
  std::set<State> states;
  for (const State each : all_states) {
    Instance instance;
    instance.state = each;
    instance.is_replacement = each == State::opening_routes;
    EXPECT_TRUE(is_legal(instance));
    change(instance);
    if (is_legal(instance)) states.insert(each);
  }
  return states;
}

TEST(StateRules, EachStateHasItsRow) {
  ASSERT_EQ(state_rules.size(), all_states.size());
  for (std::size_t i = 0; i < state_rules.size(); ++i)
    EXPECT_EQ(state_rules[i].state, all_states[i]);
}

TEST(StateRules, NameTheLegalCombinations) {
  using enum State;
  EXPECT_EQ(states_that_permit([](Instance& each) { each.active_dependants = 1; }),
            (std::set{running, opening_routes, draining}));
  EXPECT_EQ(states_that_permit([](Instance& each) { each.has_lazy_requests = true; }),
            (std::set{starting, cancelling, running, opening_routes, draining, stopping}));
  EXPECT_EQ(states_that_permit([](Instance& each) { each.use = Use::dormant; }),
            (std::set{waiting}));
  EXPECT_EQ(states_that_permit([](Instance& each) {
              each.use = Use::dormant;
              each.is_replacement = true;
            }),
            std::set<State>());
  EXPECT_EQ(
      states_that_permit([](Instance& each) { each.is_replacement = false; }).count(opening_routes),
      0U);
  Instance owner;
  EXPECT_EQ(states_that_permit([&owner](Instance& each) {
              each.owner = &owner;
              each.is_replacement = true;
            }),
            std::set<State>());
}

TEST(StateRules, NameTheTransitions) {
  using enum State;
  const std::set<std::pair<State, State>> transitions{{waiting, waiting_for_children},
                                                      {waiting, starting},
                                                      {waiting_for_children, waiting},
                                                      {waiting_for_children, starting},
                                                      {starting, cancelling},
                                                      {starting, running},
                                                      {starting, stopping},
                                                      {starting, failed},
                                                      {cancelling, running},
                                                      {cancelling, stopping},
                                                      {cancelling, waiting},
                                                      {running, opening_routes},
                                                      {running, draining},
                                                      {opening_routes, running},
                                                      {draining, stopping},
                                                      {stopping, waiting},
                                                      {failed, waiting}};
  for (const State from : all_states) {
    for (const State to : all_states) {
      EXPECT_EQ(may_follow(from, to), transitions.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

struct Slow {
  Task<Result<>> start() { return sleep_for(1s); }
  Task<> stop() { std::ignore = co_await sleep(1s); }
  static Task<Result<>> sleep_for(Duration length) { co_return co_await sleep(length); }
};
struct Store : Slow {};
struct Child : Slow {
  explicit Child(Requester) {}
};
struct Owner : Slow {
  Owner(Store&, Child&) {}
};
struct Broken {
  Task<Result<>> start() { co_return fail(Errc::conflict); }
};
template <int N>
struct Page {
  explicit Page(http::ServiceRoutes& routes) {
    routes.get(N == 0 ? "/old" : "/new", [] { return http::text("page"); });
  }
};

/// Moves the instances of a lifecycle by hand and observes their states.
class LifecycleStates : public LoopTest {
 protected:
  template <class T, class... Interfaces>
  ServiceId add() {
    return graph_.add(constructor_registration<T, Interfaces...>(), Placement::per_core, 0, {});
  }
  Instance& instance_of(ServiceId id) {
    return graph_.instance(graph_.slots(graph_.registration(id.index())).front());
  }
  State state_of(ServiceId id) {
    seen_.insert(instance_of(id).state);
    return instance_of(id).state;
  }
  void set_wanted(ServiceId id, bool wanted) {
    instance_of(id).wanted = wanted;
    lifecycle_.enqueue(instance_of(id));
    lifecycle_.run();
  }
  Task<> settle() {
    while (!lifecycle_.settled()) co_await lifecycle_.wait_settled(&Lifecycle::ignore_cancel);
  }
  /// Builds the graph and calls `body` while the lifecycle is open.
  template <class Body>
  void run_open(Body body) {
    run_made([this, &body]() -> Task<> {
      const auto loops = loop_->group().loops();
      graph_.build(1, 0);
      registry_.open(*loop_, loops);
      lifecycle_.open(*loop_, loops, app_, &registry_);
      lifecycle_.start_all(false);
      co_await body();
      lifecycle_.stop_all();
      co_await settle();
      lifecycle_.close();
      registry_.close();
    });
  }

  App app_;
  http::Router router_;
  http::ServiceRouteRegistry registry_{router_};
  Graph graph_;
  Lifecycle lifecycle_{graph_};
  std::set<State> seen_;
};

TEST_F(LifecycleStates, AnInstancePassesThroughTheStatesOfItsStartAndStop) {
  using enum State;
  const ServiceId store = add<Store>();
  add<Child>();
  const ServiceId owner = add<Owner>();
  run_open([&]() -> Task<> {
    EXPECT_EQ(state_of(store), starting);
    EXPECT_EQ(state_of(owner), waiting);
    std::ignore = co_await sleep(1500ms);
    EXPECT_EQ(state_of(store), running);
    EXPECT_EQ(state_of(owner), waiting_for_children);
    std::ignore = co_await sleep(1s);
    EXPECT_EQ(state_of(owner), starting);
    set_wanted(owner, false);
    EXPECT_EQ(state_of(owner), cancelling);
    co_await settle();
    EXPECT_EQ(state_of(owner), waiting);
    set_wanted(owner, true);
    co_await settle();
    EXPECT_EQ(state_of(owner), running);
    lifecycle_.stop_all();
    EXPECT_EQ(state_of(owner), stopping);
    EXPECT_EQ(state_of(store), draining);
    co_await settle();
    EXPECT_EQ(state_of(owner), waiting);
    EXPECT_EQ(state_of(store), waiting);
  });
  EXPECT_EQ(seen_, (std::set{waiting, waiting_for_children, starting, cancelling, running, draining,
                             stopping}));
}

TEST_F(LifecycleStates, AReplacementOpensItsRoutesWhileItRuns) {
  const ServiceId old = add<Page<0>>();
  run_open([&]() -> Task<> {
    co_await settle();
    const ServiceId fresh = add<Page<1>>();
    Replacement replacement(graph_, lifecycle_, old.index(), fresh.index());
    EXPECT_TRUE(replacement.is_possible());
    replacement.create_instances();
    replacement.start();
    co_await settle();
    EXPECT_EQ(state_of(fresh), State::running);
    replacement.open_routes();
    EXPECT_EQ(state_of(fresh), State::opening_routes);
    EXPECT_FALSE(lifecycle_.settled());
    co_await settle();
    EXPECT_EQ(state_of(fresh), State::running);
    replacement.take_routes();
    co_await settle();
    replacement.commit();
    co_await settle();
    replacement.remove_stopped();
    co_await settle();
  });
}

TEST_F(LifecycleStates, AFailureIsKeptWhileItsInstanceIsFailed) {
  const ServiceId broken = add<Broken>();
  run_open([&]() -> Task<> {
    co_await settle();
    EXPECT_EQ(state_of(broken), State::failed);
    lifecycle_.drop_past_failures();
    EXPECT_EQ(lifecycle_.failures().size(), 1U);
    set_wanted(broken, false);
    EXPECT_EQ(state_of(broken), State::waiting);
    lifecycle_.drop_past_failures();
    EXPECT_TRUE(lifecycle_.failures().empty());
    set_wanted(broken, true);
    co_await settle();
    EXPECT_EQ(lifecycle_.failures().size(), 1U);
    graph_.remove(broken.index());
    lifecycle_.drop_past_failures();
    EXPECT_TRUE(lifecycle_.failures().empty()) << "the service was removed";
  });
}

#ifndef NDEBUG
TEST_F(LifecycleStates, AnIllegalTransitionAborts) {
  const ServiceId store = add<Store>();
  run_open([&]() -> Task<> {
    co_await settle();
    EXPECT_DEATH(lifecycle_.clear_failure(instance_of(store)), "may_follow");
  });
}
#endif

}  // namespace
}  // namespace weir::inject::lifecycle_test
