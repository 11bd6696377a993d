#include "weir/http/server/detail/h2/h2_connection.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {

H2ConnectionState::H2ConnectionState(ServerState& server) noexcept
    : session(H2Role::server, server.limits().h2, server.loop().now()),
      idle_since(server.loop().now()) {}

Instant H2ConnectionState::idle_deadline(const ServerState& server) const noexcept {
  const Limits& limits = server.limits();
  const Duration most = session.had_stream()
                            ? limits.idle_timeout
                            : std::min(limits.idle_timeout, limits.first_request_timeout);
  return after(idle_since, most);
}

H2Connection::H2Connection(ServerState& server, Connection& connection, H2ConnectionState& state,
                           Buffer input) noexcept
    : ConnectionIo(connection, server.limits(), std::move(input)),
      server_(server),
      owner_(connection),
      state_(state),
      session_(state.session) {}

H2Connection::~H2Connection() {
  if (exchanges_.empty()) return;
  session_.abandon();  // run() had no memory
  abort_exchanges();
}

bool H2Connection::advance() noexcept {
  try {
    if (handle_input() != Wait::more_input) return false;
    pump();
    if (!is_idle() || output_full()) return false;
  } catch (...) {
    session_.abandon();  // There is no memory for the connection.
    return false;
  }
  output() = session_.take_output();
  session_.drop_idle_memory();
  return true;
}

Task<H2Connection::End> H2Connection::run() {
  const auto body = [this](Scope& scope) { return serve(scope); };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
  if (broken()) co_return End::broken;
  co_return session_.failed() ? End::closed : End::idle;
}

Task<> H2Connection::serve(Scope& scope) {
  scope_ = &scope;
  End end = End::closed;
  try {
    if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->spawn_run();
    scope.spawn(write_all());
    end = co_await read_all();
  } catch (...) {
    // There is no memory for the connection.
  }
  ending_ = true;
  if (end != End::idle) {
    session_.abandon();  // what is in the output is still sent
    abort_exchanges();
  }
  wake_writer();
}

/// Reads until the connection is idle or ends.
Task<H2Connection::End> H2Connection::read_all() {
  for (;;) {
    for (Wait wait = handle_input(); wait != Wait::more_input; wait = handle_input()) {
      if (wait == Wait::output) {
        const bool taken = co_await output_taken();
        if (!taken) co_return End::closed;
        continue;
      }
      if (wait == Wait::share) share_used_ = false;
      wake_writer();
      const auto slept = co_await sleep(std::exchange(delay_, {}));
      if (!slept) co_return End::closed;
    }
    // Handlers take the bytes of bodies before many more arrive, so that buffers need not grow.
    if (new_data_ >= new_data_max) {
      new_data_ = 0;
      co_await yield();
    }
    // The deadline may change meanwhile, so fill() comes later.
    if (owner_.turn_budget_used()) {
      const auto slept = co_await sleep(Duration::zero());
      if (!slept) co_return End::closed;
    }
    if (server_.draining()) session_.begin_drain();
    const bool has_output = !session_.output().empty() || session_.next_sender() != nullptr;
    if (has_output) wake_writer();
    if (finished()) co_return End::closed;
    const Instant until = deadline();
    if (may_become_idle(until)) co_return End::idle;
    const auto filled = co_await fill(ReadState::http2, until);
    if (filled) continue;
    if (filled.error() != Errc::timed_out || finished()) co_return End::closed;
    on_deadline();
  }
}

/// Handles the input until something must happen first. Returns what that is.
H2Connection::Wait H2Connection::handle_input() {
  // The client may send the streams that it opens from now on again (RFC 9113 §6.8).
  if (owner_.proof_ended() || owner_.evicted()) session_.finish_drain();
  for (bool more = true; more;) {
    if (waiting_ != nullptr) return Wait::run;
    if (delay_ != Duration::zero()) return Wait::delay;
    if (share_used_) return Wait::share;
    if (output_full()) return Wait::output;
    const H2Event event = session_.next(input().bytes(), loop().now());
    more = handle(event);
    input().consume(event.consumed);
    delay_ = event.delay;
    if (event.kind == H2Event::Kind::open) {
      share_used_ = turn_share_used();
    } else if (event.end_stream) {
      // Its handler may run later in this turn, when no clock is read.
      share_used_ = turn_share_used(4);
    }
  }
  return Wait::more_input;
}

