#include "weir/http/server/detail/request_loop.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

RequestLoop::RequestLoop(ServerState& server, ConnectionIo& io, const Context& context) noexcept
    : Continuation(&on_finished),
      HangupObserver(&on_hangup),
      server_(server),
      io_(io),
      context_(context),
      parser_(server.limits().head, &server.host_line_cache()),
      body_(io, server.limits(), context) {}

RequestLoop::~RequestLoop() {
  assert(!busy());
  handler_.reset();  // before its route is released, if it was abandoned
}

RequestLoop::Action RequestLoop::advance() {
  for (;;) {
    const std::string_view input = io_.input().text();
    if (input.empty()) return Action::idle;
    const ParseResult parsed = parser_.parse(input, head_);
    if (parsed.kind == ParseResult::Kind::incomplete) return Action::read_more;
    if (parsed.kind == ParseResult::Kind::error) return reject(parsed.error);
    io_.input().consume(parsed.consumed);
    ++heads_;
    const Action action = start_request();
    if (action != Action::idle) return action;
  }
}

RequestLoop::Action RequestLoop::reject(ParseError error) {
  server_.count_parse_error(error);
  keep_alive_ = false;
  rejected_ = true;
  respond_with_status(to_status(error));
  return finish_now();
}

/// Finds the route for a complete head.
RequestLoop::Action RequestLoop::start_request() {
  server_.counters().requests.add();
  trace_.begin(server_.counters().requests.value());
  keep_alive_ = head_.keep_alive() && !server_.draining();
  server_.routes().table().match(head_, match_);
  if (match_.is_per_core() && !find_core_handler()) [[unlikely]] {
    copy_head();
    stage_ = Stage::core_handler;
    return Action::finish;
  }
  return dispatch_request();
}

/// Finds the handler of this core for a route with core handlers. Returns false if a replacement
/// is expected soon. The route itself answers if there is no handler.
bool RequestLoop::find_core_handler() {
  CoreHandler* const core_handler = match_.route()->core_handlers->on(server_.loop());
  if (core_handler == nullptr) return true;
  if (core_handler->active() != nullptr) match_.redirect_to(*core_handler->active());
  return core_handler->active() != nullptr || !core_handler->is_replacement_expected();
}

/// Answers the request of the route that was found.
RequestLoop::Action RequestLoop::dispatch_request() {
  if (head_.has_body()) {
    body_.begin(head_, match_.options().body_max.value_or(server_.limits().body_max));
    if (body_.error()) return reject(ParseError::body_too_large);
  } else {
    body_.begin_empty();
  }
  if (match_.is_async()) {
    if (!match_.needs_only_body()) return start_handler();
    const auto body = body_.complete_body();
    if (!body) return start_handler();
    respond([&] { return match_.respond_with_body(*body, request_); });
    return finish_now();
  }
  if (!body_.ended()) {
    // Read the body first: an early response would hide that the body is malformed.
    copy_head();
    stage_ = Stage::read_body;
    return Action::finish;
  }
  call_handler();
  return finish_now();
}

/// Takes the response that `make()` returns, or 500 for an exception.
template <class Make>
void RequestLoop::respond(const Make& make) {
  const CurrentActivity::TraceGuard trace_guard(&trace_);
  try {
    response_.fill(make);
  } catch (...) {
    handle_exception(std::current_exception());
  }
}

/// Calls a handler that does not wait, or makes the router's own response.
void RequestLoop::call_handler() {
  respond([this] { return match_.respond(request_); });
}

/// Copies the head for a handler that may wait, because the input moves on. The parts that were
/// found in the head move to the copy.
void RequestLoop::copy_head() {
  if (head_copy_ != nullptr) return;  // the request has waited before
  const std::string_view bytes = head_.bytes();
  head_copy_.reset(static_cast<char*>(BlockPool::allocate(bytes.size())));
  std::memcpy(head_copy_.get(), bytes.data(), bytes.size());
  match_.rebase(bytes, head_copy_.get());
  head_.rebase(head_copy_.get());
}

