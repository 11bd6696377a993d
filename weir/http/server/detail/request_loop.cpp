#include "weir/http/h1/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "weir/http/h1/writer.hpp"
#include "weir/http/route_seats.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

Exchange::Exchange(ServerCore& server, Transport& transport, const Context& context) noexcept
    : Completion(&finished),
      HangupWatcher(&peer_gone),
      server_(server),
      transport_(transport),
      context_(context),
      parser_(server.limits().head, &server.known_host()),
      body_(transport, server.limits(), context) {}

Exchange::~Exchange() {
  assert(!busy());
  handler_.reset();  // before its route is let go, where it was abandoned
}

Exchange::Next Exchange::advance() {
  for (;;) {
    const std::string_view input = transport_.input().text();
    if (input.empty()) return Next::idle;
    const ParseResult parsed = parser_.parse(input, head_);
    if (parsed.kind == ParseResult::Kind::incomplete) return Next::more;
    if (parsed.kind == ParseResult::Kind::refused) return refuse(parsed.refusal);
    transport_.input().consume(parsed.consumed);
    ++heads_;
    const Next next = begin_request();
    if (next != Next::idle) return next;
  }
}

Exchange::Next Exchange::refuse(Refusal refusal) {
  server_.refused(refusal);
  keep_alive_ = false;
  refused_ = true;
  answer_with(status_of(refusal));
  return answer_now();
}

/// A head is complete: finds who answers it.
Exchange::Next Exchange::begin_request() {
  server_.counters().requests.add();
  unit_.begin(server_.counters().requests.value());
  keep_alive_ = head_.keep_alive() && !server_.draining();
  server_.routes().table().match(head_, match_);
  if (match_.by_core() && !find_tenant()) [[unlikely]] {
    keep_head();
    stage_ = Stage::tenant;
    return Next::slow;
  }
  return take_request();
}

/// Of a route that each core answers by itself: who does so here. False when somebody will soon;
/// where nobody does, the route itself says so.
bool Exchange::find_tenant() {
  RouteSeat* const seat = match_.route()->seats->on(server_.loop());
  if (seat == nullptr) return true;
  if (seat->tenant() != nullptr) match_.move_to(*seat->tenant());
  return seat->tenant() != nullptr || !seat->expecting();
}

/// It is known who answers.
Exchange::Next Exchange::take_request() {
  if (head_.has_body()) {
    body_.begin(head_, match_.options().body_max.value_or(server_.limits().body_max));
    if (body_.error()) return refuse(Refusal::body_too_large);
  } else {
    body_.begin_without();
  }
  if (match_.waits()) {
    if (!match_.waits_for_body_only()) return start_handler();
    const auto body = body_.whole_here();
    if (!body) return start_handler();
    answer([&] { return match_.answer_with(*body, request_); });
    return answer_now();
  }
  if (!body_.ended()) {
    // An answer that comes first would hide that the body is malformed.
    keep_head();
    stage_ = Stage::body_first;
    return Next::slow;
  }
  call_handler();
  return answer_now();
}

/// Takes the answer that `make()` returns, or 500 for what it throws.
template <class Make>
void Exchange::answer(const Make& make) {
  const Running::Working working(&unit_);
  try {
    response_.fill(make);
  } catch (...) {
    failed(std::current_exception());
  }
}

/// Calls a handler that does not wait, or gives the router's own answer.
void Exchange::call_handler() {
  answer([this] { return match_.answer(request_); });
}

/// A handler that may wait keeps the head while the input moves on: it gets a copy of its own, and
/// what was found in the head moves with it.
void Exchange::keep_head() {
  if (head_copy_ != nullptr) return;  // it has waited before
  const std::string_view bytes = head_.bytes();
  head_copy_.reset(static_cast<char*>(BlockPool::allocate(bytes.size())));
  std::memcpy(head_copy_.get(), bytes.data(), bytes.size());
  match_.rebase(bytes, head_copy_.get());
  head_.rebase(head_copy_.get());
}

/// Takes what waiting for a handler needs before there is one that must be waited for: from here to
/// its end, an InUse needs no memory.
void Exchange::prepare_to_wait() {
  match_.settle();
  if (const Route* const route = match_.route()) server_.routes().make_room(*route);
  begin_cancel();
}

/// What runs from now on is cancelled with the connection, and on behalf of the route's request.
void Exchange::begin_cancel() noexcept {
  cancel_.emplace(context_.cancel);
  unit_.found(match_.route());
  cancel_->set_unit(&unit_);
}

