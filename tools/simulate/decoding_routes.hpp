// Routes that answer with what the server has decoded: paths, queries and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/json.hpp"

namespace weir::simulate {

enum class Color : std::uint8_t { red, green, blue };

/// The parts of a Document that it contains many times.
struct DocumentPart {
  std::int64_t count = 0;
  double ratio = 0;
  std::string label;
  std::optional<bool> mark;
};

/// A body with values of many types, which the server reads and writes again.
struct Document {
  std::int8_t tiny = 0;
  std::uint64_t large = 0;
  std::string text;
  std::optional<std::string> note;
  std::vector<DocumentPart> parts;
  std::map<std::string, std::vector<std::int32_t>> table;
  std::array<bool, 3> flags{};
  Color color = Color::red;
  std::variant<std::int64_t, std::string, std::vector<double>, DocumentPart> any;
};

/// Adds these routes:
///     GET, POST, PUT, DELETE /m/...   routes that compete for the same paths; see target_requests
///     GET /n/{a}/{b}/{c}              an int8_t, a uint64_t and a double
///     GET /q                          the pairs of the query, and the authority
///     POST /json/{id}, /later/{id}    the Document of the body; the second one waits first
/// The answer of a path or query is its label and the decoded values in hexadecimal digits.
void add_decoding_routes(http::Router& routes);

/// Returns the answer of such a route.
std::string decoded_text(std::string_view label, const std::vector<std::string>& values);

}  // namespace weir::simulate

template <>
inline constexpr std::array weir::json::enumerators<weir::simulate::Color>{
    weir::json::Named{weir::simulate::Color::red, "red"},
    weir::json::Named{weir::simulate::Color::green, "green"},
    weir::json::Named{weir::simulate::Color::blue, "blue"}};