/// Allocates all memory for the wait for a handler before the handler starts. An InFlight needs
/// no memory from then on.
void RequestLoop::reserve_for_wait() {
  match_.detach_from_table();
  if (const Route* const route = match_.route()) server_.routes().reserve(*route);
  begin_cancel();
}

/// Prepares a cancel source: it is cancelled with the connection and carries the request's trace.
void RequestLoop::begin_cancel() noexcept {
  cancel_.emplace(context_.cancel);
  trace_.set_route(match_.route());
  cancel_->set_trace(&trace_);
}

RequestLoop::Action RequestLoop::start_handler() {
  copy_head();
  reserve_for_wait();
  handler_timeout_.expired = false;
  const CurrentActivity::TraceGuard trace_guard(&trace_);
  try {
    handler_.emplace(match_.start(request_));
  } catch (...) {
    cancel_.reset();
    handle_exception(std::current_exception());
    return finish_now();
  }
  const bool answered = run(*handler_);
  check_stall();
  if (!answered) {
    if (const auto timeout = match_.options().timeout) {
      server_.loop().timers().start(handler_timeout_, after(server_.loop().now(), *timeout));
    }
    stage_ = Stage::run_handler;
    return Action::finish;
  }
  take_response();
  return finish_now();
}

/// Starts the task under cancel_. Returns true if it has finished immediately.
template <class T>
bool RequestLoop::run(Task<T>& task) {
  running_ = true;
  waiter_ = nullptr;
  task.start(Context{&server_.loop(), &*cancel_}, *this);
  if (running_) io_.stream().observe_hangup(this);
  return !running_;
}
template bool RequestLoop::run(Task<Result<>>& task);

std::coroutine_handle<> RequestLoop::on_finished(Continuation& self, std::coroutine_handle<>) {
  auto& request_loop = static_cast<RequestLoop&>(self);
  request_loop.running_ = false;
  request_loop.handler_timeout_.cancel();
  CurrentActivity::set_trace(request_loop.context_.trace());  // the connection runs next
  if (request_loop.waiter_ && !request_loop.busy())
    return std::exchange(request_loop.waiter_, nullptr);
  return std::noop_coroutine();
}

/// Takes the response of a finished handler, or 500 for its exception.
void RequestLoop::take_response() {
  try {
    response_.fill([this] { return handler_->handle().promise().take(); });
  } catch (...) {
    handle_exception(std::current_exception());
  }
  if (handler_timeout_.expired) respond_with_status(Status::service_unavailable);
  handler_.reset();
  cancel_.reset();
}

void RequestLoop::handle_exception(const std::exception_ptr& exception) {
  server_.counters().handler_failures.add();
  log("handler failed: " + describe({}, exception));
  respond_with_status(Status::internal_error);
}

/// Counts and logs the error of a handler, once, unless it was cancelled.
void RequestLoop::report_handler_error() {
  const std::error_code cause = response_->cause();
  response_->set_cause({});
  if (cause == Errc::cancelled) return;
  server_.counters().handler_failures.add();
  log("handler failed: " + cause.message());
}

/// Writes one line for the operator; control characters are replaced.
void RequestLoop::log(std::string_view what) {
  std::string line("weir: ");
  line.append(head_.method_text()).append(" ").append(head_.path()).append(": ").append(what);
  const auto is_control = [](char each) { return (each >= 0 && each < ' ') || each == '\x7f'; };
  std::replace_if(line.begin(), line.end(), is_control, '?');
  server_.loop().platform().log(line);
}

void RequestLoop::respond_with_status(Status status) {
  response_.fill([status] { return text_response(status); });
}