Exchange::Next Exchange::start_handler() {
  keep_head();
  prepare_to_wait();
  deadline_.expired = false;
  const Running::Working working(&unit_);
  try {
    handler_.emplace(match_.start(request_));
  } catch (...) {
    cancel_.reset();
    failed(std::current_exception());
    return answer_now();
  }
  const bool answered = run(*handler_);
  look_at_turn();
  if (!answered) {
    if (const auto deadline = match_.options().deadline) {
      server_.loop().timers().start(deadline_, after(server_.loop().now(), *deadline));
    }
    stage_ = Stage::handler;
    return Next::slow;
  }
  take_response();
  return answer_now();
}

/// Starts it under cancel_. Returns whether it has ended at once.
template <class T>
bool Exchange::run(Task<T>& task) {
  running_ = true;
  waiting_ = nullptr;
  task.start(Context{&server_.loop(), &*cancel_}, *this);
  if (running_) transport_.stream().watch(this);
  return !running_;
}
template bool Exchange::run(Task<Result<>>& task);

std::coroutine_handle<> Exchange::finished(Completion& self, std::coroutine_handle<>) {
  auto& exchange = static_cast<Exchange&>(self);
  exchange.running_ = false;
  exchange.deadline_.cancel();
  Running::work_for(exchange.context_.unit());  // the connection goes on
  if (exchange.waiting_ && !exchange.busy()) return std::exchange(exchange.waiting_, nullptr);
  return std::noop_coroutine();
}

/// The handler has finished: its response, or 500 for what it threw.
void Exchange::take_response() {
  try {
    response_.fill([this] { return handler_->handle().promise().take(); });
  } catch (...) {
    failed(std::current_exception());
  }
  if (deadline_.expired) answer_with(Status::service_unavailable);
  handler_.reset();
  cancel_.reset();
}

void Exchange::failed(const std::exception_ptr& exception) {
  server_.counters().handler_failures.add();
  log(describe({}, exception));
  answer_with(Status::internal_error);
}

/// A handler returned an error that is not the client's: it is counted and logged once.
void Exchange::handler_error() {
  const std::error_code cause = response_->cause();
  response_->set_cause({});
  if (cause == Errc::cancelled) return;
  server_.counters().handler_failures.add();
  log("it failed: " + cause.message());
}

/// One line for the operator, whatever it was that a handler threw.
void Exchange::log(std::string_view what) {
  std::string line("weir: ");
  line.append(head_.method_text()).append(" ").append(head_.path()).append(": ").append(what);
  std::replace_if(line.begin(), line.end(), [](char each) { return each >= 0 && each < ' '; }, '?');
  server_.loop().host().log(line);
}

void Exchange::answer_with(Status status) {
  response_.fill([status] { return status_text(status); });
}

/// Looks after what is not plain about a response. What cannot be sent becomes a 500.
void Exchange::check_response() {
  const bool final = code_of(response_->status()) >= 200 && is_valid(response_->status());
  if (response_->invalid_field().empty() && final) {
    if (response_->cause() && code_of(response_->status()) >= 500) handler_error();
    return;
  }
  server_.counters().handler_failures.add();
  const std::string why = final ? "the field " + std::string(response_->invalid_field())
                                : "the status " + std::to_string(code_of(response_->status()));
  log("cannot send " + why);
  answer_with(Status::internal_error);
}

/// Writes the answer where nothing has to wait for that.
Exchange::Next Exchange::answer_now() {
  stage_ = Stage::answer;
  if ((!body_.ended() && !refused_) || !write_small()) return Next::slow;
  const Next next = ended();
  return next == Next::close && peer_is_done() ? Next::close_now : next;
}

/// Whether the peer should send nothing more, so that nobody needs to read what it sends: it asked
/// for the close itself (RFC 9112 §9.6: it "MUST NOT send further requests"), in a request without
/// a body (behind one, some old clients send an empty line).
bool Exchange::peer_is_done() const noexcept {
  return !head_.keep_alive() && !refused_ && !head_.has_body() && transport_.input().empty();
}

/// The request is answered.
Exchange::Next Exchange::ended() noexcept {
  server_.counters().responses.add();
  look_at_turn();
  body_.release();
  head_copy_.reset();
  return keep_alive_ ? Next::idle : Next::close;
}

/// A part of a request has run: whether it was what makes this turn slow.
void Exchange::look_at_turn() noexcept {
  if (server_.loop().watch().ticked()) [[unlikely]]
    blame_route();
}

void Exchange::blame_route() noexcept {
  const Route* const route = match_.route();
  if (route == nullptr || refused_) return;
  try {
    server_.loop().watch().look_at([route] { return route->method + " " + route->pattern.text(); });
  } catch (const std::bad_alloc&) {
    // It stays without a name.
  }
}

bool Exchange::head_only() const noexcept {
  const Status status = response_->status();
  return head_.method() == Method::head || !may_have_body(status) ||
         status == Status::reset_content;
}

