#include "weir/http/router/detail/route_store.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_request.hpp"

namespace weir::http::route_store_test {
namespace {

Response nothing() {
  return Status::ok;
}
Response one(std::string_view) {
  return Status::ok;
}

template <class F>
std::unique_ptr<Route> route(const std::string& method, const std::string& text, F handler) {
  return std::make_unique<Route>(
      Route{method, Pattern::parse(text).value(), Handler::of(handler), {}});
}

template <class F>
RouteId add(RouteStore& store, const std::string& text, F handler) {
  auto made = route("GET", text, handler);
  return store.add(made).value().id;
}

/// Returns the pattern of the route that is found.
std::string found(const RouteTable& table, const std::string& path) {
  const TextRequest request("GET " + path);
  RouteMatch match;
  table.match(request.head(), match);
  return match.found() ? match.route()->pattern.text() : "";
}

TEST(RouteStore, IdsAreUniqueAndSlotsAreReused) {
  RouteStore store;
  const RouteId a = add(store, "/a", nothing);
  const RouteId b = add(store, "/b", nothing);
  auto gone = store.extract(a);
  EXPECT_EQ(store.find(a), nullptr);
  EXPECT_EQ(store.find(b)->id, b);
  const auto before = store.rebuild();
  store.slots().release(gone->slot);
  const RouteId again = add(store, "/a", nothing);
  EXPECT_NE(again, a);
  EXPECT_NE(again, b);
  EXPECT_EQ(store.find(again)->slot, gone->slot);
  EXPECT_EQ(store.size(), 2U);
}

TEST(RouteStore, TableStaysUnchangedUntilTheNextOneIsMade) {
  RouteStore store;
  const RouteId a = add(store, "/a", nothing);
  add(store, "/{x:[a-z]}", one);
  add(store, "/{x:[a-y]}", one);
  const auto gone = store.extract(a);
  EXPECT_EQ(found(store.table(), "/a"), "/a");
  const auto before = store.rebuild();
  EXPECT_EQ(found(*before, "/a"), "/a");
  EXPECT_EQ(found(store.table(), "/a"), "/{x:[a-z]}") << "in the order of registration";
}

/// Returns the route for a request line, or the router's own status and Allow.
std::string answer_to(const RouteTable& table, const std::string& line) {
  TextRequest request(line);
  RouteMatch match;
  table.match(request.head(), match);
  if (match.found()) return match.route()->method + " " + match.route()->pattern.text();
  const Response response = match.respond(request.request());
  return std::to_string(code_of(response.status())) + " " +
         std::string(response.headers().get("Allow").value_or(""));
}

TEST(RouteStore, RemovedRoutesLeaveNoTraceInTheAnswers) {
  constexpr std::array<const char*, 6> segments{"/a", "/b", "/{x}", "/{x:[ab]}", "/{x:a|c}", "/"};
  constexpr std::array<const char*, 3> methods{"GET", "POST", "BREW"};
  constexpr std::array<const char*, 5> pieces{"/a", "/b", "/c", "/%61", "/"};
  std::mt19937 random(20'261'122);
  const auto below = [&](std::size_t count) { return random() % count; };
  const auto path = [&](const auto& of) {
    std::string text;
    for (std::size_t count = 1 + below(3); count > 0; --count) text += of[below(of.size())];
    return text;
  };
  for (int round = 0; round < 100; ++round) {
    RouteStore store;
    RouteStore alone;
    std::vector<RouteId> ids;
    for (int count = 0; count < 12; ++count) {
      const std::string end = below(4) == 0 ? "/{rest...}" : "";
      auto made = route(methods[below(3)], path(segments) + end, nothing);
      const auto added = store.add(made).value();
      if (added.conflict == nullptr) ids.push_back(added.id);
    }
    std::vector<std::unique_ptr<Route>> gone;
    for (const RouteId id : ids) {
      if (below(3) != 0) {
        auto same = route(store.find(id)->method, store.find(id)->pattern.text(), nothing);
        ASSERT_TRUE(alone.add(same));
      } else {
        gone.push_back(store.extract(id));
      }
    }
    const auto before = store.rebuild();
    for (int count = 0; count < 40; ++count) {
      const std::string line = std::string(methods[below(3)]) + " " + path(pieces);
      ASSERT_EQ(answer_to(store.table(), line), answer_to(alone.table(), line)) << line;
    }
  }
}

TEST(RouteStore, EqualRegexesAreCompiledOnceAndLiveAsLongAsTheirRoutes) {
  RouteStore store;
  const RouteId first = add(store, "/a/{x:[0-9]+}", one);
  const RouteId second = add(store, "/b/{x:[0-9]+}", one);
  const auto regex = [&](RouteId id) { return store.find(id)->params[0].regex.get(); };
  EXPECT_EQ(regex(first), regex(second));
  store.extract(first).reset();
  auto before = store.rebuild();
  before.reset();
  EXPECT_EQ(found(store.table(), "/b/17"), "/b/{x:[0-9]+}");
  EXPECT_EQ(found(store.table(), "/b/x"), "");
  EXPECT_EQ(found(store.table(), "/a/17"), "");
}

TEST(RouteStore, RejectedRouteStaysWithTheCaller) {
  RouteStore store;
  add(store, "/a", nothing);
  auto same = route("GET", "/a", nothing);
  const auto added = store.add(same);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->conflict->pattern.text(), "/a");
  EXPECT_NE(same, nullptr);
  auto connect = route("CONNECT", "/b", nothing);
  EXPECT_EQ(store.add(connect).error(), Errc::bad_input);
  EXPECT_NE(connect, nullptr);
  EXPECT_EQ(store.size(), 1U);
}

TEST(RouteStore, RemovedMethodsMakeRoomForOthers) {
  RouteStore store;
  std::size_t added = 0;
  for (;; ++added) {
    auto made = route("M" + std::to_string(added), "/a", nothing);
    if (!store.add(made)) break;
  }
  EXPECT_GT(added, 50U);
  store.extract(RouteId{0}).reset();
  static_cast<void>(store.rebuild());
  auto another = route("ANOTHER", "/a", nothing);
  EXPECT_TRUE(store.add(another));
}

TEST(RouteStore, RegexesOfFormerRoutesLeaveNoMemoryBehind) {
  RouteStore store;
  const auto come_and_go = [&store](int number) {
    const std::string pattern = "/{x:[a-z]{" + std::to_string(number) + "}}";
    const RouteId id = add(store, pattern, one);
    const auto gone = store.extract(id);
    store.slots().release(gone->slot);
    static_cast<void>(store.rebuild());
  };
  for (int number = 100; number < 110; ++number) come_and_go(number);
  const std::size_t before = allocated_bytes();
  for (int number = 110; number < 200; ++number) come_and_go(number);
  EXPECT_LE(allocated_bytes(), before + 1024);
}

TEST(RouteStore, SlotsAreDistinctWhileTheyAreHeld) {
  RouteSlots slots;
  EXPECT_EQ(slots.acquire(), 0U);
  EXPECT_EQ(slots.acquire(), 1U);
  EXPECT_EQ(slots.acquire(), 2U);
  slots.release(1);
  slots.release(0);
  const std::size_t fourth = slots.acquire();
  const std::size_t fifth = slots.acquire();
  EXPECT_LT(fourth, 2U);
  EXPECT_LT(fifth, 2U);
  EXPECT_NE(fourth, fifth);
  EXPECT_EQ(slots.acquire(), 3U);
}

}  // namespace
}  // namespace weir::http::route_store_test