/// Checks an unusual response. A response that cannot be sent becomes a 500.
void RequestLoop::check_response() {
  const bool final = code_of(response_->status()) >= 200 && is_valid(response_->status());
  if (response_->invalid_header().empty() && final) {
    if (response_->cause() && code_of(response_->status()) >= 500) report_handler_error();
    return;
  }
  server_.counters().handler_failures.add();
  const std::string why = final ? "the header " + std::string(response_->invalid_header())
                                : "the status " + std::to_string(code_of(response_->status()));
  log("cannot send " + why);
  respond_with_status(Status::internal_error);
}

/// Writes the response if nothing has to wait for it.
RequestLoop::Action RequestLoop::finish_now() {
  stage_ = Stage::send_response;
  if ((!body_.ended() && !rejected_) || !try_write_to_output()) return Action::finish;
  const Action action = finish_request();
  return action == Action::close && peer_sends_no_more() ? Action::close_now : action;
}

/// Returns true if the peer should send nothing more, so that the server need not read on. The
/// peer requested the close itself (RFC 9112 §9.6: it "MUST NOT send further requests"). The
/// request had no body, because some old clients send an empty line behind one.
bool RequestLoop::peer_sends_no_more() const noexcept {
  return !head_.keep_alive() && !rejected_ && !head_.has_body() && io_.input().empty();
}

/// Ends a request that is answered.
RequestLoop::Action RequestLoop::finish_request() noexcept {
  server_.counters().responses.add();
  check_stall();
  body_.release();
  head_copy_.reset();
  return keep_alive_ ? Action::idle : Action::close;
}

/// Checks, after a part of a request has run, if it made this turn slow.
void RequestLoop::check_stall() noexcept {
  if (server_.loop().stall_detector().ticked()) [[unlikely]]
    report_stall();
}

void RequestLoop::report_stall() noexcept {
  const Route* const route = match_.route();
  if (route == nullptr || rejected_) return;
  try {
    server_.loop().stall_detector().check_as(
        [route] { return route->method + " " + route->pattern.text(); });
  } catch (const std::bad_alloc&) {
    // The stall stays without a name.
  }
}

bool RequestLoop::head_only() const noexcept {
  const Status status = response_->status();
  return head_.method() == Method::head || !may_have_body(status) ||
         status == Status::reset_content;
}

/// Decides if the connection stays open after this response.
void RequestLoop::decide_keep_alive() {
  const bool ends_with_connection =
      response_->body().is_stream() && head_.version_minor() == 0 && !head_only();
  if (ends_with_connection || server_.draining() || context_.cancelled()) keep_alive_ = false;
}

/// Returns the response's head as it is sent.
ResponseHead RequestLoop::make_response_head() const {
  const bool stream = response_->body().is_stream();
  ResponseHead head;
  head.status = response_->status();
  head.date = &server_.date();
  if (!may_have_body(response_->status())) {
    head.framing = BodyFraming::none;
  } else if (response_->status() == Status::reset_content) {
    head.content_length = 0;  // RFC 9110 §15.3.6
  } else if (!stream) {
    head.content_length = response_->body().text().size();
  } else if (head_.version_minor() > 0) {
    head.framing = BodyFraming::chunked;
  } else {
    head.framing = BodyFraming::none;  // the end of the connection ends the body
  }
  if (!keep_alive_) {
    head.connection = ConnectionHeader::close;
  } else if (head_.version_minor() == 0) {
    head.connection = ConnectionHeader::keep_alive;
  }
  if (may_have_body(response_->status())) head.content_type = response_->content_type();
  if (response_->is_plain()) return head;
  const Headers& headers = response_->headers();
  if (headers.contains("Content-Type")) head.content_type = {};
  head.lines = headers.lines();
  return head;
}

/// Returns true for a response of the common kind; see ResponseHeadCache.
bool RequestLoop::is_common() const noexcept {
  return response_->is_plain() && response_->status() == Status::ok &&
         !response_->body().is_stream() &&
         response_->content_type().size() <= ResponseHeadCache::type_size_max &&
         head_.version_minor() > 0 && head_.method() != Method::head && keep_alive_ &&
         !server_.draining() && !context_.cancelled();
}

