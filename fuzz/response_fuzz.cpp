// Parses any bytes as responses. The events do not depend on cuts, and an accepted head is valid.
// The first byte selects the method of the requests.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::Method;
using weir::http::ResponseEvent;
using weir::http::ResponseLimits;
using weir::http::ResponseParser;
using Kind = ResponseEvent::Kind;

/// Checks what every accepted head promises, and returns it as text.
std::string describe(const weir::http::ReceivedResponseHead& head) {
  require(code_of(head.status()) >= 100 && code_of(head.status()) <= 999);
  require(!head.chunked() || (!head.has_content_length() && head.version_minor() > 0));
  std::string text = std::to_string(code_of(head.status())) + (head.keep_alive() ? "k" : "c");
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const weir::http::HeaderField header = head.header_at(index);
    require(weir::http::is_valid_header(header.name, header.value));
    require(weir::http::trim(header.value) == header.value);
    text.append(header.name).append(":").append(header.value).append("\n");
  }
  return text;
}

/// Returns all events of up to four responses that arrive in pieces of `step` bytes.
std::string read(std::string_view input, std::size_t step, Method method,
                 const ResponseLimits& limits) {
  ResponseParser parser(limits);
  parser.begin(method);
  std::string trace;
  std::size_t used = 0;
  int responses = 1;
  for (std::size_t size = 0; size < input.size();) {
    size = size + step < input.size() ? size + step : input.size();
    while (true) {
      const ExactCopy part(input.substr(used, size - used));
      const ResponseEvent event = parser.next(part.view());
      require(event.consumed <= size - used);
      used += event.consumed;
      if (event.kind == Kind::need_more) break;
      if (event.kind == Kind::data) {
        require(!event.data.empty());
        trace += event.data;
      } else if (event.kind == Kind::end) {
        trace += parser.reusable() ? "|end|" : "|close|";
        if (++responses > 4) return trace;
        parser.begin(method);
      } else if (event.kind == Kind::error) {
        require(event.error != weir::http::ParseError::none);
        return trace.append("|").append(name_of(event.error));
      } else {
        trace.append("|").append(describe(parser.head()));
      }
    }
  }
  return trace + (parser.finish_at_close() ? "|end at close" : "|cut");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr Method methods[] = {Method::get, Method::head, Method::connect};
  const Method method = methods[data[0] % 3];
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  ResponseLimits tight;
  tight.head = {.request_line_max = 24, .headers_bytes_max = 80, .headers_max = 3};
  tight.interim_max = 1;
  for (const ResponseLimits& limits : {ResponseLimits{}, tight}) {
    const std::string whole = read(input, input.size() + 1, method, limits);
    if (input.size() <= 512) require(read(input, 1, method, limits) == whole);
    require(read(input, input.size() / 3 + 1, method, limits) == whole);
  }
  return 0;
}
