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

void RouteMatch::settle() {
  if (found() || allowed_ == 0 || methods_ == nullptr) return;
  const std::string names = methods_->allow(allowed_);
  char* const out = scratch(names.size());  // free: where nothing was found, nothing was caught
  std::memcpy(out, names.data(), names.size());
  allow_ = {out, names.size()};
  methods_ = nullptr;
}

Response RouteMatch::own_answer() const {
  const bool has_body = may_have_body(status_);
  Response response = has_body ? status_text(status_) : Response(status_);
  if (allowed_ != 0 && methods_ != nullptr) response.add("Allow", methods_->allow(allowed_));
  if (allowed_ != 0 && methods_ == nullptr) response.add("Allow", allow_);
  return response;
}

Response RouteMatch::answer(Request& request) const {
  return found() ? route_->handler.call(request, captures_) : own_answer();
}

Response RouteMatch::answer_with(std::string_view body, Request& request) const {
  return route_->handler.call_with_body(request, captures_, body);
}

Task<Response> RouteMatch::finish(Request& request) const {
  if (found()) return route_->handler.start(request, captures_);
  return detail::answer_later(own_answer());
}

Task<Response> RouteMatch::start(Request& request) const {
  return Next(*this, 0)(request);
}

Task<Response> Next::operator()(Request& request) const {
  if (index_ == match_->middleware_.size()) return match_->finish(request);
  return match_->middleware_[index_](request, Next(*match_, index_ + 1));
}

}  // namespace weir::http
