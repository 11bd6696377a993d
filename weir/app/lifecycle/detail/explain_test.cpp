// Tests of App::explain() and of its formats.
#include "weir/app/lifecycle/detail/explain.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/handles/lazy.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/json/read.hpp"

namespace weir::explain_test {
namespace {

struct Store {
  Task<Result<>> start() {
    std::ignore = co_await sleep(10s);
    co_return {};
  }
};
struct Web {
  Web(Store&, inject::Optional<Store>) {}
};
struct Lost {
  explicit Lost(Web&) {}
};
struct Stubborn {
  explicit Stubborn(Web&) {}
  Task<> stop() { std::ignore = co_await sleep(3s); }
};

class ExplainTest : public AppTest {
 protected:
  const ServiceReport& find(const Explanation& explanation, std::string_view name) {
    const auto found = std::ranges::find_if(
        explanation.services, [&](const auto& each) { return each.name.ends_with(name); });
    EXPECT_NE(found, explanation.services.end()) << name;
    return *found;
  }
  bool waits_for(const ServiceReport& report, std::string_view part) {
    return std::ranges::any_of(
        report.waits_for, [&](const std::string& each) { return each.find(part) != each.npos; });
  }
};

TEST_F(ExplainTest, IsEmptyBeforeTheStart) {
  EXPECT_TRUE(app_.explain().services.empty());
  EXPECT_EQ(app_.explain().to_text(), "");
}

TEST_F(ExplainTest, AWaitingServiceHasReasonsAndADuration) {
  app_.per_core<Web>();
  const ServiceId store = app_.per_core<Store>();
  Explanation meanwhile;
  platform_.at(platform_.now() + 4s, [&] { meanwhile = app_.explain(); });
  ASSERT_TRUE(start());
  EXPECT_EQ(find(meanwhile, "::Store").state, ServiceState::starting);
  EXPECT_EQ(find(meanwhile, "::Store").state_duration, 4s);
  EXPECT_EQ(find(meanwhile, "::Web").state, ServiceState::waiting);
  EXPECT_TRUE(waits_for(find(meanwhile, "::Web"), "::Store on core 0"));
  EXPECT_NE(meanwhile.to_text().find("::Web on core 0: waiting for "), std::string::npos);

  const Explanation after = app_.explain();
  EXPECT_EQ(find(after, "::Web").state, ServiceState::running);
  EXPECT_TRUE(find(after, "::Web").waits_for.empty());
  EXPECT_EQ(after.services[find(after, "::Web").uses.at(0)].name, find(after, "::Store").name);
  EXPECT_EQ(find(after, "::Web").may_use.size(), 1U);
  EXPECT_EQ(find(after, "::Store").id, store);

  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_TRUE(waits_for(find(app_.explain(), "::Store"), "App::start(id)"));
  EXPECT_TRUE(waits_for(find(app_.explain(), "::Web"), "::Store"));
  ASSERT_TRUE(run(app_.remove(store)));
  EXPECT_TRUE(waits_for(find(app_.explain(), "::Web"), "which no service provides"));
  stop();
  EXPECT_TRUE(waits_for(find(app_.explain(), "::Web"), "the app's start"));
}

TEST_F(ExplainTest, AStoppingServiceWaitsForItsDependants) {
  app_.per_core<Web>();
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Stubborn>();
  ASSERT_TRUE(start());
  Explanation meanwhile;
  platform_.at(platform_.now() + 1s, [&] { meanwhile = app_.explain(); });
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_EQ(find(meanwhile, "::Store").state, ServiceState::stopping);
  EXPECT_TRUE(waits_for(find(meanwhile, "::Store"), "::Web"));
  EXPECT_TRUE(waits_for(find(meanwhile, "::Web"), "::Stubborn"));
  EXPECT_EQ(find(meanwhile, "::Stubborn").state_duration, 1s);
  stop();
}

struct Slow {
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return {};
  }
  Task<> stop() { std::ignore = co_await sleep(3s); }
};
struct Quick {
  explicit Quick(Slow&) {}
};
/// A service that may exist once only.
struct Only {
  Only(Slow&, bool its_fault) : fault(its_fault) {}
  Task<Result<>> start() {
    if (fault) co_return fail(Errc::unsupported);
    co_return {};
  }
  bool fault;
};

TEST_F(ExplainTest, AReplacedServiceWaitsForTheOthers) {
  const ServiceId slow = app_.per_core<Slow>();
  app_.per_core<Quick>();
  ASSERT_TRUE(start());
  const ServiceId next = app_.per_core<Slow>();
  Explanation meanwhile;
  platform_.at(platform_.now() + 2s, [&] { meanwhile = app_.explain(); });
  ASSERT_TRUE(run(app_.replace(slow, next)));
  ASSERT_EQ(meanwhile.services.size(), 5U) << "the journal, and two of each";
  EXPECT_EQ(find(meanwhile, "::Slow").state, ServiceState::stopping);
  EXPECT_EQ(find(meanwhile, "::Quick").state, ServiceState::waiting);
  EXPECT_TRUE(waits_for(find(meanwhile, "::Quick"), "the end of a replacement"));
  EXPECT_EQ(app_.explain().services.size(), 3U);
  stop();
}

TEST_F(ExplainTest, AFailedReplacementWaitsForTheOthers) {
  const ServiceId slow = app_.per_core<Slow>();
  bool one = false;
  app_.per_core([&](Slow& below) { return Only(below, std::exchange(one, true)); });
  ASSERT_TRUE(start());
  const ServiceId next = app_.per_core<Slow>();
  Explanation meanwhile;
  platform_.at(platform_.now() + 2s, [&] { meanwhile = app_.explain(); });
  EXPECT_EQ(run(app_.replace(slow, next)).error(), Errc::unsupported);
  ASSERT_EQ(meanwhile.services.size(), 5U) << "the journal, and two of each";
  std::ranges::reverse(meanwhile.services);
  EXPECT_TRUE(waits_for(find(meanwhile, "::Only"), "the end of a replacement"));
  stop();
}

struct StopsSlowly {
  Task<> stop() { std::ignore = co_await sleep(3s); }
};

template <class T>
std::string name() {
  return std::string(inject::type<T>.name);
}
using Reasons = std::vector<std::string>;

struct Own {
  explicit Own(inject::Requester) {}
};
struct Owner {
  Owner(Own&, Slow&) {}
};
struct Lazily {
  explicit Lazily(inject::Lazy<Quick>) {}
};

TEST_F(ExplainTest, AServiceThatIsNotNeededWaitsForARequest) {
  const ServiceId slow = app_.per_core<Slow>();
  app_.per_core<Quick>();
  app_.per_core<Lazily>();
  app_.per_core<Own>();
  app_.per_core<Owner>();
  ASSERT_TRUE(start());
  EXPECT_EQ(find(app_.explain(), "::Quick").waits_for, Reasons{"a request through inject::Lazy"});
  const auto lazily = find(app_.explain(), "::Lazily");
  EXPECT_TRUE(lazily.uses.empty());
  ASSERT_EQ(lazily.may_use.size(), 1U);
  EXPECT_EQ(app_.explain().services[lazily.may_use[0]].name, name<Quick>());
  EXPECT_EQ(find(app_.explain(), "::Own").state, ServiceState::running);
  ASSERT_TRUE(run(app_.stop(slow)));
  EXPECT_EQ(find(app_.explain(), "::Own").waits_for,
            Reasons{"a request by " + name<Owner>() + " on core 0"});
  EXPECT_EQ(find(app_.explain(), "::Owner").waits_for,
            (Reasons{name<Own>() + " on core 0", name<Slow>() + " on core 0"}));
  EXPECT_EQ(find(app_.explain(), "::Slow").waits_for, Reasons{"App::start(id)"});
  stop();
}

TEST_F(ExplainTest, OnlyServicesThatRunOrStopAreWaitedFor) {
  app_.per_core<Quick>();
  const ServiceId slow = app_.per_core<Slow>();
  const ServiceId owner = app_.per_core<Owner>();
  app_.per_core<Own>();
  app_.per_core([](Quick&) { return StopsSlowly(); });
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.stop(owner)));
  Explanation meanwhile;
  platform_.at(platform_.now() + 1s, [&] { meanwhile = app_.explain(); });
  ASSERT_TRUE(run(app_.stop(slow)));
  EXPECT_EQ(find(meanwhile, "::Slow").state, ServiceState::stopping);
  EXPECT_EQ(find(meanwhile, "::Slow").waits_for, Reasons{name<Quick>() + " on core 0"});
  EXPECT_EQ(find(meanwhile, "::Quick").waits_for, Reasons{name<StopsSlowly>() + " on core 0"});
  EXPECT_TRUE(find(meanwhile, "::StopsSlowly").waits_for.empty());
  stop();
}

