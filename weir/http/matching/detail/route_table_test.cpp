#include "weir/http/matching/detail/route_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"

// Told by the sanitizers of every allocation; absent in builds without them.
extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, std::size_t),
    void (*free_hook)(const volatile void*));

namespace weir::http {
namespace {

Response nothing() {
  return Status::ok;
}
Response one(std::string_view) {
  return Status::ok;
}
Response two(std::string_view, std::string_view) {
  return Status::ok;
}

template <class F>
void add(Router& router, const std::string& text, F handler) {
  ASSERT_TRUE(router.get(Pattern::parse(text).value(), handler)) << text;
}

/// The pattern of the route that is found, and what it caught.
std::string found(const Router& router, RouteMatch& match, const std::string& path) {
  const TextRequest request("GET " + path);
  router.match(request.head(), match);
  if (!match.found()) return "";
  std::string said = match.route()->pattern.text();
  for (std::size_t index = 0; index < match.captures().size(); ++index) {
    said.append("|").append(match.captures()[index]);
  }
  return said;
}

TEST(RouteTable, TellsTenThousandRoutesApart) {
  Router router;
  for (int number = 0; number < 5000; ++number) {
    const std::string path = "/api/v" + std::to_string(number % 7) + "/r" + std::to_string(number);
    add(router, path, nothing);
    add(router, path + "/{id}/items/{item}", two);
  }
  RouteMatch match;
  for (int number = 0; number < 5000; ++number) {
    const std::string path = "/api/v" + std::to_string(number % 7) + "/r" + std::to_string(number);
    ASSERT_EQ(found(router, match, path), path);
    ASSERT_EQ(found(router, match, path + "/4/items/x"), path + "/{id}/items/{item}|4|x");
    ASSERT_EQ(found(router, match, path + "x"), "");
    ASSERT_EQ(found(router, match, path + "/4/items"), "");
  }
}

std::unique_ptr<Route> route(const std::string& method, const std::string& text) {
  return std::make_unique<Route>(
      Route{method, Pattern::parse(text).value(), Handler::of(nothing), {}});
}

void add(RouteBook& book, const std::string& text) {
  auto made = route("GET", text);
  const auto added = book.add(made);
  ASSERT_TRUE(added && added->conflict == nullptr) << text;
}

/// Routes of every mix of `a` and `{x}`: each node of their tree matches a path of `a`, and only at
/// its end is there nothing. Two hundred look-ups visit 3 million nodes, or, if any were visited
/// again from another branch, far more than this test has time for.
TEST(RouteTable, VisitsEachNodeAtMostOnce) {
  constexpr unsigned segments = 12;
  RouteBook book;
  std::string path;
  for (unsigned segment = 0; segment < segments; ++segment) path += "/a";
  for (unsigned bits = 0; bits < (1U << segments); ++bits) {
    std::string text;
    for (unsigned segment = 0; segment < segments; ++segment) {
      text += (bits >> segment & 1U) != 0 ? "/a" : "/{x}";
    }
    add(book, text + "/end");
  }
  const RouteTable& table = book.table();
  RouteMatch match;
  for (int count = 0; count < 200; ++count) {
    table.find({.path = path + "/miss", .has_escapes = false}, match);
    ASSERT_FALSE(match.found());
  }
  table.find({.path = path + "/end", .has_escapes = false}, match);
  ASSERT_TRUE(match.found());
  EXPECT_TRUE(match.route()->pattern.is_literal());
}

TEST(RouteTable, PathsOfAnyLengthAreOnlyMissed) {
  RouteBook book;
  add(book, "/a/{x}");
  add(book, "/a/{x}/b/{rest...}");
  const RouteTable& table = book.table();
  std::string path = "/a/x/b";
  RouteMatch match;
  for (int count = 0; count < 20000; ++count) path += "/";
  table.find({.path = path, .has_escapes = false}, match);
  ASSERT_TRUE(match.found());
  EXPECT_EQ(match.captures()[1].size(), 19999U);
  path[5] = 'c';
  table.find({.path = path, .has_escapes = false}, match);
  EXPECT_FALSE(match.found());
}

TEST(RouteTable, LeavesWhatItHasWhenARouteIsTheSame) {
  RouteTable table;
  const auto first = route("GET", "/a");
  const auto again = route("GET", "/a");
  EXPECT_EQ(table.add(*first).value(), first.get());
  EXPECT_EQ(table.add(*again).value(), first.get());
  RouteMatch match;
  table.find({.path = "/a", .has_escapes = false}, match);
  EXPECT_EQ(match.route(), first.get());
}

std::size_t allocations = 0;

/// Starts to count allocations, once; false where nothing can.
bool count_allocations() {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) return false;
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { ++allocations; }, [](const volatile void*) {});
  return installed > 0;
}

TEST(RouteTable, LooksUpWithoutTheHeap) {
  if (!count_allocations()) GTEST_SKIP() << "only the address sanitizer counts allocations";
  Router router;
  router.get("/literal", nothing);
  router.get("/one/{x}", one);
  router.get("/digits/{x:[0-9]+}", one);
  router.get("/date/{x:([0-9]+)-[0-9]+}", two);
  router.get("/rest/{x}/{rest...}", two);
  std::vector<std::unique_ptr<TextRequest>> requests;
  const std::string long_text(1200, 'a');
  for (const std::string path :
       {"/literal", "/lit%65ral", "/one/a", "/one/%61", "/digits/12", "/date/2024-11",
        "/rest/%61/b", "/missed", "/one/a/missed", "/literal/", "/one/%41", "/one/%41LONG"}) {
    std::string target = path;
    if (target.ends_with("LONG")) target.replace(target.size() - 4, 4, long_text);
    for (const char* method : {"GET ", "POST ", "OPTIONS ", "PURGE "}) {
      requests.push_back(std::make_unique<TextRequest>(method + target));
    }
  }
  RouteMatch match;
  const auto look_up_all = [&router, &requests, &match] {
    const std::size_t before = allocations;
    for (const auto& request : requests) router.match(request->head(), match);
    return allocations - before;
  };
  EXPECT_GT(look_up_all(), 0U) << "the first round makes room for the long segment";
  EXPECT_EQ(look_up_all(), 0U);
}

}  // namespace
}  // namespace weir::http
