// Stores attributes one after the other in a string.
#include "weir/telemetry/traces/attributes.hpp"

#include <array>
#include <cstring>

namespace weir::telemetry {
namespace {

/// The part of an attribute in memory that precedes its name and its value.
struct Header {
  std::uint8_t type;  // the index in AttributeValue
  std::uint16_t key_size;
  std::uint16_t value_size;
};

/// Returns the longest beginning of `text` of at most `size` bytes that cuts no character of UTF-8.
std::string_view cut(std::string_view text, std::size_t size) noexcept {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

template <class T>
T read_number(std::string_view bytes) noexcept {
  T number;
  std::memcpy(&number, bytes.data(), sizeof(T));
  return number;
}

}  // namespace

void Attributes::set_value(std::string_view key, const AttributeValue& value) {
  erase(key);
  std::array<char, sizeof(std::int64_t)> number;
  std::string_view bytes(number.data(), number.size());
  if (const auto* const text = std::get_if<std::string_view>(&value)) {
    bytes = cut(*text, value_max);
  } else if (const auto* const truth = std::get_if<bool>(&value)) {
    number[0] = *truth ? 1 : 0;
    bytes = bytes.substr(0, 1);
  } else if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    std::memcpy(number.data(), integer, sizeof(*integer));
  } else {
    std::memcpy(number.data(), std::get_if<double>(&value), sizeof(double));
  }
  const bool fits = count_ < count_max && !key.empty() && key.size() <= key_max &&
                    encoded_.size() + sizeof(Header) + key.size() + bytes.size() <= bytes_max;
  if (!fits) {
    ++dropped_;
    return;
  }
  const Header header{static_cast<std::uint8_t>(value.index()),
                      static_cast<std::uint16_t>(key.size()),
                      static_cast<std::uint16_t>(bytes.size())};
  std::array<char, sizeof(Header)> packed;
  std::memcpy(packed.data(), &header, sizeof(header));
  encoded_.append(packed.data(), packed.size()).append(key).append(bytes);
  ++count_;
}

bool Attributes::take(std::string_view& rest, std::string_view& key,
                      AttributeValue& value) noexcept {
  if (rest.empty()) return false;
  const auto header = read_number<Header>(rest);
  rest.remove_prefix(sizeof(Header));
  key = rest.substr(0, header.key_size);
  const std::string_view bytes = rest.substr(header.key_size, header.value_size);
  rest.remove_prefix(std::size_t{header.key_size} + header.value_size);
  switch (header.type) {
    case 0:
      value = bytes;
      break;
    case 1:
      value = bytes[0] != 0;
      break;
    case 2:
      value = read_number<std::int64_t>(bytes);
      break;
    default:
      value = read_number<double>(bytes);
      break;
  }
  return true;
}

/// Removes the attribute of this name, if there is one.
void Attributes::erase(std::string_view key) {
  // Each set() comes here, so this reads no values.
  std::string_view rest = encoded_;
  while (!rest.empty()) {
    const auto header = read_number<Header>(rest);
    const std::size_t size = sizeof(Header) + header.key_size + header.value_size;
    if (header.key_size == key.size() && rest.substr(sizeof(Header), key.size()) == key) {
      encoded_.erase(encoded_.size() - rest.size(), size);
      --count_;
      return;
    }
    rest.remove_prefix(size);
  }
}

}  // namespace weir::telemetry
