// Reads and writes numbers, texts, durations, sizes and addresses; the part that does not depend
// on the C++ type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/config/source/detail/raw_value.hpp"
#include "weir/config/type/detail/type.hpp"
#include "weir/json/text/units.hpp"
#include "weir/os/address.hpp"

namespace weir::config {

/// Reads an integer, or an untyped text of decimal digits. Returns nullopt if the value is not an
/// integer of 64 bits.
std::optional<std::int64_t> read_signed(const RawValue& raw) noexcept;
std::optional<std::uint64_t> read_unsigned(const RawValue& raw) noexcept;
/// Returns true if the value is an integer, or an untyped text with only hyphens and digits.
bool is_integer(const RawValue& raw) noexcept;
/// Reads a number, or an untyped text of one. Returns nullopt for an infinite number, for NaN, and
/// for an integer outside of ±2^53, which might not be exact as a double.
std::optional<double> read_real(const RawValue& raw) noexcept;

std::string expected_exact(int bits);
/// Returns `"a", "b" or "c"`.
std::string expected_names(std::span<const std::string_view> names);
/// Returns `a|b|c`, or `NAME` if that text would be long.
std::string placeholder_of_names(std::span<const std::string_view> names);
/// Returns `DURATION` for `a duration`.
std::string placeholder_of_noun(std::string_view noun);

void write_text(std::string& out, std::string_view text);
void write_number(std::string& out, std::int64_t number);
void write_number(std::string& out, std::uint64_t number);
void write_number(std::string& out, double number);

/// A bool is `true` or `false`, also as an untyped text.
class BooleanType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string placeholder() const override { return "true|false"; }
  std::string expected() const override { return "true or false"; }
  bool is_flag() const noexcept override { return true; }

 private:
  bool read(const RawValue& raw, void* value) const override;
};

/// A std::string is any text.
class StringType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string placeholder() const override { return "TEXT"; }
  std::string expected() const override { return "a string"; }

 private:
  bool read(const RawValue& raw, void* value) const override;
};

/// A ByteSize is a text with a unit, or a number of bytes.
class ByteSizeType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string placeholder() const override { return "SIZE"; }
  std::string expected() const override { return "a size such as 64KiB, 1.5MiB or 1000"; }

 private:
  bool read(const RawValue& raw, void* value) const override;
};

/// An Endpoint is a text that os::Address::parse() accepts.
class EndpointType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override;
  std::string placeholder() const override { return "ADDRESS"; }
  std::string expected() const override {
    return "an address such as 127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/a.sock";
  }

 private:
  bool read(const RawValue& raw, void* value) const override;
};

}  // namespace weir::config
