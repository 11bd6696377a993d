// Numbers on the command line, within limits.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace weir {

/// A decimal number within limits. CLI11's own ranges let "nan" and, of what is unsigned, "-1"
/// pass.
template <typename Value>
CLI::Validator within(Value least, Value most, const char* kind) {
  std::ostringstream limits;
  limits << std::setprecision(15) << "a " << kind << " from " << least << " to " << most;
  return {[=, wanted = limits.str()](std::string& text) -> std::string {
            Value value{};
            const char* const text_end = text.data() + text.size();
            const auto [end, error] = std::from_chars(text.data(), text_end, value);
            // Put so that what is not a number fails.
            const bool right =
                error == std::errc() && end == text_end && value >= least && value <= most;
            return right ? std::string() : "'" + text + "' is not " + wanted;
          },
          std::string()};
}

inline CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  return within(least, most, "whole number");
}

inline CLI::Validator number(double least, double most) {
  return within(least, most, "number");
}

}  // namespace weir
