// Reads any bytes as a query, a form and a Cookie header, and compares the typed arguments with the
// pairs of UrlencodedPairs and with a plain search.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/matching/detail/argument_reader.hpp"
#include "weir/http/message/detail/urlencoded.hpp"
#include "weir/http/test/http_request.hpp"

namespace {

using weir::fuzz::require;
namespace http = weir::http;

struct Fields {
  std::optional<std::string> a;
  std::optional<int> n;
  std::vector<std::string> more;
  std::optional<bool> on;
  std::optional<std::chrono::milliseconds> wait;
  std::vector<std::chrono::sys_seconds> at;
  std::optional<std::filesystem::path> file;
};

/// Returns the values of the pairs of one name, as UrlencodedPairs sees them.
std::vector<std::string> expected(std::string_view text, std::string_view name) {
  std::vector<std::string> values;
  http::RawPair pair;
  while (http::take_pair(text, pair)) {
    if (http::decode_form(pair.name) == name) values.push_back(http::decode_form(pair.value));
  }
  return values;
}

/// Returns true if there is a value for a field that is no string. An empty one is none.
bool has_value(const std::vector<std::string>& values) {
  return !values.empty() && !values[0].empty();
}

/// Reads the values of durations, times and paths once more from their decoded texts.
void check_text_values(std::string_view text, const Fields& fields) {
  namespace values = weir::json::detail;
  const auto wait = expected(text, "wait");
  const auto at = expected(text, "at");
  const auto file = expected(text, "file");
  require(has_value(wait) == fields.wait.has_value() && at.size() == fields.at.size());
  if (fields.wait) {
    std::chrono::milliseconds again{};
    require(values::TextValue<std::chrono::milliseconds>::read(wait[0], again));
    require(again == *fields.wait);
  }
  for (std::size_t index = 0; index < fields.at.size(); ++index) {
    using Time = values::TextValue<std::chrono::sys_seconds>;
    std::chrono::sys_seconds again;
    require(Time::read(at[index], again) && again == fields.at[index]);
    require(Time::read(Time::write(again), again) && again == fields.at[index]);
  }
  if (fields.file) {
    require(fields.file->native() == file[0]);
    require(file[0].find('\0') == std::string::npos);
  }
}

void check_pairs(std::string_view text) {
  Fields fields;
  http::detail::Violations violations;
  http::TextRequest request("POST /");
  http::detail::read_pairs("form", text, request.request(), fields, violations);
  const auto a = expected(text, "a");
  require(fields.a.has_value() == !a.empty());
  if (violations.empty()) {
    require(a.size() <= 1);
    if (fields.a) require(*fields.a == a[0]);
    require(fields.more == expected(text, "more"));
    const auto n = expected(text, "n");
    require(n.size() <= 1 && has_value(n) == fields.n.has_value());
    if (fields.n && n[0].find_first_not_of("0123456789") == std::string::npos &&
        n[0].front() != '0') {
      require(std::to_string(*fields.n) == n[0]);
    }
    const auto on = expected(text, "on");
    require(has_value(on) == fields.on.has_value());
    if (fields.on && *fields.on) require(on[0] == "true" || on[0] == "on" || on[0] == "1");
    if (fields.on && !*fields.on) require(on[0] == "false" || on[0] == "off" || on[0] == "0");
    check_text_values(text, fields);
  } else {
    const auto response = std::move(violations).answer(http::Status::bad_request);
    const http::Problem problem = response.problem();
    require(problem.violations.size() <= http::Problem::violations_max);
    for (const http::Violation& each : problem.violations) require(each.detail.size() < 600);
  }
}

/// Parses the bytes as the value of a Cookie header. A cookie that is found stands in the value.
void check_cookies(std::string_view text) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nCookie: " + std::string(text) + "\r\n\r\n";
  http::HeadParser parser{http::HeadLimits()};
  http::RequestHead parsed;
  const http::ParseResult result = parser.parse(head, parsed);
  if (result.kind != http::ParseResult::Kind::complete || result.consumed != head.size()) return;
  const auto found = http::detail::find_cookie(parsed, "id");
  if (!found) return;
  require(found->find(';') == found->npos);
  bool stands_in_value = false;
  for (std::size_t at = text.find("id="); at != text.npos; at = text.find("id=", at + 1)) {
    std::string_view value = text.substr(at + 3);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    if (value.starts_with('"') && !value.starts_with(*found)) value.remove_prefix(1);
    stands_in_value |= value.starts_with(*found);
  }
  require(stands_in_value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weir::fuzz::ExactCopy copy({reinterpret_cast<const char*>(data), size});
  check_pairs(copy.view());
  check_cookies(copy.view());
  return 0;
}
