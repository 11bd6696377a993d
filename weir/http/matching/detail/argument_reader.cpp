#include "weir/http/matching/detail/argument_reader.hpp"

#include <utility>

#include "weir/http/message/json.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::http::detail {
namespace {

constexpr std::size_t shown_max = 64;

}  // namespace

void Violations::add(std::string_view in, std::string_view name, std::string_view detail) {
  if (problem_ == nullptr) {
    problem_ = std::make_unique<Problem>();
    problem_->detail.append(in).append(" ").append(name).append(": ").append(detail);
  }
  problem_->add_violation({in, std::string(name), std::string(detail)});
}

void Violations::add_unfit(std::string_view in, std::string_view name, const RawPair& pair,
                           std::string (*expected)(std::string_view found)) {
  const std::string decoded = decode_form(pair.value);
  const std::string_view found = decoded;
  std::string detail("expected ");
  detail.append(expected(found)).append(", found ");
  json::append_printable(detail, found.substr(0, shown_max));
  if (found.size() > shown_max) detail.append("...");
  add(in, name, detail);
}

void Violations::add_unfit_secret(std::string_view in, std::string_view name,
                                  std::string_view found,
                                  std::string (*expected)(std::string_view found)) {
  add(in, name, "expected " + expected(found));
}

Response Violations::answer(Status status) && {
  problem_->status = status;
  return problem(std::move(*problem_));
}

void PairSource::add_too_many_values() const {
  violations.add(in, "", "more than " + std::to_string(values_max) + " values");
}

bool read_decoded(std::string_view text, bool& value) noexcept {
  const bool holds = text == "true" || text == "on" || text == "1";
  if (!holds && text != "false" && text != "off" && text != "0") return false;
  value = holds;
  return true;
}

bool decode_name(RawPair& pair, std::span<char> room) noexcept {
  if (!pair.name_has_escapes) return true;
  const std::optional<std::string_view> decoded = decode_form(pair.name, room);
  if (decoded) pair.name = *decoded;
  return decoded.has_value();
}

bool accepts_form(const Request& request) noexcept {
  return accepts_type(request, [](std::string_view type) {
    return equals_ignoring_case(type, "application/x-www-form-urlencoded");
  });
}

Rejection reject_bad_escapes(std::string_view form) {
  std::size_t at = form.find('%');
  for (; at != std::string_view::npos; at = form.find('%', at + 3)) {
    if (form.size() - at < 3 || hex_value(form[at + 1]) < 0 || hex_value(form[at + 2]) < 0) break;
  }
  if (at == std::string_view::npos) return nullptr;
  constexpr std::string_view detail = "a '%' without two hexadecimal digits";
  Problem described{.status = Status::bad_request, .detail = "form: " + std::string(detail)};
  described.add_violation({"form", "", std::string(detail), at});
  return reject(problem(std::move(described)));
}

}  // namespace weir::http::detail
