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
#include "weir/http/test/http_request.hpp"

namespace weir::http {
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
RouteId add(RouteBook& book, const std::string& text, F handler) {
  auto made = route("GET", text, handler);
  return book.add(made).value().id;
}

/// The pattern of the route that is found.
std::string found(const RouteTable& table, const std::string& path) {
  const TextRequest request("GET " + path);
  RouteMatch match;
  table.match(request.head(), match);
  return match.found() ? match.route()->pattern.text() : "";
}

TEST(RouteBook, IdsAreNeverUsedAgainAndSlotsAre) {
  RouteBook book;
  const RouteId a = add(book, "/a", nothing);
  const RouteId b = add(book, "/b", nothing);
  auto gone = book.take_out(a);
  EXPECT_EQ(book.find(a), nullptr);
  EXPECT_EQ(book.find(b)->id, b);
  const auto before = book.rebuild();
  book.slots().give_back(gone->slot);
  const RouteId again = add(book, "/a", nothing);
  EXPECT_NE(again, a);
  EXPECT_NE(again, b);
  EXPECT_EQ(book.find(again)->slot, gone->slot);
  EXPECT_EQ(book.size(), 2U);
}

TEST(RouteBook, ATableStaysAsItIsUntilTheNextIsMade) {
  RouteBook book;
  const RouteId a = add(book, "/a", nothing);
  add(book, "/{x:[a-z]}", one);
  add(book, "/{x:[a-y]}", one);
  const auto gone = book.take_out(a);
  EXPECT_EQ(found(book.table(), "/a"), "/a");
  const auto before = book.rebuild();
  EXPECT_EQ(found(*before, "/a"), "/a");
  EXPECT_EQ(found(book.table(), "/a"), "/{x:[a-z]}") << "in the order of registration";
}

/// What is said of a path: the route, or the router's own status and Allow.
std::string said(const RouteTable& table, const std::string& line) {
  TextRequest request(line);
  RouteMatch match;
  table.match(request.head(), match);
  if (match.found()) return match.route()->method + " " + match.route()->pattern.text();
  const Response response = match.answer(request.request());
  return std::to_string(code_of(response.status())) + " " +
         std::string(response.fields().get("Allow").value_or(""));
}

TEST(RouteBook, AfterAnyRemovalsItAnswersAsIfTheOthersHadBeenAlone) {
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
    RouteBook book;
    RouteBook alone;
    std::vector<RouteId> ids;
    for (int count = 0; count < 12; ++count) {
      const std::string end = below(4) == 0 ? "/{rest...}" : "";
      auto made = route(methods[below(3)], path(segments) + end, nothing);
      const auto added = book.add(made).value();
      if (added.conflict == nullptr) ids.push_back(added.id);
    }
    std::vector<std::unique_ptr<Route>> gone;
    for (const RouteId id : ids) {
      if (below(3) != 0) {
        auto same = route(book.find(id)->method, book.find(id)->pattern.text(), nothing);
        ASSERT_TRUE(alone.add(same));
      } else {
        gone.push_back(book.take_out(id));
      }
    }
    const auto before = book.rebuild();
    for (int count = 0; count < 40; ++count) {
      const std::string line = std::string(methods[below(3)]) + " " + path(pieces);
      ASSERT_EQ(said(book.table(), line), said(alone.table(), line)) << line;
    }
  }
}

TEST(RouteBook, EqualExpressionsAreCompiledOnceAndLiveAsLongAsARouteHasThem) {
  RouteBook book;
  const RouteId first = add(book, "/a/{x:[0-9]+}", one);
  const RouteId second = add(book, "/b/{x:[0-9]+}", one);
  const auto expression = [&](RouteId id) { return book.find(id)->captures[0].expression.get(); };
  EXPECT_EQ(expression(first), expression(second));
  book.take_out(first).reset();
  auto before = book.rebuild();
  before.reset();
  EXPECT_EQ(found(book.table(), "/b/17"), "/b/{x:[0-9]+}");
  EXPECT_EQ(found(book.table(), "/b/x"), "");
  EXPECT_EQ(found(book.table(), "/a/17"), "");
}

TEST(RouteBook, ARouteThatIsRefusedStaysItsOwners) {
  RouteBook book;
  add(book, "/a", nothing);
  auto same = route("GET", "/a", nothing);
  const auto added = book.add(same);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->conflict->pattern.text(), "/a");
  EXPECT_NE(same, nullptr);
  auto connect = route("CONNECT", "/b", nothing);
  EXPECT_EQ(book.add(connect).error(), Errc::bad_input);
  EXPECT_NE(connect, nullptr);
  EXPECT_EQ(book.size(), 1U);
}

TEST(RouteBook, MethodsThatHaveGoneMakeRoomForOthers) {
  RouteBook book;
  std::size_t added = 0;
  for (;; ++added) {
    auto made = route("M" + std::to_string(added), "/a", nothing);
    if (!book.add(made)) break;
  }
  EXPECT_GT(added, 50U);
  book.take_out(RouteId{0}).reset();
  static_cast<void>(book.rebuild());
  auto another = route("ANOTHER", "/a", nothing);
  EXPECT_TRUE(book.add(another));
}

}  // namespace
}  // namespace weir::http
