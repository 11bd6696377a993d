#include "weir/http/literal_paths.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_map>

namespace weir::http {
namespace {

TEST(LiteralPaths, OneOfALengthAndSeveral) {
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

TEST(LiteralPaths, FindsWhatAMapFinds) {
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
}  // namespace weir::http
