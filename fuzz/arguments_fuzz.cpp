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

/// The pairs of one name, as UrlencodedPairs sees them. A pair whose value has a bad escape fails.
struct Expected {
  std::vector<std::string> values;
  std::size_t bad = 0;
};

Expected expected(std::string_view text, std::string_view name) {
  Expected found;
  http::RawPair pair;
  while (http::take_pair(text, pair)) {
    const auto decoded_name = http::decode_form(pair.name);
    if (!decoded_name || *decoded_name != name) continue;
    auto value = http::decode_form(pair.value);
    if (value) {
      found.values.push_back(std::move(*value));
    } else {
      ++found.bad;
    }
  }
  return found;
}

/// Reads the values of durations, times and paths once more from their decoded texts.
void check_text_values(std::string_view text, const Fields& fields) {
  namespace values = weir::json::detail;
  const Expected wait = expected(text, "wait");
  const Expected at = expected(text, "at");
  const Expected file = expected(text, "file");
  require(wait.values.size() == (fields.wait ? 1 : 0) && at.values.size() == fields.at.size());
  if (fields.wait) {
    std::chrono::milliseconds again{};
    require(values::TextValue<std::chrono::milliseconds>::read(wait.values[0], again));
    require(again == *fields.wait);
  }
  for (std::size_t index = 0; index < fields.at.size(); ++index) {
    using Time = values::TextValue<std::chrono::sys_seconds>;
    std::chrono::sys_seconds again;
    require(Time::read(at.values[index], again) && again == fields.at[index]);
    require(Time::read(Time::write(again), again) && again == fields.at[index]);
  }
  if (fields.file) {
    require(fields.file->native() == file.values[0]);
    require(file.values[0].find('\0') == std::string::npos);
  }
}

void check_pairs(std::string_view text) {
  Fields fields;
  http::detail::Violations violations;
  http::detail::read_pairs("form", text, fields, violations);
  const Expected a = expected(text, "a");
  const Expected more = expected(text, "more");
  const std::size_t pairs_of_a = a.values.size() + a.bad;
  require(fields.a.has_value() == (pairs_of_a > 0));
  if (violations.empty()) {
    require(pairs_of_a <= 1 && a.bad == 0 && more.bad == 0);
    if (fields.a) require(*fields.a == a.values[0]);
    require(fields.more == more.values);
    const Expected n = expected(text, "n");
    require(n.values.size() == (fields.n ? 1 : 0));
    if (fields.n && n.values[0].find_first_not_of("0123456789") == std::string::npos &&
        n.values[0].front() != '0') {
      require(std::to_string(*fields.n) == n.values[0]);
    }
    const Expected on = expected(text, "on");
    if (fields.on) require(on.values[0] == (*fields.on ? "true" : "false"));
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
