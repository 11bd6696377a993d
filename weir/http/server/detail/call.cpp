#include "weir/http/server/detail/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/response_sink.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

/// The lines about refused requests, of which each core logs at most one per second.
class OverloadLog {
 public:
  /// Returns the number of lines that were left out before; nullopt to leave this one out.
  std::optional<std::uint64_t> next(Instant now) noexcept {
    if (now < next_) {
      ++omitted_;
      return std::nullopt;
    }
    next_ = after(now, std::chrono::seconds(1));
    return std::exchange(omitted_, 0);
  }

 private:
  Instant next_ = Instant::min();
  std::uint64_t omitted_ = 0;
};

}  // namespace

Call::Call(ServerState& server, BodySource& body, const Context& context,
           detail::RequestOwner& owner) noexcept
    : Continuation(call_kind),
      server_(server),
      context_(context),
      request_(head_, body, &trace_, &server.loop(), &owner) {}

Call::~Call() {
  assert(!busy());
  report_cut();
  handler_.reset();  // before its route is released, if it was abandoned
}

void Call::begin() {
  server_.counters().requests.add();
  trace_.begin(server_.counters().requests.value());
  cancel_reason_ = CancelReason::none;
  stage_ = Stage::routed;
  has_path_ = true;
  begin_record();
  server_.routes().table().match(head_, match_);
  if (!match_.is_per_core() || find_core_handler()) [[likely]]
    return;
  keep_head();
  found_route_.emplace(server_.routes(), match_.route(),
                       [](InFlightRequest&, InFlightRequest::StopReason) {});
  stage_ = Stage::routing;
}

/// Finds the handler of this core for a route with core handlers. Returns false if a replacement
/// is expected soon. The route itself answers if there is no handler.
bool Call::find_core_handler() {
  CoreHandler* const core_handler = match_.route()->core_handlers->on(server_.loop());
  if (core_handler == nullptr) return true;
  if (core_handler->active() != nullptr) match_.redirect_to(*core_handler->active());
  return core_handler->active() != nullptr || !core_handler->is_replacement_expected();
}

/// If the client leaves during the wait, the carrier notices it only when it answers.
Task<> Call::wait_for_core_handler() {
  CoreHandlers& core_handlers = *match_.route()->core_handlers;
  auto settled = as_task(core_handlers.on(server_.loop())->replacement_settled());
  std::ignore = co_await timeout(core_handlers.wait_timeout(), std::move(settled));
  static_cast<void>(find_core_handler());  // without one the route answers 503
  stage_ = Stage::routed;
}

/// Takes the response that `make()` returns, or 500 for an exception.
template <class Make>
void Call::fill_response(const Make& make) {
  try {
    response_.fill(make);
    stage_ = Stage::answered;
  } catch (...) {
    fail_with(std::current_exception());
  }
}

void Call::respond() {
  trace_.set_route(match_.route());
  const loop::CurrentActivity::TraceGuard trace_guard(&trace_);
  fill_response([this] { return match_.respond(request_); });
}

void Call::respond_with(std::string_view body) {
  trace_.set_route(match_.route());
  const loop::CurrentActivity::TraceGuard trace_guard(&trace_);
  fill_response([&] { return match_.respond_with_body(body, request_); });
}

void Call::keep_head() {
  if (head_copy_ != nullptr) return;  // the request has waited before
  const std::string_view bytes = head_.bytes();
  head_copy_.reset(static_cast<char*>(BlockPool::allocate(bytes.size())));
  std::memcpy(head_copy_.get(), bytes.data(), bytes.size());
  match_.rebase(bytes, head_copy_.get());
  head_.rebase(head_copy_.get());
}

/// Allocates all memory for the wait for a handler before the handler starts. An InFlight needs
/// no memory from then on.
void Call::reserve_for_wait() {
  match_.detach_from_table();
  if (const Route* const route = match_.route()) server_.routes().reserve(*route);
  begin_cancel();
}

/// Makes a cancel source with the request's trace. A cancellation of the carrier also cancels it.
void Call::begin_cancel() noexcept {
  cancel_.emplace(context_.cancel);
  trace_.set_route(match_.route());
  cancel_->set_trace(&trace_);
}