/// Returns true if the H2Connection has nothing to keep except its state and its output.
bool H2Connection::is_idle() const noexcept {
  return session_.streams_held() == 0 && exchanges_.empty() && !session_.within_frame() &&
         !session_.failed() && !owner_.ends();
}

/// Returns true if the reader, which would wait until `until`, can end instead.
bool H2Connection::may_become_idle(Instant until) const noexcept {
  const Instant now = server_.loop().now();
  return is_idle() && now >= after(state_.idle_since, idle_grace) && until > now && !writing() &&
         session_.output().empty();
}

/// Waits until the writer has taken the output. Returns false if it cannot be sent.
Task<bool> H2Connection::output_taken() {
  while (output_full() && !broken()) {
    wake_writer();
    const auto woken = co_await output_taken_.wait();
    if (!woken) co_return false;
  }
  co_return !broken();
}

/// Returns true if the session may have another event.
bool H2Connection::handle(const H2Event& event) {
  switch (event.kind) {
    case H2Event::Kind::open:
      open(event);
      return true;
    case H2Event::Kind::trailers:
      read_trailers(event);
      return true;
    case H2Event::Kind::discarded: {
      const auto read = server_.request_fields().skip(state_.table, event.bytes);
      if (read.kind == FieldsResult::Kind::invalid_block) fail_block();
      if (event.error == H2Error::refused_stream) server_.counters().http2_streams_refused.add();
      if (event.stream != nullptr) lose(event);
      return true;
    }
    case H2Event::Kind::data:
      new_data_ += event.bytes.size();
      static_cast<H2Carrier*>(event.stream)->on_data(event.bytes, event.end_stream);
      return true;
    case H2Event::Kind::reset:
      lose(event);
      return true;
    case H2Event::Kind::settings:
      state_.encoder.set_peer_size_max(session_.peer().header_table_size_min);
      return true;
    case H2Event::Kind::headers:
    case H2Event::Kind::ping_ack:
    case H2Event::Kind::goaway:
    case H2Event::Kind::delay:
      return true;
    case H2Event::Kind::need_more:
    case H2Event::Kind::failed:
      break;
  }
  return false;
}

/// Ends the exchange of a stream that was reset.
void H2Connection::lose(const H2Event& event) {
  server_.counters().http2_streams_reset.add();
  static_cast<H2Carrier*>(event.stream)->on_gone();
}

/// Counts a request whose stream was reset because it is malformed (RFC 9113 §8.1.1).
void H2Connection::count_malformed() noexcept {
  server_.counters().http2_streams_reset.add();
  server_.counters().count_parse_error(ParseError::malformed_fields);
}

/// Ends the connection after a block that cannot be decoded (RFC 9113 §4.3).
void H2Connection::fail_block() {
  session_.fail(H2Error::compression_error);
  server_.counters().count_parse_error(ParseError::bad_field_block);
}

void H2Connection::open(const H2Event& event) {
  if (spare_ == nullptr) spare_ = make_block<H2Carrier>(*this);
  H2Carrier& exchange = *spare_;
  const auto read =
      server_.request_fields().read_request(state_.table, event.bytes, exchange.head());
  if (read.kind == FieldsResult::Kind::invalid_block) {
    session_.reject(H2Error::compression_error);
    return fail_block();
  }
  if (read.kind == FieldsResult::Kind::malformed) {
    session_.reject(H2Error::protocol_error);
    return count_malformed();
  }
  const bool complete = read.kind == FieldsResult::Kind::complete;
  // The bytes of a tunnel are no body, so a length says nothing about them (RFC 9110 §9.3.6).
  const bool is_connect = read.is_extended_connect || exchange.head().method() == Method::connect;
  const bool has_length = complete && !is_connect && exchange.head().has_content_length();
  const bool accepted = has_length ? session_.accept(exchange, exchange.head().content_length())
                                   : session_.accept(exchange);
  if (!accepted) {
    session_.release(exchange);
    return count_malformed();
  }
  exchanges_.push_back(*spare_.release());
  server_.counters().http2_streams.add();
  server_.counters().http2_streams_open.add();
  if (!complete) return exchange.reject_head(read.error);
  if (read.priority) session_.set_priority(exchange, *read.priority);
  exchange.begin(is_connect);
}

