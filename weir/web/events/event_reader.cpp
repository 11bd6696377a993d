#include "weir/web/events/event_reader.hpp"

#include "weir/base/detail/bytes.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

Result<EventReader> EventReader::open(ClientResponse response, std::size_t event_bytes_max) {
  const Status status = response.status();
  if (status >= Status::bad_request) return fail(error_of(status));
  if (status == Status::no_content) return fail(Errc::closed);
  const std::string_view type = response.header("content-type").value_or("");
  const std::string_view essence = type.substr(0, type.find_first_of("; \t"));
  const bool fits = status == Status::ok && equals_ignoring_case(essence, "text/event-stream");
  if (!fits) return fail(Errc::bad_input);
  return EventReader(std::move(response), event_bytes_max);
}

Task<Result<ReceivedEvent>> EventReader::read() {
  for (;;) {
    auto event = parser_.next(input_);
    if (!event) co_return fail(event.error());
    if (*event) co_return std::move(**event);
    const auto piece = co_await response_.read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return fail(Errc::end_of_stream);
    input_ = to_text(*piece);
  }
}

}  // namespace weir::http
