#include "weir/http/matching/detail/argument_reader.hpp"

#include <algorithm>
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

void Violations::add_unfit(std::string_view in, std::string_view name, std::string (*expected)(),
                           std::string_view found) {
  std::string detail("expected ");
  detail.append(expected()).append(", found ");
  json::append_printable(detail, found.substr(0, shown_max));
  if (found.size() > shown_max) detail.append("...");
  add(in, name, detail);
}

Response Violations::answer(Status status) && {
  problem_->status = status;
  return problem(std::move(*problem_));
}

bool decode_name(RawPair& pair, std::span<char> room) noexcept {
  if (!pair.name_has_escapes) return true;
  const std::optional<std::string_view> decoded = decode_form(pair.name, room);
  if (decoded) pair.name = *decoded;
  return decoded.has_value();
}

namespace {

/// Returns the value of the first pair of this name in the value of a Cookie header.
std::optional<std::string_view> find_cookie(std::string_view rest, std::string_view name) noexcept {
  while (!rest.empty()) {
    if (rest.front() == ' ' || rest.front() == '\t' || rest.front() == ';') {
      rest.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(rest.find(';'), rest.size());
    if (end > name.size() && rest[name.size()] == '=' && rest.starts_with(name)) {
      const std::string_view value = trim(rest.substr(name.size() + 1, end - name.size() - 1));
      const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
      return quoted ? value.substr(1, value.size() - 2) : value;
    }
    rest.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> find_cookie(const RequestHead& head,
                                            std::string_view name) noexcept {
  // Nearly all requests have one such header (RFC 6265 §5.4).
  const auto first = head.header("Cookie");
  if (!first) return std::nullopt;
  auto value = find_cookie(*first, name);
  for (std::size_t index = 0; !value && index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (equals_ignoring_case(header.name, "Cookie")) value = find_cookie(header.value, name);
  }
  return value;
}

bool accepts_form(const Request& request) noexcept {
  return accepts_type(request, [](std::string_view header) {
    const std::string_view name = trim(header.substr(0, header.find(';')));
    return equals_ignoring_case(name, "application/x-www-form-urlencoded");
  });
}

}  // namespace weir::http::detail