void H2Connection::read_trailers(const H2Event& event) {
  auto& exchange = *static_cast<H2Carrier*>(event.stream);
  const auto read = server_.request_fields().read_trailers(state_.table, event.bytes,
                                                           exchange.received_trailers());
  switch (read.kind) {
    case FieldsResult::Kind::complete:
      exchange.on_end();
      break;
    case FieldsResult::Kind::invalid_block:
      fail_block();
      break;
    case FieldsResult::Kind::rejected:
      exchange.on_rejected_trailers(read.error);
      break;
    case FieldsResult::Kind::malformed:
      session_.reset(exchange, H2Error::protocol_error);
      count_malformed();
      exchange.on_gone();
      break;
  }
}

void H2Connection::give_up() noexcept {
  session_.abandon();
  output_taken_.set();
  if (owner_.read_state() == ReadState::http2) owner_.shorten_deadline(server_.loop().now());
}

void H2Connection::reset(H2Carrier& exchange, H2Error error) noexcept {
  // A connection that is lost ends its streams without a reset.
  if (!session_.failed()) server_.counters().http2_streams_reset.add();
  try {
    session_.reset(exchange, error);
  } catch (...) {
    give_up();
  }
}

void H2Connection::end(H2Carrier& exchange) noexcept {
  static_cast<H2CarrierNode&>(exchange).unlink();
  server_.counters().http2_streams_open.subtract();
  try {
    session_.release(exchange);
    if (exchange.collected() != 0) drop_collected(exchange);
  } catch (...) {
    give_up();
  }
  if (exchange.reusable() && spare_ == nullptr) {
    exchange.reuse();
    spare_.reset(&exchange);
  } else {
    BlockDeleter<H2Carrier>()(&exchange);
  }
  wake_writer();
  if (session_.streams_held() != 0) return;
  state_.idle_since = server_.loop().now();
  if (owner_.read_state() != ReadState::http2) return;
  owner_.shorten_deadline(finished() ? state_.idle_since : deadline());
}

void H2Connection::linger(H2Carrier& exchange) noexcept {
  try {
    exchange.begin_linger();
    if (exchange.collected() != 0) drop_collected(exchange);
  } catch (...) {
    give_up();
  }
  watch_progress();
  wake_writer();
}

void H2Connection::add_collected(H2Carrier& exchange, std::size_t count) {
  collected_ += count;
  if (collected_ > server_.limits().h2.bodies_max) {
    if (growing_ == nullptr && needs_window(exchange)) growing_ = &exchange;
    if (growing_ != &exchange) return;
  }
  exchange.allow_more();
}

/// Forgets the body of an exchange that is answered. Others may grow instead.
void H2Connection::drop_collected(H2Carrier& exchange) {
  collected_ -= exchange.take_collected();
  if (growing_ == &exchange) growing_ = nullptr;
  const bool all = collected_ <= server_.limits().h2.bodies_max;
  for (H2CarrierNode* each = exchanges_.front(); each != nullptr; each = exchanges_.next(*each)) {
    auto& other = *static_cast<H2Carrier*>(each);
    if (!all && growing_ != nullptr) return;
    if (!all && needs_window(other)) growing_ = &other;
    if (all || growing_ == &other) other.allow_more();
  }
}

void H2Connection::abort_exchanges() {
  // on_gone() destroys exchanges that have no coroutine.
  for (H2CarrierNode* each = exchanges_.front(); each != nullptr;) {
    H2CarrierNode* const next = exchanges_.next(*each);
    static_cast<H2Carrier*>(each)->on_gone();
    each = next;
  }
}

// Output.

/// Lets the streams append what the windows allow, in the order of their urgency. Stops after one
/// write from the memory of a body. Returns true if there was such a write.
bool H2Connection::pump() {
  wrote_in_place_ = false;
  while (!wrote_in_place_) {
    H2Stream* const stream = session_.next_sender();
    if (stream == nullptr) return false;
    static_cast<H2Carrier*>(stream)->send_part();
  }
  return true;
}

