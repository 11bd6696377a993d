#include "weir/loop/figures.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "weir/base/detail/counter.hpp"

namespace weir {
namespace {

class Server final : public FigureSource {
 public:
  explicit Server(Figures& figures) { figures.add(*this); }
  ~Server() { leave(); }
  Counter requests;
  Counter open;

 private:
  void tell(FigureSum& sum) const override {
    sum.add({"requests", requests.value()});
    sum.add({"open", open.value(), Figure::Kind::level});
  }
};

std::uint64_t value_of(const Figures& figures, const std::string& name) {
  const FigureSum sum = figures.read();
  for (const Figure& each : sum.figures()) {
    if (each.name == name) return each.value;
  }
  return 0;
}

TEST(Figures, OfSeveralSourcesAreAddedUp) {
  Figures figures;
  EXPECT_TRUE(figures.read().figures().empty());
  Server one(figures);
  Server other(figures);
  one.requests.add(3);
  other.requests.add(4);
  other.open.add();
  EXPECT_EQ(value_of(figures, "requests"), 7U);
  EXPECT_EQ(value_of(figures, "open"), 1U);
  EXPECT_EQ(figures.read().figures().size(), 2U);
}

TEST(Figures, TotalsStayWhenTheirSourceGoes) {
  Figures figures;
  std::optional<Server> server(std::in_place, figures);
  server->requests.add(5);
  server->open.add(2);
  server.reset();
  EXPECT_EQ(value_of(figures, "requests"), 5U);
  EXPECT_EQ(value_of(figures, "open"), 0U);
  server.emplace(figures);
  server->requests.add(1);
  EXPECT_EQ(value_of(figures, "requests"), 6U);
}

TEST(Figures, ASourceCountsWhereItWasAddedLast) {
  std::optional<Figures> first(std::in_place);
  Figures second;
  Server server(*first);
  server.requests.add(2);
  first->add(server);
  EXPECT_EQ(value_of(*first, "requests"), 2U) << "once";
  second.add(server);
  server.requests.add();
  EXPECT_EQ(value_of(*first, "requests"), 2U) << "its totals stay";
  EXPECT_EQ(value_of(second, "requests"), 3U);
  first.reset();
}

TEST(Figures, MayGoBeforeTheirSources) {
  std::optional<Figures> figures(std::in_place);
  const Server one(*figures);
  Server other(*figures);
  figures.reset();
  figures.emplace();
  figures->add(other);
  other.requests.add();
  EXPECT_EQ(value_of(*figures, "requests"), 1U);
}

// Each source by its own thread, among the same others.
TEST(Figures, SourcesOfSeveralThreadsComeAndGo) {
  Figures figures;
  const auto come_and_go = [&] {
    for (int i = 0; i < 1000; ++i) {
      Server server(figures);
      server.requests.add();
      figures.add(server);
    }
  };
  std::thread another(come_and_go);
  come_and_go();
  another.join();
  EXPECT_EQ(value_of(figures, "requests"), 2000U);
}

TEST(Figures, AreReadWhileSourcesComeAndGo) {
  Figures figures;
  std::atomic<bool> done{false};
  std::thread core([&] {
    for (int i = 0; i < 200; ++i) {
      Server server(figures);
      server.requests.add();
    }
    done = true;
  });
  std::uint64_t before = 0;
  while (!done) {
    const std::uint64_t now = value_of(figures, "requests");
    EXPECT_GE(now, before) << "what was counted is never lost";
    before = now;
  }
  core.join();
  EXPECT_EQ(value_of(figures, "requests"), 200U);
}

TEST(Figures, KeepTheCpuTimeOfThreadsThatHaveEnded) {
  Figures figures;
  EXPECT_EQ(figures.cpu_time(), Duration(0));
  Duration own{};
  std::thread([&] {
    figures.thread_begins();
    while (figures.cpu_time() == Duration(0)) {
    }
    figures.thread_ends();
    own = figures.cpu_time();
  }).join();
  EXPECT_GT(own, Duration(0));
  EXPECT_EQ(figures.cpu_time(), own) << "it stays";
  std::thread([&] {
    figures.thread_begins();
    EXPECT_GE(figures.cpu_time(), own) << "the next one's is added";
    figures.thread_ends();
  }).join();
}

}  // namespace
}  // namespace weir