template <int>
struct Plain {};

TEST_F(ExplainTest, ServicesAreInOrderOfRegistration) {
  const ServiceId first = app_.per_core<Plain<0>>();
  app_.per_core<Own>();
  app_.per_core([](Own&) { return Plain<1>(); });
  const auto names = [this] {
    Reasons all;
    for (const ServiceReport& each : app_.explain().services) all.push_back(each.name);
    return all;
  };
  ASSERT_TRUE(start());
  EXPECT_EQ(names(), (Reasons{name<Journal>(), name<Plain<0>>(), name<Plain<1>>(), name<Own>()}))
      << "an instance that is made by request comes last";
  ASSERT_TRUE(run(app_.remove(first)));
  app_.per_core<Plain<2>>();
  ASSERT_TRUE(run(app_.apply()));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(names(), (Reasons{name<Journal>(), name<Plain<1>>(), name<Plain<2>>(), name<Own>()}))
        << "a later service follows, even if it has the index of a removed service";
    const Explanation explanation = app_.explain();
    EXPECT_EQ(explanation.services[1].uses, std::vector<std::size_t>{3});
    stop();
    if (round == 0) {
      ASSERT_TRUE(start());
    }
  }
}

struct Failing {
  Task<Result<>> start() { co_return fail(Errc::unsupported); }
};