std::size_t H2Connection::send_in_place(H2Carrier& exchange, Bytes body, bool end_stream) {
  if (session_.allowed_in_place(exchange, body.size()) < in_place_allowed_min) return 0;
  wrote_in_place_ = true;
  const auto write = [this](std::span<const Bytes> pieces) {
    const std::size_t sent = stream().try_write(pieces).value_or(0);  // an error comes again
    owner_.count_sent(sent);
    return sent;
  };
  return session_.send_in_place(exchange, body, end_stream, write);
}

Task<> H2Connection::write_all() {
  for (;;) {
    bool wrote = false;
    try {
      wrote = pump();
    } catch (...) {
      give_up();
    }
    if (session_.output().empty() && wrote) {
      output_taken_.set();
      if (owner_.turn_budget_used()) std::ignore = co_await sleep(Duration::zero());
      continue;
    }
    if (session_.output().empty()) {
      if (ending_) co_return;
      drop_empty_buffers();
      session_.drop_idle_memory();
      if (session_.streams_held() == 0) {
        // The reader may have waited for the end of the output.
        if (owner_.read_state() == ReadState::http2) {
          owner_.shorten_deadline(after(state_.idle_since, idle_grace));
        }
      }
      const auto woken = co_await output_ready_.wait();
      if (!woken) co_return;
      continue;
    }
    if (owner_.turn_budget_used()) std::ignore = co_await sleep(Duration::zero());
    output() = session_.take_output();
    output_taken_.set();
    if (co_await write_output()) continue;
    output_taken_.set();
    stream().cancel_read();
    co_return;
  }
}

// Deadlines. The reader is the only one that waits with a deadline.

Instant H2Connection::deadline() noexcept {
  const Limits& limits = server_.limits();
  const Instant now = server_.loop().now();
  if (!session_.within_frame() || session_.within_data()) {
    frame_since_ = never;  // the streams limit the rate of DATA
  } else if (frame_since_ == never || frame_ != session_.frame_number()) {
    frame_since_ = now;
    frame_ = session_.frame_number();
  }
  Instant until = std::min(next_check_, drain_until_);
  if (server_.draining() && drain_until_ == never) {
    until = drain_until_ = after(now, drain_grace);
  }
  if (frame_since_ != never) until = std::min(until, after(frame_since_, limits.head_timeout));
  if (!session_.drain_finished()) until = std::min(until, owner_.proof_deadline());
  if (session_.streams_held() == 0) {
    until = std::min(until, state_.idle_deadline(server_));
    const Instant grace_end = after(state_.idle_since, idle_grace);
    if (now < grace_end) until = std::min(until, grace_end);
  }
  return until;
}

/// Ends what has lasted too long.
void H2Connection::on_deadline() {
  const Limits& limits = server_.limits();
  const Instant now = server_.loop().now();
  if (server_.draining()) {
    session_.begin_drain();
    if (now >= drain_until_) {
      session_.finish_drain();
      drain_until_ = never;
    }
    if (finished()) return;
  }
  if (next_check_ <= now) check_progress(now);
  if (frame_since_ != never && now >= after(frame_since_, limits.head_timeout)) {
    session_.fail(H2Error::enhance_your_calm);
  } else if (session_.streams_held() == 0 && now >= state_.idle_deadline(server_)) {
    session_.fail(H2Error::no_error);
  }
}

void H2Connection::watch_progress() noexcept {
  if (next_check_ != never) return;
  next_check_ = after(server_.loop().now(), check_interval);
  sent_ = session_.data_sent();
  if (owner_.read_state() == ReadState::http2) owner_.shorten_deadline(next_check_);
}

/// Resets the streams whose clients do not let the server send, and ends those that have lingered.
void H2Connection::check_progress(Instant now) {
  next_check_ = never;
  const std::uint32_t before = std::exchange(sent_, session_.data_sent());
  const std::uint32_t sent = sent_ - before;
  for (H2CarrierNode* each = exchanges_.front(); each != nullptr;) {
    auto& exchange = *static_cast<H2Carrier*>(each);
    each = exchanges_.next(*each);
    if (!exchange.has_pending() && !exchange.lingers()) continue;
    next_check_ = after(now, check_interval);
    if (exchange.lingers()) {
      exchange.check_linger();
      continue;
    }
    if (!exchange.is_too_slow(check_interval, sent)) continue;
    server_.counters().slow_readers.add();
    reset(exchange, H2Error::cancel);
    exchange.on_gone();
  }
}

}  // namespace weir::http
