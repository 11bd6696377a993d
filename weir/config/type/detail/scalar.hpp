// Numbers, texts, lengths of time, sizes and addresses out of what was given: the part of reading
// that does not depend on the type in C++.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/config/source/detail/raw_value.hpp"
#include "weir/config/type/detail/type.hpp"
#include "weir/config/type/units.hpp"
#include "weir/os/address.hpp"

namespace weir::config {

/// From an integer, or a bare text in decimal digits. nullopt where it is none of 64 bits.
std::optional<std::int64_t> read_signed(const Given& given) noexcept;
std::optional<std::uint64_t> read_unsigned(const Given& given) noexcept;
/// From a number or a bare one; an integer must be exactly a double, and none infinite or NaN.
std::optional<double> read_real(const Given& given) noexcept;

std::string expected_signed(std::int64_t least, std::int64_t most);
std::string expected_unsigned(std::uint64_t most);
/// `"a", "b" or "c"`.
std::string expected_names(std::span<const std::string_view> names);
/// `a|b|c`, or `NAME` if that would be long.
std::string word_of_names(std::span<const std::string_view> names);

void write_text(std::string& out, std::string_view text);
void write_number(std::string& out, std::int64_t number);
void write_number(std::string& out, std::uint64_t number);
void write_number(std::string& out, double number);

/// `true` or `false`, also bare.
class BooleanType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string word() const override { return "true|false"; }
  std::string expected() const override { return "true or false"; }
  bool is_flag() const noexcept override { return true; }

 private:
  bool read(const Given& given, void* value) const override;
};

/// std::string: any text.
class TextType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string word() const override { return "TEXT"; }
  std::string expected() const override { return "a string"; }

 private:
  bool read(const Given& given, void* value) const override;
};

/// ByteSize: a text with a unit, or a number of bytes.
class ByteSizeType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string word() const override { return "SIZE"; }
  std::string expected() const override { return "a size such as 64KiB, 1.5MiB or 1000"; }

 private:
  bool read(const Given& given, void* value) const override;
};

/// Endpoint: a text that os::Address::parse() takes.
class EndpointType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string word() const override { return "ADDRESS"; }
  std::string expected() const override {
    return "an address such as 127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/a.sock";
  }

 private:
  bool read(const Given& given, void* value) const override;
};

}  // namespace weir::config
