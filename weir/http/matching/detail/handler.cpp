// The responses for statuses and errors, and the start of handlers that do not wait.
#include "weir/http/matching/detail/handler.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

Response text_response(Status status) {
  std::array<char, Body::inline_max> line;
  char* end = std::to_chars(line.data(), line.data() + 8, code_of(status)).ptr;
  const std::string_view reason = reason_of(status).substr(0, 40);
  if (!reason.empty()) *end++ = ' ';
  end = std::copy(reason.begin(), reason.end(), end);
  *end++ = '\n';
  Response response =
      text(std::string_view(line.data(), static_cast<std::size_t>(end - line.data())));
  response.set_status(status);
  return response;
}

Response error_response(std::error_code error) {
  Response response(to_status(error));
  response.set_cause(error);
  return response;
}

Task<Response> detail::ready_task(Response response) {
  co_return std::move(response);
}

Task<Response> Handler::call_later(const Handler& handler, Request& request,
                                   const PathParams& params) {
  co_return handler.call(request, params);
}

}  // namespace weir::http
