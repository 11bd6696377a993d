// Parses any bytes as JSON. Another library accepts the same texts with the same meaning. An
// accepted value survives writing and parsing, and reading and skipping agree. An error message
// contains printable characters only.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/json.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::json::MissingFields;
using weir::json::ReadOptions;
using weir::json::UnknownFields;

enum class Color : std::uint8_t { red, green };

struct Point {
  std::int64_t x;
  std::optional<double> y;
};
struct Line {
  std::vector<Point> points;
  std::optional<float> y;
};
struct Tree {
  std::string name;
  std::int16_t level = 3;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Point, Line> value;
  std::vector<Tree> children;
  std::map<std::string, std::uint64_t> counts;
  std::map<std::int16_t, Color> colors;
  std::unique_ptr<Tree> next;
  std::optional<std::tuple<std::int8_t, std::array<bool, 2>>> pair;
  std::optional<std::chrono::duration<std::int32_t, std::milli>> wait;
  std::optional<std::chrono::sys_time<std::chrono::microseconds>> at;
  std::optional<std::filesystem::path> file;
};
struct Nothing {};

struct AnyValue {
  std::variant<std::nullptr_t, bool, double, std::string, std::vector<AnyValue>,
               std::map<std::string, AnyValue>>
      held;
};

}  // namespace

template <>
inline constexpr std::array weir::json::enumerators<Color>{
    weir::json::Named{Color::red, "red"}, weir::json::Named{Color::green, "green"}};

template <>
struct weir::json::Codec<AnyValue> {
  using Held = decltype(AnyValue::held);
  static bool read(Reader& in, AnyValue& value) { return Codec<Held>::read(in, value.held); }
  static void write(Writer& out, const AnyValue& value) { Codec<Held>::write(out, value.held); }
};

namespace {

void check_error(const weir::json::Error& error, std::size_t size) {
  require(!error.what.empty() && error.offset <= size && error.path.size() <= 600);
  for (const char each : error.message()) require(each >= ' ' && each <= '~');
}

/// Checks that a value survives writing and parsing, and that the written text is JSON.
template <class T>
void check_writing(const T& value, const ReadOptions& options) {
  const std::string text = weir::json::write(value);
  require(nlohmann::json::accept(text));
  const auto again = weir::json::read<T>(text, options);
  require(again.has_value());
  require(weir::json::write(*again) == text);
}

/// Checks that read_all_errors() accepts what read() accepts, and finds its error first.
void check_all_errors(std::string_view text, const ReadOptions& options,
                      const weir::json::Read<Tree>& tree) {
  Tree again;
  const auto errors = weir::json::read_all_errors(again, text, options);
  require(errors.empty() == tree.has_value() && errors.size() <= options.errors_max);
  for (const weir::json::Error& each : errors) check_error(each, text.size());
  if (tree) return;
  const weir::json::Error& first = errors.front();
  require(first.path == tree.error().path && first.what == tree.error().what &&
          first.offset == tree.error().offset && first.code == tree.error().code);
}

void check_struct(std::string_view text, const ReadOptions& options) {
  const auto tree = weir::json::read<Tree>(text, options);
  check_all_errors(text, options, tree);
  if (!tree) return check_error(tree.error(), text.size());
  check_writing(*tree, options);
}

void check_any(std::string_view text) {
  const ReadOptions deep{.depth_max = 1000};
  const auto value = weir::json::read<AnyValue>(text, deep);
  // Weir alone has a limit and rejects duplicate names, a byte order mark and a zero at the end.
  const bool ours =
      !value && (value.error().code == weir::Errc::limit_reached ||
                 value.error().what == "given twice" || text.starts_with("\xEF\xBB\xBF"));
  if (!value) check_error(value.error(), text.size());
  if (!ours && text.find('\0') == std::string_view::npos) {
    require(value.has_value() == nlohmann::json::accept(text));
  }
  if (!value) return;
  require(weir::json::is_well_formed(text, deep));
  check_writing(*value, deep);
  require(nlohmann::json::parse(weir::json::write(*value)) == nlohmann::json::parse(text));
  const std::string member = "{\"x\":" + std::string(text) + "}";
  const auto skipped = weir::json::read<Nothing>(
      ExactCopy(member).view(), {.unknown_fields = UnknownFields::skip, .depth_max = 1000});
  require(skipped.has_value() || skipped.error().code == weir::Errc::limit_reached);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ExactCopy copy(std::string_view(reinterpret_cast<const char*>(data), size));
  check_struct(copy.view(), {.element_bytes_max = 1 << 20});
  check_struct(copy.view(), {.unknown_fields = UnknownFields::skip,
                             .missing_fields = MissingFields::keep,
                             .element_bytes_max = 1 << 20});
  check_any(copy.view());
  return 0;
}
