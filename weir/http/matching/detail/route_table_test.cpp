// Tests of the routing table.
#include "weir/http/matching/detail/route_table.hpp"

#include <gtest/gtest.h>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"

// Installs hooks that the sanitizers call for each allocation; absent in builds without
// sanitizers.
extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, std::size_t),
    void (*free_hook)(const volatile void*));

namespace weir::http::route_table_test {
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

/// Returns the pattern of the route that matches and its path parameters.
std::string found(const Router& router, RouteMatch& match, const std::string& path) {
  const TextRequest request("GET " + path);
  router.match(request.head(), match);
  if (!match.found()) return "";
  std::string said = match.route()->pattern.text();
  for (std::size_t index = 0; index < match.path_params().size(); ++index) {
    said.append("|").append(match.path_params()[index]);
  }
  return said;
}

TEST(RouteTable, DistinguishesTenThousandRoutes) {
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

void add(RouteStore& store, const std::string& text) {
  auto made = route("GET", text);
  const auto added = store.add(made);
  ASSERT_TRUE(added && added->conflict == nullptr) << text;
}

/// Uses routes with every combination of `a` and `{x}`. Each node of their tree matches a path of
/// `a`, and only the last segment does not match. Two hundred look-ups visit 3 million nodes. The
/// test would time out if other branches visited a node again.
TEST(RouteTable, VisitsEachNodeAtMostOnce) {
  constexpr unsigned segments = 12;
  RouteStore store;
  std::string path;
  for (unsigned segment = 0; segment < segments; ++segment) path += "/a";
  for (unsigned bits = 0; bits < (1U << segments); ++bits) {
    std::string text;
    for (unsigned segment = 0; segment < segments; ++segment) {
      text += (bits >> segment & 1U) != 0 ? "/a" : "/{x}";
    }
    add(store, text + "/end");
  }
  const RouteTable& table = store.table();
  RouteMatch match;
  for (int count = 0; count < 200; ++count) {
    table.find({.path = path + "/miss", .has_escapes = false}, match);
    ASSERT_FALSE(match.found());
  }
  table.find({.path = path + "/end", .has_escapes = false}, match);
  ASSERT_TRUE(match.found());
  EXPECT_TRUE(match.route()->pattern.is_literal());
}

TEST(RouteTable, HandlesPathsOfAnyLength) {
  RouteStore store;
  add(store, "/a/{x}");
  add(store, "/a/{x}/b/{rest...}");
  const RouteTable& table = store.table();
  std::string path = "/a/x/b";
  RouteMatch match;
  for (int count = 0; count < 20000; ++count) path += "/";
  table.find({.path = path, .has_escapes = false}, match);
  ASSERT_TRUE(match.found());
  EXPECT_EQ(match.path_params()[1].size(), 19999U);
  path[5] = 'c';
  table.find({.path = path, .has_escapes = false}, match);
  EXPECT_FALSE(match.found());
}

TEST(RouteTable, KeepsTheFirstOfEqualRoutes) {
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

/// Starts to count allocations. Returns false without a sanitizer; the count then stays 0.
bool count_allocations() {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) return false;
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { ++allocations; }, [](const volatile void*) {});
  EXPECT_GT(installed, 0);
  return true;
}

TEST(RouteTable, LooksUpWithoutAllocating) {
  const bool counts = count_allocations();
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
  EXPECT_EQ(look_up_all() != 0, counts) << "the first round makes room for the long segment";
  EXPECT_EQ(look_up_all(), 0U);
}

}  // namespace

namespace {

TEST(LiteralPaths, FindsUniqueAndSharedLengths) {
  LiteralPaths<const int*> paths;
  const int values[] = {0, 1, 2};
  EXPECT_EQ(paths.find("/"), nullptr);
  paths.insert("/", &values[0]);
  paths.insert("/one", &values[1]);
  EXPECT_EQ(paths.find("/"), &values[0]);
  EXPECT_EQ(paths.find("/one"), &values[1]);
  EXPECT_EQ(paths.find("/two"), nullptr);
  EXPECT_EQ(paths.find(""), nullptr);
  paths.insert("/two", &values[2]);
  paths.insert("/two", &values[0]);
  EXPECT_EQ(paths.find("/one"), &values[1]);
  EXPECT_EQ(paths.find("/two"), &values[2]);
  EXPECT_EQ(paths.find("/six"), nullptr);
}

TEST(LiteralPaths, AgreesWithAMap) {
  std::mt19937 random(7);
  const auto draw = [&] {
    std::string path = "/";
    for (std::size_t left = random() % 60; left > 0; --left) {
      path += static_cast<char>('a' + random() % 2);
    }
    return path;
  };
  for (int round = 0; round < 50; ++round) {
    LiteralPaths<const int*> paths;
    std::unordered_map<std::string, const int*> map;
    static const int values[40] = {};
    for (std::size_t i = random() % 40; i > 0; --i) {
      const std::string path = draw();
      paths.insert(path, &values[i]);
      map.emplace(path, &values[i]);
    }
    for (const auto& [path, value] : map) EXPECT_EQ(paths.find(path), value) << path;
    for (int i = 0; i < 100; ++i) {
      const std::string path = draw();
      const auto there = map.find(path);
      EXPECT_EQ(paths.find(path), there == map.end() ? nullptr : there->second) << path;
    }
  }
}

}  // namespace
}  // namespace weir::http::route_table_test
