#include "weir/http/message/response.hpp"

#include <algorithm>
#include <array>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

// What frames the message is decided where it is sent (RFC 9112 §6).
constexpr std::array<std::string_view, 4> owned_by_server{"content-length", "transfer-encoding",
                                                          "connection", "date"};

}  // namespace

Response::Extras& Response::extras() {
  if (extras_ == nullptr) extras_ = make_block<Extras>();
  return *extras_;
}

const Fields& Response::fields() const noexcept {
  static const Fields none{};
  return extras_ != nullptr ? extras_->fields : none;
}

std::error_code Response::cause() const noexcept {
  return extras_ != nullptr ? extras_->cause : std::error_code();
}

void Response::set_cause(std::error_code cause) {
  if (cause || extras_ != nullptr) extras().cause = cause;
}

std::string_view Response::invalid_field() const noexcept {
  return extras_ != nullptr ? std::string_view(extras_->invalid_field) : std::string_view();
}

void Response::add(std::string_view name, std::string_view value) {
  if (may_set(name)) note(name, extras().fields.add(name, value));
}

void Response::set(std::string_view name, std::string_view value) {
  if (may_set(name)) note(name, extras().fields.set(name, value));
}

bool Response::may_set(std::string_view name) {
  const bool owned =
      std::any_of(owned_by_server.begin(), owned_by_server.end(),
                  [&](std::string_view each) { return equals_ignoring_case(each, name); });
  if (owned) note(name, fail(Errc::bad_input));
  return !owned;
}

void Response::note(std::string_view name, const Result<>& added) {
  if (added || !invalid_field().empty()) return;
  // It goes to the log: nothing but a token's characters.
  std::string shown(name.empty() ? "(an empty name)" : name.substr(0, 64));
  std::replace_if(
      shown.begin(), shown.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  extras().invalid_field = std::move(shown);
}

}  // namespace weir::http