bool RequestLoop::write_common() {
  const std::string_view text = response_->body().text();
  Buffer& output = io_.writable_output();
  if (output.room().size() < ResponseHeadCache::size_max + text.size()) return false;
  char* const start = reinterpret_cast<char*>(output.room().data());
  char* const end =
      server_.response_head_cache(response_->content_type()).write(text.size(), start);
  if (!text.empty()) std::memcpy(end, text.data(), text.size());
  output.commit(static_cast<std::size_t>(end - start) + text.size());
  return true;
}

/// Appends the whole response to the output. Returns false if it does not fit or is streamed.
bool RequestLoop::try_write_to_output() {
  if (is_common()) return write_common();
  check_response();
  decide_keep_alive();
  Body& body = response_->body();
  if (body.is_stream() && !head_only()) return false;
  const ResponseHead head = make_response_head();
  const std::string_view text = head_only() ? std::string_view() : body.text();
  Buffer& output = io_.writable_output();
  if (output.room().size() < head_size_max(head) + text.size()) return false;
  char* const start = reinterpret_cast<char*>(output.room().data());
  char* const end = write_head(head, start);
  if (!text.empty()) std::memcpy(end, text.data(), text.size());
  output.commit(static_cast<std::size_t>(end - start) + text.size());
  if (body.is_stream()) response_.clear();  // its content may be the handler's
  return true;
}

RequestLoop::InFlight::InFlight(RequestLoop& request_loop)
    : InFlightRequest(request_loop.server_.routes(), request_loop.match_.route(), &stop),
      request_loop_(request_loop) {
  request_loop.stopped_ = false;
  request_loop.match_.detach_from_table();
}

/// Stops the request as if its timeout had expired. The client gets 503 if a handler is running or
/// a streamed body has not begun. A streamed body that has begun is cut off. A wait for the client
/// has limits of its own.
void RequestLoop::InFlight::stop(InFlightRequest& self) {
  RequestLoop& request_loop = static_cast<InFlight&>(self).request_loop_;
  request_loop.stopped_ = true;
  if (!request_loop.cancel_) return;
  if (request_loop.handler_) request_loop.handler_timeout_.expired = true;
  request_loop.cancel_->cancel();
}

void RequestLoop::HandlerTimeout::expire(Timer& self) {
  auto& timer = static_cast<HandlerTimeout&>(self);
  timer.expired = true;
  timer.request_loop_.cancel_->cancel();
}

void RequestLoop::on_hangup(HangupObserver& self) {
  auto& request_loop = static_cast<RequestLoop&>(self);
  request_loop.peer_gone_ = true;
  if (std::exchange(request_loop.deferred_cancel_.queued, true)) return;
  request_loop.server_.loop().ready(request_loop.deferred_cancel_);
}

void RequestLoop::DeferredCancel::run(Runnable& self) {
  auto& later = static_cast<DeferredCancel&>(self);
  later.queued = false;
  RequestLoop& request_loop = later.request_loop_;
  if (request_loop.running_) {
    request_loop.cancel_->cancel();
  } else if (request_loop.waiter_) {
    resume_coroutine(std::exchange(request_loop.waiter_, nullptr));
  }
}

void RequestLoop::abandon(std::exception_ptr why) noexcept {
  abandoned_ = std::move(why);
  if (!running_) return;
  if (!in_flight_) in_flight_.emplace(*this);  // reserve_for_wait() allocated its memory
  cancel_->cancel();
}

void RequestLoop::stop_watching() {
  io_.stream().observe_hangup(nullptr);
  if (abandoned_) std::rethrow_exception(std::exchange(abandoned_, nullptr));
}

}  // namespace weir::http