TEST_F(ExplainTest, AFailedServiceHasAReason) {
  ASSERT_TRUE(start());
  app_.per_core<Failing>();
  EXPECT_FALSE(run(app_.apply()));
  const Explanation explanation = app_.explain();
  EXPECT_EQ(find(explanation, "::Failing").state, ServiceState::failed);
  EXPECT_EQ(find(explanation, "::Failing").failure, make_error_code(Errc::unsupported).message());
  stop();
}

struct FailsWithSlow {
  explicit FailsWithSlow(Slow&) {}
  static Task<Result<>> start() { co_return fail(Errc::unsupported); }
};
struct StopsSlowlyWithSlow : StopsSlowly {
  explicit StopsSlowlyWithSlow(Slow&) {}
};

TEST_F(ExplainTest, AFailedServiceIsNotWaitedFor) {
  const ServiceId slow = app_.per_core<Slow>();
  app_.per_core<StopsSlowlyWithSlow>();
  ASSERT_TRUE(start());
  app_.per_core<FailsWithSlow>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::unsupported);
  Explanation meanwhile;
  platform_.at(platform_.now() + 1s, [&] { meanwhile = app_.explain(); });
  ASSERT_TRUE(run(app_.stop(slow)));
  EXPECT_EQ(find(meanwhile, "::FailsWithSlow").state, ServiceState::failed);
  EXPECT_EQ(find(meanwhile, "::Slow").waits_for,
            Reasons{name<StopsSlowlyWithSlow>() + " on core 0"});
  stop();
}

TEST_F(ExplainTest, AServiceThatHasNeverBeenNeededHasNoDuration) {
  app_.per_core<Slow>();
  app_.per_core<Quick>();
  app_.per_core<Lazily>();
  ASSERT_TRUE(start());
  platform_.advance(*loop_, 7s);
  EXPECT_EQ(find(app_.explain(), "::Quick").state, ServiceState::waiting);
  EXPECT_EQ(find(app_.explain(), "::Quick").state_duration, Duration::zero());
  EXPECT_EQ(find(app_.explain(), "::Lazily").state_duration, 8s) << "Slow starts for 1 s";
  stop();
}