bool Call::start() {
  keep_head();
  reserve_for_wait();
  const loop::CurrentActivity::TraceGuard trace_guard(&trace_);
  try {
    handler_.emplace(match_.start(request_));
  } catch (...) {
    cancel_.reset();
    fail_with(std::current_exception());
    return true;
  }
  const bool answered = run(*handler_);
  check_stall();
  if (!answered) {
    if (const auto timeout = match_.options().timeout) {
      server_.loop().timers().start(handler_timeout_, after(server_.loop().now(), *timeout));
    }
    return false;
  }
  take_response();
  return true;
}

template <class T>
bool Call::run(Task<T>& task) {
  stage_ = Stage::running;
  task.start(Context{&server_.loop(), &*cancel_}, *this);
  return stage_ != Stage::running;
}
template bool Call::run(Task<Result<>>& task);

std::coroutine_handle<> Call::on_finished(Continuation& self, std::coroutine_handle<>) {
  auto& call = static_cast<Call&>(self);
  call.stage_ = Stage::returned;
  call.handler_timeout_.cancel();
  loop::CurrentActivity::set_trace(call.context_.trace());  // the carrier runs next
  if (call.waiter_ && !call.busy()) return std::exchange(call.waiter_, nullptr);
  return std::noop_coroutine();
}

void Call::take_response() {
  fill_response([this] { return handler_->handle().promise().take(); });
  const bool too_late =
      cancel_reason_ == CancelReason::timeout || cancel_reason_ == CancelReason::removal;
  if (too_late) replace_response(Status::service_unavailable);
  handler_.reset();
  cancel_.reset();
}

Task<Result<>> Call::stream_to(BodySink& sink) {
  begin_cancel();
  const loop::CurrentActivity::TraceGuard trace_guard(&trace_);
  return (*response_->body().stream())(sink);
}

bool Call::end_stream(const ResponseSink& sink, const Result<>& written,
                      const std::exception_ptr& thrown, StreamClient client) {
  // An error that is found now is not sent, if the head was. Only observers read these facts, and
  // only their run clears them for the next request.
  head_streamed_ = !request_.end_observers_.empty() &&
                   (client == StreamClient::has_head || client == StreamClient::gone_with_head);
  if (head_streamed_) sent_ = {.status = response_->status(), .body_bytes = sink.bytes()};
  const bool gone = client == StreamClient::gone || client == StreamClient::gone_with_head;
  cancel_.reset();
  stage_ = Stage::answered;
  if (thrown) {
    fail_with(thrown);
    return false;
  }
  if (sink.too_long() || (written && sink.incomplete())) {
    replace_response(Status::internal_error);
    if (gone) return false;
    report_failure(sink.too_long() ? "response body exceeds its length"
                                   : "response body incomplete: it is shorter than its length");
    return false;
  }
  if (written) return true;
  const Status status = to_status(written.error());
  replace_response(status);
  const bool caused = gone || written.error() == Errc::cancelled;
  const bool shown = client == StreamClient::waits && status < Status::internal_error;
  if (!caused && !shown) {
    report_failure("response body incomplete: " + written.error().message());
  }
  return false;
}

void Call::fail_with(const std::exception_ptr& exception) {
  server_.counters().handler_failures.add();
  log("handler failed: " + describe({}, exception));
  replace_response(Status::internal_error);
  stage_ = Stage::answered;
}

void Call::report_failure(std::string_view what) {
  server_.counters().handler_failures.add();
  log(what);
}

/// Writes one line for the operator.
void Call::log(std::string_view what) {
  std::string line("weir: ");
  line.append(head_.method_text()).append(" ").append(head_.path()).append(": ").append(what);
  server_.loop().platform().log(line);
}

void Call::replace_response(Status status) {
  response_.fill([status] { return Response(status); });
  apply_filters();
  render_error();
}

/// Lets the filters of the route add their headers to a response that replaces that of the handler.
void Call::apply_filters() {
  const Status status = response_->status();
  try {
    match_.apply_filters(request_, *response_);
  } catch (...) {
    response_.fill([status] { return Response(status); });
    log("filter failed: " + describe({}, std::current_exception()));
  }
}

/// Notes the facts of the response before it is destroyed.
void Call::note_sent_response() noexcept {
  if (response_.empty() || head_streamed_) return;
  sent_.status = response_->status();
  const Body& body = response_->body();
  const bool has_text = !body.is_stream() && !head_only();
  sent_.body_bytes = has_text ? body.text().size() : 0;
}

