#include "weir/http/response.hpp"

#include <algorithm>
#include <array>

#include "weir/http/characters.hpp"

namespace weir::http {
namespace {

// What frames the message is decided where it is sent (RFC 9112 §6).
constexpr std::array<std::string_view, 4> owned_by_server{"content-length", "transfer-encoding",
                                                          "connection", "date"};

}  // namespace

void Response::add(std::string_view name, std::string_view value) {
  if (may_set(name)) note(name, fields_.add(name, value));
}

void Response::set(std::string_view name, std::string_view value) {
  if (may_set(name)) note(name, fields_.set(name, value));
}

bool Response::may_set(std::string_view name) {
  const bool owned =
      std::any_of(owned_by_server.begin(), owned_by_server.end(),
                  [&](std::string_view each) { return equals_ignoring_case(each, name); });
  if (owned) note(name, fail(Errc::bad_input));
  return !owned;
}

void Response::note(std::string_view name, const Result<>& added) {
  if (added || !invalid_field_.empty()) return;
  // It goes to the log: nothing but a token's characters.
  std::string shown(name.empty() ? "(an empty name)" : name.substr(0, 64));
  std::replace_if(
      shown.begin(), shown.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  invalid_field_ = std::move(shown);
}

}  // namespace weir::http
