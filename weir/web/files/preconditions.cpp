#include "weir/web/files/preconditions.hpp"

#include <chrono>
#include <cstddef>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/files/entity_tag.hpp"

namespace weir::http {
namespace {

using Seconds = std::chrono::sys_seconds;

Seconds in_seconds(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time);
}

/// The conditional headers of a request. A list may come in several headers.
struct Conditions {
  bool has_match = false;
  bool match = false;  // true if If-Match holds
  bool has_none_match = false;
  bool none_match = true;  // true if If-None-Match holds
  std::optional<std::string_view> unmodified_since;
  std::optional<std::string_view> modified_since;
};

bool names_current(std::string_view value, const Validators& current, TagComparison how) noexcept {
  if (value == "*") return current.exists;
  const auto tag = EntityTag::parse(current.etag);
  return current.exists && tag && contains_tag(value, *tag, how);
}

Conditions read_conditions(const RequestHead& head, const Validators& current) noexcept {
  Conditions found;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    const std::string_view name = header.name;
    if (name.size() < 8 || to_lower(name[0]) != 'i' || to_lower(name[1]) != 'f') continue;
    if (equals_ignoring_case(name, "if-match")) {
      found.has_match = true;
      found.match |= names_current(header.value, current, TagComparison::strong);
    } else if (equals_ignoring_case(name, "if-none-match")) {
      found.has_none_match = true;
      found.none_match &= !names_current(header.value, current, TagComparison::weak);
    } else if (equals_ignoring_case(name, "if-unmodified-since")) {
      // Two of them are no valid date together.
      found.unmodified_since = found.unmodified_since ? std::string_view() : header.value;
    } else if (equals_ignoring_case(name, "if-modified-since")) {
      found.modified_since = found.modified_since ? std::string_view() : header.value;
    }
  }
  return found;
}

/// Returns true if the resource has not changed after the date; nullopt if that is unknown.
std::optional<bool> unchanged_since(std::string_view text, const Validators& current) noexcept {
  if (!current.exists || !current.last_modified) return std::nullopt;
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  return in_seconds(*current.last_modified) <= in_seconds(*date);
}

}  // namespace

Precondition evaluate_preconditions(const RequestHead& head, const Validators& current) noexcept {
  const Method method = head.method();
  if (method == Method::connect || method == Method::options || method == Method::trace) {
    return Precondition::passed;
  }
  const Conditions found = read_conditions(head, current);
  if (found.has_match) {
    if (!found.match) return Precondition::failed;
  } else if (found.unmodified_since) {
    if (!unchanged_since(*found.unmodified_since, current).value_or(true)) {
      return Precondition::failed;
    }
  }
  const bool reads = method == Method::get || method == Method::head || method == Method::query;
  if (found.has_none_match) {
    if (found.none_match) return Precondition::passed;
    return reads ? Precondition::not_modified : Precondition::failed;
  }
  if (reads && found.modified_since &&
      unchanged_since(*found.modified_since, current).value_or(false)) {
    return Precondition::not_modified;
  }
  return Precondition::passed;
}

void set_validators(Response& response, const Validators& current) {
  if (!current.etag.empty()) response.set_header("ETag", current.etag);
  if (current.last_modified) {
    response.set_header("Last-Modified", Date(*current.last_modified).text());
  }
}

std::optional<Response> answer_preconditions(const Request& request, const Validators& current) {
  const Precondition result = evaluate_preconditions(request.head(), current);
  if (result == Precondition::passed) return std::nullopt;
  if (result == Precondition::failed) return Response(Status::precondition_failed);
  Response response(Status::not_modified);
  set_validators(response, current);
  return response;
}

bool range_applies(const RequestHead& head, const Validators& current) noexcept {
  const auto condition = head.header("If-Range");
  if (!condition) return true;
  if (head.repeats("If-Range")) return false;
  if (const auto wanted = EntityTag::parse(*condition)) {
    const auto tag = EntityTag::parse(current.etag);
    return tag && tag->matches(*wanted, TagComparison::strong);
  }
  const auto date = parse_http_date(*condition);
  if (!date || !current.last_modified) return false;
  const Seconds changed = in_seconds(*current.last_modified);
  const bool is_strong = !current.now || in_seconds(*current.now) - changed >= Seconds::duration(1);
  return is_strong && changed == in_seconds(*date);
}

}  // namespace weir::http