void Call::run_end_observers(bool whole, std::uint64_t unsent) noexcept {
  note_response();
  if (!std::exchange(head_streamed_, false)) {
    sent_.body_bytes -= std::min(sent_.body_bytes, unsent);
  }
  sent_.complete = whole;
  request_.end_observers_.run(request_, std::exchange(sent_, {}));
}

Call::EndRecord::EndRecord(Call& of) noexcept
    : Link{nullptr,
           [](Link* link, Request&, const SentResponse& sent) {
             static_cast<EndRecord*>(link)->call.record_end(sent);
           },
           [](Link*) noexcept {}},
      call(of) {}

/// The functions of Request::on_end() are added later, so they run before the record is taken.
void Call::start_record() noexcept {
  if (!request_.end_observers_.empty()) return;  // the request has begun before
  end_record_.begin = server_.recorder()->begin();
  end_record_.version = request_.version();
  request_.end_observers_.add_link(end_record_);
}

void Call::record_end(const SentResponse& sent) noexcept {
  const Route* const route = match_.route();
  const bool answered = stage_ == Stage::answered || stage_ == Stage::rejected;
  const bool unanswered = !sent.complete && (peer_gone() || !answered);
  server_.recorder()->end({.begin = end_record_.begin,
                           .route = route == nullptr ? nullptr : &route->name(),
                           .status = unanswered ? Status() : sent.status,
                           .method = has_path_ ? head_.method() : Method::other,
                           .version = end_record_.version,
                           .complete = sent.complete});
}

/// Describes the error of a response without a body, in the form that the router's program chose.
void Call::render_error() {
  if (!response_->needs_error_page()) return;
  try {
    const Problem problem = response_->problem();
    const std::string_view path = has_path_ ? head_.path() : std::string_view();
    const auto& render = server_.router().error_renderer(path);
    Response page = render ? render(problem) : problem_document(problem);
    if (page.body().is_stream()) page = problem_document(problem);
    response_->set_content(std::move(page));
  } catch (...) {
    Problem bare;
    bare.status = response_->status();
    response_->set_content(problem_document(bare));  // it needs no heap memory
    log("cannot describe an error: " + describe({}, std::current_exception()));
  }
}

void Call::reject(Status status) {
  // It does not wait for a handler. The table keeps the route for this turn.
  if (stage_ == Stage::routing) found_route_.reset();
  stage_ = Stage::rejected;
  replace_response(status);
}

/// Returns true if the handler of a route for HEAD has returned an empty body. It need not make the
/// content to know its other headers, so nothing tells the length of that of GET (RFC 9110 §8.6,
/// §9.3.2).
bool Call::lacks_length() const noexcept {
  if (head_.method() != Method::head || stage_ == Stage::rejected) return false;
  const Route* const route = match_.route();
  return route != nullptr && route->method == "HEAD" && response_->body().length() == 0U;
}

ResponseHead Call::response_head() const {
  const Response& response = *response_;
  ResponseHead head;
  head.status = response.status();
  head.date = &server_.heads().date();
  head.framing = BodyFraming::none;
  if (may_have_body(response.status()) && !response.body().is_upgrade()) {
    head.content_type = response.content_type();
    const bool resets = response.status() == Status::reset_content;  // RFC 9110 §15.3.6
    const auto length = resets ? std::uint64_t{0} : response.body().length();
    head.framing = length ? BodyFraming::length : BodyFraming::chunked;
    if (lacks_length()) head.framing = BodyFraming::none;
    head.content_length = length.value_or(0);
  }
  if (response.is_plain()) return head;
  const Headers& headers = response.headers();
  if (headers.contains("Content-Type")) head.content_type = {};
  if (headers.contains("Date")) head.date = nullptr;
  head.lines = headers.lines();
  return head;
}

bool Call::has_common_head() const noexcept {
  return response_->is_plain() && response_->status() == Status::ok &&
         !response_->body().is_stream() &&
         response_->content_type().size() <= ResponseHeadCache::type_size_max &&
         head_.method() != Method::head;
}

