#include "weir/config/type/detail/scalar.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "weir/json/detail/writer.hpp"

namespace weir::config {
namespace {

constexpr std::size_t word_size_max = 40;

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

std::optional<std::int64_t> read_signed(const Given& given) noexcept {
  if (given.kind == Given::Kind::integer) return given.integer;
  if (given.kind != Given::Kind::bare) return std::nullopt;
  return parse_whole<std::int64_t>(given.text);
}

std::optional<std::uint64_t> read_unsigned(const Given& given) noexcept {
  if (given.kind == Given::Kind::bare) return parse_whole<std::uint64_t>(given.text);
  if (given.kind != Given::Kind::integer || given.integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(given.integer);
}

std::optional<double> read_real(const Given& given) noexcept {
  std::optional<double> value;
  if (given.kind == Given::Kind::bare) value = parse_whole<double>(given.text);
  if (given.kind == Given::Kind::real) value = given.real;
  if (given.kind == Given::Kind::integer) {
    // Every whole number up to 2^53 is a double.
    constexpr std::int64_t exact_max = std::int64_t{1} << 53;
    if (given.integer < -exact_max || given.integer > exact_max) return std::nullopt;
    value = static_cast<double>(given.integer);
  }
  if (value && !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::string expected_signed(std::int64_t least, std::int64_t most) {
  return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

std::string expected_unsigned(std::uint64_t most) {
  return "an integer from 0 to " + std::to_string(most);
}

std::string expected_names(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (index > 0) text += index + 1 == names.size() ? " or " : ", ";
    text.append("\"").append(names[index]).append("\"");
  }
  return text;
}

std::string word_of_names(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += '|';
    text += name;
  }
  return text.size() > word_size_max ? "NAME" : text;
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

bool BooleanType::read(const Given& given, void* value) const {
  if (given.kind == Given::Kind::boolean) {
    as<bool>(value) = given.boolean;
    return true;
  }
  if (given.kind != Given::Kind::bare) return false;
  if (given.text != "true" && given.text != "false") return false;
  as<bool>(value) = given.text == "true";
  return true;
}

void BooleanType::write(std::string& out, const void* value) const {
  write_json(out, as<bool>(value));
}

bool TextType::read(const Given& given, void* value) const {
  if (!given.is_text()) return false;
  as<std::string>(value) = given.text;
  return true;
}

void TextType::write(std::string& out, const void* value) const {
  write_text(out, as<std::string>(value));
}

bool ByteSizeType::read(const Given& given, void* value) const {
  std::optional<ByteSize> size;
  if (given.is_text()) size = parse_byte_size(given.text);
  if (given.kind == Given::Kind::integer && given.integer >= 0) {
    size = ByteSize(static_cast<std::uint64_t>(given.integer));
  }
  if (size) as<ByteSize>(value) = *size;
  return size.has_value();
}

void ByteSizeType::write(std::string& out, const void* value) const {
  write_text(out, to_text(as<ByteSize>(value)));
}

bool EndpointType::read(const Given& given, void* value) const {
  if (!given.is_text()) return false;
  auto address = os::Address::parse(given.text);
  if (address) as<os::Address>(value) = *address;
  return address.has_value();
}

void EndpointType::write(std::string& out, const void* value) const {
  write_text(out, as<os::Address>(value).to_string());
}

}  // namespace weir::config
