// Structs with fields of every configurable type, and functions that load them. Included by tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/config.hpp"

namespace weir::config::test {

enum class Color : std::uint8_t { red, green };

struct Limits {
  ByteSize body_max = 64_KiB;
  std::uint16_t connections_max = 1000;
  std::chrono::milliseconds patience = 250ms;
};
struct Certificate {
  std::string file = "none.pem";
  int days = 90;
};
struct Server {
  Endpoint listen = Endpoint::any(8080);
  Duration idle_timeout = 30s;
  Limits limits;
  std::optional<Certificate> certificate;
};
struct Peer {
  std::string name;
  Endpoint address;
};
struct Settings {
  std::string name = "weir";
  bool verbose = false;
  std::int8_t offset = -1;
  std::uint64_t seed = 7;
  double ratio = 0.5;
  Color color = Color::red;
  std::optional<std::int32_t> level;
  std::vector<std::string> tags = {"first"};
  std::vector<Peer> peers;
  std::map<std::string, Color> colors = {{"sky", Color::green}};
  Server server;
};

}  // namespace weir::config::test

template <>
inline constexpr std::array weir::json::enumerators<weir::config::test::Color>{
    weir::json::Named{weir::config::test::Color::red, "red"},
    weir::json::Named{weir::config::test::Color::green, "green"}};

template <>
inline constexpr std::array weir::config::field_help<weir::config::test::Server>{
    weir::config::FieldHelp{"listen", "where to wait for connections"}};

namespace weir::config::test {

/// A test's sources: the text of a file `a.toml`, the environment and the arguments.
struct TestInput {
  std::string_view file = {};
  std::vector<std::string> environment = {};
  std::vector<std::string> arguments = {};
};

inline Sources sources_of(const TestInput& input) {
  Sources sources;
  sources.program = "test";
  sources.file = "a.toml";
  sources.prefix = "APP";
  sources.environment = input.environment;
  sources.arguments = input.arguments;
  return sources;
}

template <class T = Settings>
LoadResult<T> try_load(const TestInput& input) {
  FileText file;
  file.path = "a.toml";
  file.text = input.file;
  return load<T>(file, sources_of(input));
}

/// Returns the loaded value; the test fails if there is an error.
template <class T = Settings>
T settings(const TestInput& input) {
  auto result = try_load<T>(input);
  EXPECT_TRUE(result.has_value()) << result.error().message();
  return result ? std::move(*result) : T{};
}

/// Returns all errors, one line each; an empty text if there are none.
template <class T = Settings>
std::string errors_of(const TestInput& input) {
  const auto result = try_load<T>(input);
  return result ? std::string() : result.error().message();
}

}  // namespace weir::config::test