void Call::check_response() {
  const bool final = (code_of(response_->status()) >= 200 && is_valid(response_->status())) ||
                     response_->body().is_upgrade();
  if (response_->invalid_header().empty() && final) {
    if (response_->status() < Status::bad_request) [[likely]]
      return;
    if (response_->cause() && response_->status() >= Status::internal_error) report_handler_error();
    render_error();
    return;
  }
  server_.counters().handler_failures.add();
  const std::string why = final ? "the header " + std::string(response_->invalid_header())
                                : "the status " + std::to_string(code_of(response_->status()));
  log("cannot send " + why);
  replace_response(Status::internal_error);
}

/// Counts and logs the error of a handler, once, unless it was cancelled. Clients can cause many
/// requests that are refused because others wait, so their lines are limited.
void Call::report_handler_error() {
  const std::error_code cause = response_->cause();
  response_->set_cause({});
  if (cause == Errc::cancelled) return;
  server_.counters().handler_failures.add();
  std::string what = "handler failed: " + cause.message();
  if (cause == ClientError::queue_full || cause == ClientError::queue_timed_out) {
    const auto omitted = server_.loop().slots().get<OverloadLog>().next(server_.loop().now());
    if (!omitted) return;
    if (*omitted != 0) what += " (and " + std::to_string(*omitted) + " earlier requests)";
  }
  log(what);
}

bool Call::head_only() const noexcept {
  const Status status = response_->status();
  return head_.method() == Method::head || !may_have_body(status) ||
         status == Status::reset_content;
}

void Call::hold() {
  if (in_flight_) return;  // the request has waited before
  // A large or streamed response needs the head too. A rejected head may be incomplete.
  if (stage_ != Stage::rejected) keep_head();
  in_flight_.emplace(*this);  // until release(); after an exception, until nothing runs
  found_route_.reset();
}

void Call::end() noexcept {
  check_stall();
  request_.values_.clear();
  head_copy_.reset();
}

/// Checks, after a part of a request has run, if it made this turn slow.
void Call::check_stall() noexcept {
  if (server_.loop().stall_detector().ticked()) [[unlikely]]
    report_stall();
}

void Call::report_stall() noexcept {
  const Route* const route = match_.route();
  if (route == nullptr || stage_ == Stage::rejected) return;
  try {
    server_.loop().stall_detector().check_as(
        [route] { return route->method + " " + route->pattern.text(); });
  } catch (const std::bad_alloc&) {
    // The stall has no name then.
  }
}

Call::InFlight::InFlight(Call& call)
    : InFlightRequest(call.server_.routes(), call.match_.route(), &stop), call_(call) {
  call.match_.detach_from_table();
}

/// Stops the request as if its timeout had expired. The client gets 503 if a handler is running or
/// a streamed body has not begun. A streamed body that has begun is cut off. A wait for the client
/// has limits of its own.
void Call::InFlight::stop(InFlightRequest& self, StopReason reason) {
  if (reason == StopReason::removal_begins) return;
  static_cast<InFlight&>(self).call_.cancel_for(CancelReason::removal);
}

void Call::HandlerTimeout::expire(loop::Timer& self) {
  static_cast<HandlerTimeout&>(self).call_.cancel_for(CancelReason::timeout);
}

void Call::cancel_for(CancelReason reason) noexcept {
  if (cancel_reason_ == CancelReason::none) cancel_reason_ = reason;
  if (cancel_) cancel_->cancel();
}

void Call::cancel_without_peer() noexcept {
  cancel_reason_ = CancelReason::peer_gone;
  if (std::exchange(deferred_cancel_.queued, true)) return;
  server_.loop().ready(deferred_cancel_);
}

void Call::DeferredCancel::run(loop::Runnable& self) {
  auto& later = static_cast<DeferredCancel&>(self);
  later.queued = false;
  Call& call = later.call_;
  if (call.stage_ == Stage::running) {
    call.cancel_->cancel();
  } else if (call.waiter_) {
    resume_coroutine(std::exchange(call.waiter_, nullptr));
  }
}

void Call::abandon(std::exception_ptr why) noexcept {
  abandoned_ = std::move(why);
  if (stage_ != Stage::running) return;
  if (!in_flight_) in_flight_.emplace(*this);  // reserve_for_wait() allocated its memory
  cancel_->cancel();
}

void Call::throw_if_abandoned() {
  if (abandoned_) std::rethrow_exception(std::exchange(abandoned_, nullptr));
}

}  // namespace weir::http