TEST(FailureText, NamesNoDependantsOfARemovedService) {
  inject::Graph graph;
  const ServiceId plain = graph.add(inject::constructor_registration<StopsSlowly>(),
                                    Placement::per_core, 0, ServiceOptions());
  graph.build(1, 0);
  inject::Lifecycle::Failure failure{};
  failure.instance = graph.slots(*graph.find(plain))[0];
  failure.service = plain;
  failure.name = "Store on core 0";
  failure.why = "no luck";
  EXPECT_EQ(inject::failure_text(graph, failure), "Store on core 0 could not start: no luck");
  graph.remove(plain.index());
  EXPECT_EQ(inject::failure_text(graph, failure), "Store on core 0 could not start: no luck");
}

/// A chain of services, in which each one requires the one before.
template <std::size_t N>
struct Link {
  explicit Link(Link<N - 1>&) {}
};
template <>
struct Link<0> {};

TEST(FailureText, NamesAtMost32Dependants) {
  const auto dependants_of_first = []<std::size_t... I>(std::index_sequence<I...>) {
    inject::Graph graph;
    std::vector<ServiceId> ids{graph.add(inject::constructor_registration<Link<I>>(),
                                         Placement::per_core, 0, ServiceOptions())...};
    graph.build(1, 0);
    inject::Lifecycle::Failure failure{};
    failure.instance = graph.slots(*graph.find(ids[0]))[0];
    failure.service = ids[0];
    const std::string text = inject::failure_text(graph, failure);
    std::size_t found = 0;
    for (auto at = text.find("required by"); at != text.npos; at = text.find("required by", at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(dependants_of_first(std::make_index_sequence<32>()), 31U);
  EXPECT_EQ(dependants_of_first(std::make_index_sequence<33>()), 32U);
  EXPECT_EQ(dependants_of_first(std::make_index_sequence<35>()), 32U);
}

struct NeedsFailing {
  explicit NeedsFailing(const Failing&) {}
};
struct Watching {
  explicit Watching(inject::Optional<NeedsFailing>) {}
};
struct NeedsWatching {
  explicit NeedsWatching(Watching&) {}
};

TEST_F(ExplainTest, AFailureNamesTheServicesThatNeedTheFailedOne) {
  app_.shared<Failing>();
  app_.per_core<NeedsFailing>();
  app_.per_core<Watching>();
  app_.per_core<NeedsWatching>();
  EXPECT_EQ(start().error(), Errc::unsupported);
  EXPECT_EQ(app_.errors(), (Reasons{name<Failing>() + " could not start: " +
                                    make_error_code(Errc::unsupported).message() +
                                    "; required by " + name<NeedsFailing>() +
                                    " on core 0; used by " + name<Watching>() + " on core 0"}));
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
}

TEST_F(ExplainTest, IsAlsoADotGraphAndJson) {
  app_.per_core<Web>();
  app_.per_core<Store>();
  ASSERT_TRUE(start());
  const Explanation explanation = app_.explain();
  const std::string dot = explanation.to_dot();
  EXPECT_TRUE(dot.starts_with("digraph services {"));
  EXPECT_NE(dot.find("n1 -> n2;"), dot.npos) << dot;
  EXPECT_NE(dot.find("n1 -> n2 [style=dashed];"), dot.npos) << dot;

  struct Service {
    std::string name;
    std::string placement;
    unsigned core;
    std::string state;
    double seconds;
    std::vector<std::string> waits_for;
    std::string failure;
    std::vector<std::size_t> uses;
    std::vector<std::size_t> may_use;
  };
  struct Services {
    std::vector<Service> services;
  };
  const auto read = json::read<Services>(explanation.to_json());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->services.size(), 3U);
  EXPECT_EQ(read->services[0].placement, "shared");
  EXPECT_EQ(read->services[1].uses, (std::vector<std::size_t>{2}));
  EXPECT_EQ(read->services[2].state, "running");
  stop();
}

}  // namespace
}  // namespace weir::explain_test
