// The responses of a matched route, of the router itself and of the middleware chain.
#include "weir/http/matching/detail/route_match.hpp"

#include <cstring>
#include <string>
#include <utility>

namespace weir::http {
namespace {

constexpr RouteOptions default_options;

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

Response RouteMatch::respond(Request& request) const {
  return found() ? route_->handler.call(request, params_) : default_response();
}

Response RouteMatch::respond_with_body(std::string_view body, Request& request) const {
  return route_->handler.call_with_body(request, params_, body);
}

Task<Response> RouteMatch::finish(Request& request) const {
  if (found()) return route_->handler.start(request, params_);
  return detail::ready_task(default_response());
}

Task<Response> RouteMatch::start(Request& request) const {
  return Next(*this, 0)(request);
}

Task<Response> Next::operator()(Request& request) const {
  const std::size_t outer = match_->middleware_.size();
  const Next next(*match_, index_ + 1);
  if (index_ < outer) return match_->middleware_[index_](request, next);
  const Route* const route = match_->route_;
  if (route == nullptr || index_ - outer == route->middleware.size())
    return match_->finish(request);
  return (*route->middleware[index_ - outer])(request, next);
}

}  // namespace weir::http