/// Whether the connection lives on behind this response.
void Exchange::decide_keep_alive() {
  const bool ends_with_connection =
      response_->body().is_stream() && head_.version_minor() == 0 && !head_only();
  if (ends_with_connection || server_.draining() || context_.cancelled()) keep_alive_ = false;
}

/// The response's head as it goes on the wire.
ResponseHead Exchange::describe_head() const {
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
    head.framing = BodyFraming::none;  // the body ends with the connection
  }
  if (!keep_alive_) {
    head.connection = ConnectionField::close;
  } else if (head_.version_minor() == 0) {
    head.connection = ConnectionField::keep_alive;
  }
  if (may_have_body(response_->status())) head.content_type = response_->content_type();
  if (response_->plain()) return head;
  const Fields& fields = response_->fields();
  if (fields.contains("Content-Type")) head.content_type = {};
  head.lines = fields.lines();
  return head;
}

/// Whether the response is of the kind that most are; see UsualHead.
bool Exchange::is_usual() const noexcept {
  return response_->plain() && response_->status() == Status::ok &&
         !response_->body().is_stream() &&
         response_->content_type().size() <= UsualHead::type_size_max &&
         head_.version_minor() > 0 && head_.method() != Method::head && keep_alive_ &&
         !server_.draining() && !context_.cancelled();
}

bool Exchange::write_usual() {
  const std::string_view text = response_->body().text();
  Buffer& output = transport_.writable_output();
  if (output.room().size() < UsualHead::size_max + text.size()) return false;
  char* const start = reinterpret_cast<char*>(output.room().data());
  char* const end = server_.usual_head(response_->content_type()).write(text.size(), start);
  if (!text.empty()) std::memcpy(end, text.data(), text.size());
  output.grow(static_cast<std::size_t>(end - start) + text.size());
  return true;
}

/// Appends the whole response to the output; false when it does not fit or is no matter of bytes.
bool Exchange::write_small() {
  if (is_usual()) return write_usual();
  check_response();
  decide_keep_alive();
  Body& body = response_->body();
  if (body.is_stream() && !head_only()) return false;
  const ResponseHead head = describe_head();
  const std::string_view text = head_only() ? std::string_view() : body.text();
  Buffer& output = transport_.writable_output();
  if (output.room().size() < head_size_max(head) + text.size()) return false;
  char* const start = reinterpret_cast<char*>(output.room().data());
  char* const end = write_head(head, start);
  if (!text.empty()) std::memcpy(end, text.data(), text.size());
  output.grow(static_cast<std::size_t>(end - start) + text.size());
  if (body.is_stream()) response_.clear();  // what it holds may be the handler's
  return true;
}

Exchange::InUse::InUse(Exchange& exchange)
    : RouteUse(exchange.server_.routes(), exchange.match_.route(), &stop), exchange_(exchange) {
  exchange.match_.settle();
}

/// As if its deadline had passed: a handler is answered for with 503, a streamed body is cut off.
/// What waits for the client has limits of its own.
void Exchange::InUse::stop(RouteUse& self) {
  Exchange& exchange = static_cast<InUse&>(self).exchange_;
  if (!exchange.cancel_) return;
  if (exchange.handler_) exchange.deadline_.expired = true;
  exchange.cancel_->cancel();
}

void Exchange::HandlerDeadline::expire(Timer& self) {
  auto& deadline = static_cast<HandlerDeadline&>(self);
  deadline.expired = true;
  deadline.exchange_.cancel_->cancel();
}

void Exchange::peer_gone(HangupWatcher& self) {
  auto& exchange = static_cast<Exchange&>(self);
  exchange.gone_ = true;
  if (std::exchange(exchange.cancel_later_.queued, true)) return;
  exchange.server_.loop().ready(exchange.cancel_later_);
}

void Exchange::CancelLater::run(Runnable& self) {
  auto& later = static_cast<CancelLater&>(self);
  later.queued = false;
  Exchange& exchange = later.exchange_;
  if (exchange.running_) {
    exchange.cancel_->cancel();
  } else if (exchange.waiting_) {
    go_on_with(std::exchange(exchange.waiting_, nullptr));
  }
}

void Exchange::abandon(std::exception_ptr why) noexcept {
  abandoned_ = std::move(why);
  if (!running_) return;
  if (!in_use_) in_use_.emplace(*this);  // there is room: prepare_to_wait()
  cancel_->cancel();
}

void Exchange::stop_watching() {
  transport_.stream().watch(nullptr);
  if (abandoned_) std::rethrow_exception(std::exchange(abandoned_, nullptr));
}

}  // namespace weir::http
