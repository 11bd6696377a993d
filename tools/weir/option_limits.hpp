// Validates numbers on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace weir {

/// Returns a validator for a decimal number from `least` to `most`. CLI11's own ranges accept
/// "nan", and "-1" for unsigned types.
template <typename Value>
CLI::Validator in_range(Value least, Value most, const char* kind) {
  std::ostringstream limits;
  limits << std::setprecision(15) << "a " << kind << " from " << least << " to " << most;
  return {[=, wanted = limits.str()](std::string& text) -> std::string {
            Value value{};
            const char* const text_end = text.data() + text.size();
            const auto [end, error] = std::from_chars(text.data(), text_end, value);
            // The comparison is false for a value that is not a number.
            const bool right =
                error == std::errc() && end == text_end && value >= least && value <= most;
            return right ? std::string() : "'" + text + "' is not " + wanted;
          },
          std::string()};
}

inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return in_range(least, most, "whole number");
}

inline CLI::Validator number(double least, double most) {
  return in_range(least, most, "number");
}

}  // namespace weir
