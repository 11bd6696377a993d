// Parses any bytes as a duration, a size, a file, variables and arguments. An accepted value
// survives writing and parsing. An error message contains printable characters only.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/config/config.hpp"

namespace {

using weir::ByteSize;
using weir::Duration;
using weir::Endpoint;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;

namespace config = weir::config;
namespace json = weir::json;

enum class Color : std::uint8_t { red, green };

struct Leaf {
  std::vector<std::int8_t> numbers;
  std::map<std::string, Color> colors;
  std::chrono::milliseconds wait{5};
  std::chrono::sys_time<std::chrono::milliseconds> at;
  std::filesystem::path file;
};
struct Settings {
  bool a = false;
  double b = 0;
  std::uint64_t c = 0;
  std::string d;
  ByteSize e;
  Endpoint f;
  std::optional<Leaf> g;
  std::vector<Leaf> h;
  std::map<std::string, Leaf> i;
};

}  // namespace

template <>
inline constexpr std::array weir::json::enumerators<Color>{
    weir::json::Named{Color::red, "red"}, weir::json::Named{Color::green, "green"}};

namespace {

/// Returns the lines of `text`.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void check_units(std::string_view text) {
  if (const auto length = json::parse_duration(text)) {
    require(length->count() >= 0);
    require(json::parse_duration(json::to_text(*length)) == length);
  }
  namespace values = json::detail;
  for (const std::int64_t most : {std::int64_t{7'000'000'000}, INT64_MAX}) {
    const values::TimeScale scale{1000, -most, most};
    if (const auto ticks = values::parse_time(text, scale)) {
      require(values::parse_time(values::time_text(*ticks, scale.tick), scale) == ticks);
    }
  }
  if (const auto size = json::parse_byte_size(text)) {
    require(json::parse_byte_size(json::to_text(*size)) == size);
  }
}

void check_load(const config::FileText& file, const config::Sources& sources) {
  const auto loaded = config::load<Settings>(file, sources);
  if (loaded) return;
  const config::Errors& errors = loaded.error();
  require(!errors.empty() && errors.all.size() <= config::Errors::errors_max);
  for (const config::Error& each : errors.all) {
    require(!each.source.empty() && !each.what.empty());
    for (const char letter : each.message()) {
      require(static_cast<unsigned char>(letter) >= ' ' && letter != '\x7f');
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ExactCopy copy({reinterpret_cast<const char*>(data) + 1, size - 1});
  const std::string_view text = copy.view();
  config::FileText file;
  file.path = "a.toml";
  config::Sources sources;
  sources.prefix = "X";
  switch (data[0] % 4) {
    case 0:
      check_units(text);
      break;
    case 1:
      file.text = text;
      break;
    case 2:
      sources.environment = lines_of(text);
      break;
    default:
      sources.arguments = lines_of(text);
      break;
  }
  check_load(file, sources);
  return 0;
}
