// Parses any bytes as server-sent events, whole and in pieces. All ways give the same events within
// the limit. An event that is encoded again arrives as it was.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/web/events/event_parser.hpp"
#include "weir/web/events/events.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::EventParser;
using weir::http::ReceivedEvent;

constexpr std::size_t bytes_max = 64;

struct Outcome {
  std::vector<ReceivedEvent> events;
  bool failed = false;
};

Outcome parse(std::string_view text, std::size_t size, EventParser& parser) {
  Outcome outcome;
  while (!text.empty() && !outcome.failed) {
    const ExactCopy copy(text.substr(0, size));
    text.remove_prefix(copy.view().size());
    std::string_view rest = copy.view();
    for (bool more = true; more;) {
      auto event = parser.next(rest);
      outcome.failed = !event;
      more = event && *event;
      if (more) outcome.events.push_back(std::move(**event));
    }
    require(outcome.failed || rest.empty());
  }
  return outcome;
}

bool same(const ReceivedEvent& a, const ReceivedEvent& b) {
  return a.data == b.data && a.name == b.name && a.id == b.id;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  EventParser whole(bytes_max);
  const Outcome expected = parse(text, std::max<std::size_t>(size, 1), whole);
  EventParser pieces(bytes_max);
  const Outcome split = parse(text, 1 + size % 7, pieces);
  require(split.failed == expected.failed);
  require(std::ranges::equal(split.events, expected.events, same));
  require(whole.last_event_id() == pieces.last_event_id() && whole.retry() == pieces.retry());
  for (const ReceivedEvent& each : expected.events) {
    require(each.data.size() + each.name.size() + each.id.size() <= bytes_max + 7);  // "message"
    weir::http::ServerSentEvent event;
    event.data = each.data;
    event.name = each.name;
    event.id = each.id;
    const auto bytes = event.encode();
    require(bytes.has_value() == (each.name.find('\0') == std::string::npos));
    if (!bytes) continue;
    EventParser again;
    const Outcome repeated = parse(bytes->text(), 5, again);
    require(repeated.events.size() == 1 && same(repeated.events[0], each));
  }
  return 0;
}
