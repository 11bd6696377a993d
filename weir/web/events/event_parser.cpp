#include "weir/web/events/event_parser.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <utility>

namespace weir::http {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Returns the time of a field that has only digits; a longer number is no time.
std::optional<Duration> retry_of(std::string_view value) noexcept {
  std::uint32_t milliseconds = 0;
  const char* const end = value.data() + value.size();
  if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto read = std::from_chars(value.data(), end, milliseconds);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return std::chrono::milliseconds(milliseconds);
}

}  // namespace

Result<std::optional<ReceivedEvent>> EventParser::next(std::string_view& input) {
  while (!input.empty() && !failed_) {
    if (std::exchange(after_cr_, false) && input.front() == '\n') {
      input.remove_prefix(1);
      continue;
    }
    const std::size_t end = input.find_first_of("\r\n");
    if (!add_to_line(input.substr(0, end))) break;
    if (end == std::string_view::npos) {
      input = {};
      break;
    }
    after_cr_ = input[end] == '\r';
    input.remove_prefix(end + 1);
    std::string_view line = line_;
    if (std::exchange(at_start_, false) && line.starts_with(byte_order_mark)) {
      line.remove_prefix(byte_order_mark.size());
    }
    const bool ends_event = line.empty();
    if (!ends_event && !take_line(line)) failed_ = true;
    line_.clear();
    if (!ends_event) continue;
    if (auto event = finish_event()) return event;
  }
  if (failed_) return fail(Errc::limit_reached);
  return std::nullopt;
}

bool EventParser::add_to_line(std::string_view text) {
  failed_ = text.size() > bytes_max_ || line_.size() > bytes_max_ - text.size();
  if (!failed_) line_.append(text);
  return !failed_;
}

/// Processes a line that is not empty. Returns false if the event is too long.
bool EventParser::take_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_.append(value);
  } else if (field == "event") {
    name_ = value;
  } else if (field == "id") {
    if (value.find('\0') == std::string_view::npos) next_id_ = value;
  } else if (field == "retry") {
    if (const auto retry = retry_of(value)) retry_ = retry;
  }
  return !is_too_long();
}

/// Ends an event. Returns it if it has data.
std::optional<ReceivedEvent> EventParser::finish_event() {
  std::string name = std::exchange(name_, {});
  last_id_ = next_id_;  // the id of an incomplete event does not count
  if (!std::exchange(has_data_, false)) return std::nullopt;
  ReceivedEvent event;
  event.data = std::exchange(data_, {});
  event.name = name.empty() ? "message" : std::move(name);
  event.id = last_id_;
  return event;
}

}  // namespace weir::http
