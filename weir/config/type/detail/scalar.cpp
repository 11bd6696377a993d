// Reads and writes numbers, texts, sizes and addresses.
#include "weir/config/type/detail/scalar.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "weir/json/detail/text_value.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::config {
namespace {

constexpr std::size_t placeholder_size_max = 40;

template <class T>
std::optional<T> parse_whole(std::string_view text) noexcept {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <class T>
void write_json(std::string& out, T value) {
  json::StringWriter writer(out);
  writer.write(value);
  writer.finish();
}

template <class T>
T& as(void* value) noexcept {
  return *static_cast<T*>(value);
}
template <class T>
const T& as(const void* value) noexcept {
  return *static_cast<const T*>(value);
}

}  // namespace

std::optional<std::int64_t> read_signed(const RawValue& raw) noexcept {
  if (raw.kind == RawValue::Kind::integer) return raw.integer;
  if (raw.kind != RawValue::Kind::untyped) return std::nullopt;
  return parse_whole<std::int64_t>(raw.text);
}

std::optional<std::uint64_t> read_unsigned(const RawValue& raw) noexcept {
  if (raw.kind == RawValue::Kind::untyped) return parse_whole<std::uint64_t>(raw.text);
  if (raw.kind != RawValue::Kind::integer || raw.integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(raw.integer);
}

bool is_integer(const RawValue& raw) noexcept {
  if (raw.kind != RawValue::Kind::untyped) return raw.kind == RawValue::Kind::integer;
  std::string_view digits = raw.text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
}

std::optional<double> read_real(const RawValue& raw) noexcept {
  if (is_integer(raw)) {
    // Every integer up to 2^53 is exact as a double.
    constexpr std::int64_t exact_max = std::int64_t{1} << 53;
    const auto integer = read_signed(raw);
    if (!integer || *integer < -exact_max || *integer > exact_max) return std::nullopt;
    return static_cast<double>(*integer);
  }
  std::optional<double> value;
  if (raw.kind == RawValue::Kind::untyped) value = parse_whole<double>(raw.text);
  if (raw.kind == RawValue::Kind::real) value = raw.real;
  if (value && !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::string expected_exact(int bits) {
  return "a number with a decimal point, or an integer that " + std::to_string(bits) +
         " bits hold exactly";
}

std::string expected_names(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    json::detail::append_expected_name(text, names[index], index, names.size());
  }
  return text;
}

std::string placeholder_of_names(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += '|';
    text += name;
  }
  return text.size() > placeholder_size_max ? "NAME" : text;
}

std::string placeholder_of_noun(std::string_view noun) {
  return to_variable_name(noun.substr(noun.find(' ') + 1));
}

void write_text(std::string& out, std::string_view text) {
  write_json(out, text);
}
void write_number(std::string& out, std::int64_t number) {
  write_json(out, number);
}
void write_number(std::string& out, std::uint64_t number) {
  write_json(out, number);
}
void write_number(std::string& out, double number) {
  write_json(out, number);
}

bool BooleanType::read(const RawValue& raw, void* value) const {
  if (raw.kind == RawValue::Kind::boolean) {
    as<bool>(value) = raw.boolean;
    return true;
  }
  if (raw.kind != RawValue::Kind::untyped) return false;
  if (raw.text != "true" && raw.text != "false") return false;
  as<bool>(value) = raw.text == "true";
  return true;
}

void BooleanType::write(std::string& out, const void* value) const {
  write_json(out, as<bool>(value));
}

bool StringType::read(const RawValue& raw, void* value) const {
  if (!raw.is_text()) return false;
  as<std::string>(value) = raw.text;
  return true;
}

void StringType::write(std::string& out, const void* value) const {
  write_text(out, as<std::string>(value));
}

bool ByteSizeType::read(const RawValue& raw, void* value) const {
  std::optional<ByteSize> size;
  if (raw.is_text()) size = json::parse_byte_size(raw.text);
  if (raw.kind == RawValue::Kind::integer && raw.integer >= 0) {
    size = ByteSize(static_cast<std::uint64_t>(raw.integer));
  }
  if (size) as<ByteSize>(value) = *size;
  return size.has_value();
}

void ByteSizeType::write(std::string& out, const void* value) const {
  write_text(out, json::to_text(as<ByteSize>(value)));
}

bool EndpointType::read(const RawValue& raw, void* value) const {
  if (!raw.is_text()) return false;
  auto address = os::Address::parse(raw.text);
  if (address) as<os::Address>(value) = *address;
  return address.has_value();
}

void EndpointType::write(std::string& out, const void* value) const {
  write_text(out, as<os::Address>(value).to_string());
}

}  // namespace weir::config
