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

void Violations::add(std::string_view in, std::string_view name, std::string detail) {
  if (list_.size() == max) return;
  list_.push_back({in, std::string(name), std::move(detail)});
}

void Violations::add_unfit(std::string_view in, std::string_view name, std::string_view expected,
                           std::string_view found) {
  std::string detail("expected ");
  detail.append(expected).append(", found ");
  json::append_printable(detail, found.substr(0, shown_max));
  if (found.size() > shown_max) detail.append("...");
  add(in, name, std::move(detail));
}

Response Violations::answer(Status status) && {
  Problem described;
  described.status = status;
  const Violation& first = list_.front();
  described.detail.append(first.in)
      .append(" ")
      .append(first.name)
      .append(": ")
      .append(first.detail);
  described.violations = std::move(list_);
  return problem(std::move(described));
}

void add_unfit(PairSource& source, std::string_view name, std::string expected,
               const RawPair& pair) {
  source.violations.add_unfit(source.in, name, expected, pair.value);
}

std::optional<std::string_view> find_cookie(const RequestHead& head,
                                            std::string_view name) noexcept {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (!equals_ignoring_case(header.name, "Cookie")) continue;
    for (std::string_view rest = header.value; !rest.empty();) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view pair = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (pair.size() <= name.size() || pair[name.size()] != '=' || !pair.starts_with(name)) {
        continue;
      }
      std::string_view value = pair.substr(name.size() + 1);
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
      }
      return value;
    }
  }
  return std::nullopt;
}

bool accepts_form(const Request& request) noexcept {
  return accepts_type(request, [](std::string_view header) {
    const std::string_view name = trim(header.substr(0, header.find(';')));
    return equals_ignoring_case(name, "application/x-www-form-urlencoded");
  });
}

}  // namespace weir::http::detail
