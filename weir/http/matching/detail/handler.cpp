// The responses for errors, and the start of handlers that do not wait.
#include "weir/http/matching/detail/handler.hpp"

#include <stdexcept>
#include <string>

namespace weir::http {

void detail::throw_missing_value(std::string_view type) {
  throw std::runtime_error("the handler takes a " + std::string(type) +
                           ", but no middleware of its route has called request.set<" +
                           std::string(type) + ">()");
}

Task<Response> detail::ready_task(Response response) {
  co_return std::move(response);
}

Task<Response> Handler::call_later(const Handler& handler, Request& request,
                                   const PathParams& params) {
  co_return handler.call(request, params);
}

}  // namespace weir::http
