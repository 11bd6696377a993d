// Reads and writes traceparent and tracestate.
#include "weir/telemetry/traces/trace_headers.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::telemetry {
namespace {

constexpr std::uint8_t sampled_flag = 0x01;
constexpr std::uint8_t random_flag = 0x02;
constexpr std::size_t long_entry = 128;  // bytes; longer entries are dropped first

/// The values of the digits; 16 for another character.
constexpr std::array<std::uint8_t, 256> digit_values = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(16);
  for (std::uint8_t value = 0; value < 16; ++value) {
    values[static_cast<std::uint8_t>("0123456789abcdef"[value])] = value;
  }
  return values;
}();

unsigned digit_of(char character) noexcept {
  return digit_values[static_cast<std::uint8_t>(character)];
}

/// Reads 2 * out.size() digits.
bool read_hex(std::string_view text, std::span<std::uint8_t> out) noexcept {
  unsigned wrong = 0;
  for (std::size_t index = 0; index < out.size(); ++index) {
    const unsigned high = digit_of(text[2 * index]);
    const unsigned low = digit_of(text[2 * index + 1]);
    wrong |= (high | low) & 16;
    out[index] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return wrong == 0;
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::uint8_t each : bytes) {
    out += digits[each >> 4];
    out += digits[each & 15];
  }
}

template <std::size_t N>
bool is_zero(const std::array<std::uint8_t, N>& id) noexcept {
  return std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; });
}

template <class Id>
std::optional<Id> parse_id(std::string_view text) noexcept {
  Id id;
  if (text.size() != 2 * id.size() || !read_hex(text, id) || is_zero(id)) return std::nullopt;
  return id;
}

bool is_lower_or_digit(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9');
}

/// Returns true for a key of Level 2 (§3.3.1.3.1), which includes all keys of Level 1.
bool is_key(std::string_view text) noexcept {
  if (text.empty() || text.size() > 256 || !is_lower_or_digit(text.front())) return false;
  return std::ranges::all_of(text, [](char each) {
    return is_lower_or_digit(each) || std::string_view("_-*/@").contains(each);
  });
}

bool is_value(std::string_view text) noexcept {
  if (text.empty() || text.size() > 256 || text.back() == ' ') return false;
  return std::ranges::all_of(
      text, [](char each) { return each >= ' ' && each <= '~' && each != ',' && each != '='; });
}

}  // namespace

std::string to_hex(const TraceId& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

std::string to_hex(const SpanId& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

std::optional<TraceId> parse_trace_id(std::string_view text) noexcept {
  return parse_id<TraceId>(text);
}

std::optional<SpanId> parse_span_id(std::string_view text) noexcept {
  return parse_id<SpanId>(text);
}

std::string TraceParent::text() const {
  std::string out;
  out.reserve(text_size);
  out += "00-";
  append_hex(out, trace_id);
  out += '-';
  append_hex(out, parent_id);
  const auto flags =
      static_cast<std::uint8_t>((sampled ? sampled_flag : 0) | (random ? random_flag : 0));
  out += '-';
  append_hex(out, std::span(&flags, 1));
  return out;
}

std::optional<TraceParent> parse_traceparent(std::string_view text) noexcept {
  if (text.size() < TraceParent::text_size) return std::nullopt;
  std::uint8_t version = 0;
  std::uint8_t flags = 0;
  TraceParent parent;
  const bool digits = read_hex(text, std::span(&version, 1)) &&
                      read_hex(text.substr(3), parent.trace_id) &&
                      read_hex(text.substr(36), parent.parent_id) &&
                      read_hex(text.substr(53), std::span(&flags, 1));
  if (!digits || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  if (version == 0xff || is_zero(parent.trace_id) || is_zero(parent.parent_id)) return std::nullopt;
  if (text.size() > TraceParent::text_size) {
    if (version == 0 || text[TraceParent::text_size] != '-') return std::nullopt;
  }
  parent.sampled = (flags & sampled_flag) != 0;
  parent.random = (flags & random_flag) != 0;
  return parent;
}

Result<TraceState> TraceState::parse(std::string_view text) {
  TraceState state;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = http::trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) return fail(Errc::bad_input);
    const std::string_view key = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (!is_key(key) || !is_value(value) || state.get(key)) return fail(Errc::bad_input);
    if (state.size() == entries_max) return fail(Errc::bad_input);
    state.entries_.push_back({std::string(key), std::string(value)});
  }
  return state;
}

std::optional<std::string_view> TraceState::get(std::string_view key) const noexcept {
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return std::nullopt;
  return found->value;
}

Result<> TraceState::set(std::string_view key, std::string_view value) {
  if (!is_key(key) || !is_value(value)) return fail(Errc::bad_input);
  std::erase_if(entries_, [key](const Entry& each) { return each.key == key; });
  entries_.insert(entries_.begin(), {std::string(key), std::string(value)});
  if (entries_.size() > entries_max) entries_.pop_back();
  return {};
}

std::string TraceState::text() const {
  std::size_t size = entries_.empty() ? 0 : entries_.size() - 1;  // the commas
  for (const Entry& each : entries_) size += each.size();
  const bool drops_long = size > bytes_max;
  std::string out;
  for (const Entry& each : entries_) {
    if (drops_long && each.size() > long_entry) continue;
    if (out.size() + !out.empty() + each.size() > bytes_max) break;
    if (!out.empty()) out += ',';
    out.append(each.key).append("=").append(each.value);
  }
  return out;
}

}  // namespace weir::telemetry
