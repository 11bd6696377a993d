// The responses of a matched route, of the router itself and of the middleware chain.
#include "weir/http/matching/detail/route_match.hpp"

#include <cstring>
#include <string>
#include <utility>

namespace weir::http {
namespace {

const RouteOptions default_options;

}  // namespace

const RouteOptions& RouteMatch::options() const noexcept {
  return found() ? route_->options : default_options;
}

char* RouteMatch::scratch(std::size_t bytes) {
  if (bytes <= scratch_inline) return scratch_.data();
  if (bytes > scratch_more_size_) {
    scratch_more_.reset(static_cast<char*>(BlockPool::allocate(bytes)));
    scratch_more_size_ = bytes;
  }
  return scratch_more_.get();
}

void RouteMatch::detach_from_table() {
  if (found() || allowed_ == 0 || methods_ == nullptr) return;
  const std::string names = methods_->allow(allowed_);
  char* const out = scratch(names.size());  // unused, because no route matched
  std::memcpy(out, names.data(), names.size());
  allow_ = {out, names.size()};
  methods_ = nullptr;
}

Response RouteMatch::default_response() const {
  Response response(status_);
  if (allowed_ != 0 && methods_ != nullptr) response.add_header("Allow", methods_->allow(allowed_));
  if (allowed_ != 0 && methods_ == nullptr) response.add_header("Allow", allow_);
  return response;
}

/// Calls the filters around `make()`. It is used if no middleware waits.
template <class Make>
Response RouteMatch::respond_through(Request& request, const Make& make) const {
  std::optional<Response> answer;
  const std::size_t entered = enter_filters(0, request, answer);
  Response response = answer ? std::move(*answer) : make();
  leave_filters(0, entered, request, response);
  return response;
}

Response RouteMatch::respond(Request& request) const {
  request.route_ = route_;
  const auto make = [&] {
    return found() ? route_->handler.call(request, params_) : default_response();
  };
  if (!has_middleware()) [[likely]]
    return make();
  return respond_through(request, make);
}

Response RouteMatch::respond_with_body(std::string_view body, Request& request) const {
  request.route_ = route_;
  const auto make = [&] { return route_->handler.call_with_body(request, params_, body); };
  if (!has_middleware()) [[likely]]
    return make();
  return respond_through(request, make);
}

Task<Response> RouteMatch::finish(Request& request) const {
  if (found()) return route_->handler.start(request, params_);
  return detail::ready_task(default_response());
}

std::size_t RouteMatch::enter_filters(std::size_t begin, Request& request,
                                      std::optional<Response>& answer) const {
  const std::size_t count = middleware_count();
  std::size_t index = begin;
  for (; index < count; ++index) {
    const Middleware& each = middleware_at(index);
    if (each.waits()) break;
    if (auto instead = each.before(request)) {
      answer.emplace(std::move(*instead));
      break;
    }
  }
  return index;
}

void RouteMatch::leave_filters(std::size_t begin, std::size_t end, Request& request,
                               Response& response) const {
  for (std::size_t index = end; index-- > begin;) middleware_at(index).after(request, response);
}

void RouteMatch::apply_filters(Request& request, Response& response) const {
  request.route_ = route_;
  for (std::size_t index = middleware_count(); index-- > 0;) {
    middleware_at(index).after(request, response);  // a function has none
  }
}

Task<Response> RouteMatch::start_and_leave(std::size_t begin, std::size_t end,
                                           Request& request) const {
  Response response = co_await start_at(end, request);
  leave_filters(begin, end, request, response);
  co_return response;
}

/// Starts the chain at this element. All filters up to the next function share one coroutine, or
/// need none if none of them changes the response.
Task<Response> RouteMatch::start_at(std::size_t index, Request& request) const {
  std::optional<Response> answer;
  const std::size_t end = enter_filters(index, request, answer);
  if (answer) {
    leave_filters(index, end, request, *answer);
    return detail::ready_task(std::move(*answer));
  }
  for (std::size_t each = index; each < end; ++each) {
    if (middleware_at(each).has_after()) return start_and_leave(index, end, request);
  }
  if (end == middleware_count()) return finish(request);
  return middleware_at(end)(request, Next(*this, end + 1));
}

Task<Response> RouteMatch::start(Request& request) const {
  request.route_ = route_;
  return start_at(0, request);
}

Task<Response> Next::operator()(Request& request) const {
  return match_->start_at(index_, request);
}

std::size_t Request::argument_values_max() const noexcept {
  return route_ != nullptr ? route_->options.values_max : RouteOptions().values_max;
}

std::string_view Request::route() const noexcept {
  return route_ != nullptr ? std::string_view(route_->pattern.text()) : std::string_view();
}

}  // namespace weir::http
