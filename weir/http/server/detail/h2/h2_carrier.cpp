#include "weir/http/server/detail/h2/h2_carrier.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {

H2Carrier::H2Carrier(H2Connection& connection) noexcept
    : connection_(connection),
      exchange_(connection.server(), *this, connection.context()),
      write_rate_(connection.server().limits().write_rate) {}

H2Carrier::~H2Carrier() = default;

Loop& H2Carrier::loop() const noexcept {
  return connection_.loop();
}

os::Address H2Carrier::peer_address() const {
  return connection_.peer_address();
}

const TlsInfo* H2Carrier::tls() const noexcept {
  return connection_.stream().tls();
}

void H2Carrier::change(State next) noexcept {
  static constexpr weir::detail::StateTable<State, 5> table{
      {State::fresh, {State::sending, State::running, State::ended}},
      {State::sending, {State::ended}},
      {State::running, {State::ended}},
      {State::ended, {State::lingering}},
  };
  table.change(state_, next);
}

void H2Carrier::reuse() noexcept {
  exchange_.call().drop_response();
  state_ = State::fresh;
  tunnel_ = TunnelState::none;
}

void H2Carrier::begin(bool is_connect) {
  tunnel_ = is_connect ? TunnelState::asked : TunnelState::none;
  const bool has_body = !remote_ended() && !is_connect;
  take_next(exchange_.begin(has_body ? head().length_in_stream() : BodyLength()));
}

void H2Carrier::reject_head(ParseError error) {
  take_next(exchange_.reject_head(error));
}

/// Takes the step behind a head. The handler is called by run(), which needs memory.
void H2Carrier::take_next(Exchange::Next next) {
  if (next == Exchange::Next::finish) return finish();
  reusable_ = false;
  if (next != Exchange::Next::send_on) return spawn_run();
  change(State::sending);
  exchange_.call().hold();
}

void H2Carrier::spawn_run() {
  Scope* const scope = connection_.scope();
  if (scope == nullptr) return connection_.wait_for_scope(*this);
  Task<> running = run();
  change(State::running);
  scope->spawn(std::move(running));
}

/// Runs a request that has to wait, and then destroys the carrier.
Task<> H2Carrier::run() {
  bool failed = false;
  try {
    co_await serve();
  } catch (...) {
    failed = true;
  }
  if (failed && !closed()) connection_.reset(*this, H2Error::internal_error);
  finish();
}

Task<> H2Carrier::serve() {
  if (websocket_ == nullptr) std::ignore = co_await exchange_.run();
  if (websocket_ != nullptr) co_await serve_websocket();
}

/// Ends the exchange, and the stream unless it lingers.
void H2Carrier::finish() noexcept {
  change(State::ended);
  const bool was_tunnel = tunnel_ == TunnelState::open || tunnel_ == TunnelState::ended;
  if (!was_tunnel) exchange_.finish();
  if (may_linger()) return connection_.linger(*this);
  if (!closed()) {
    const bool whole = local_ended();
    connection_.reset(*this, whole ? H2Error::no_error : H2Error::internal_error);
  }
  connection_.end(*this);
}

// The rest of a body whose request is answered. RST_STREAM may tell the client to stop (RFC 9113
// §8.1), but some clients, such as curl 7.88, then lose a response that they have not read.

/// Returns true if the client may still send the body of the answered request. One that was too
/// slow before has no more time, and the bytes of a tunnel are no body.
bool H2Carrier::may_linger() const noexcept {
  const bool answered = local_ended() && !closed() && !gone_;
  return answered && tunnel_ == TunnelState::none && !exchange_.body().too_slow() &&
         !connection_.session().failed();
}

void H2Carrier::begin_linger() {
  change(State::lingering);
  linger_.emplace(connection_.server().limits(), LateInput::body, connection_.loop().now());
  reusable_ = false;
  exchange_.call().leave_route();
  exchange_.call().drop_response();
  if (collects_) {
    lent_ = {};
    arrived_ = {};
    allow_more();
  } else {
    return_lent();
    drop_arrived();
  }
}

void H2Carrier::drop_late(std::size_t count, bool end_stream) {
  connection_.session().consume(*this, count);
  const bool allowed = linger_->count(count, connection_.loop().now());
  if (!allowed) connection_.reset(*this, H2Error::no_error);
  if (!allowed || end_stream) connection_.end(*this);
}

void H2Carrier::check_linger() {
  const Instant now = connection_.loop().now();
  if (connection_.server().draining()) linger_->drain(now);
  if (now < linger_->deadline()) return;
  connection_.reset(*this, H2Error::no_error);
  connection_.end(*this);
}

// The response.

/// Sends the field block that `write(out)` writes, at most `size` bytes, behind a change of the
/// size of the table.
template <class Write>
void H2Carrier::write_headers(std::size_t size, const Write& write, bool ends) {
  HpackEncoderState& encoder = connection_.encoder();
  const auto write_all = [&](char* out) { return write(encoder.write_size_update(out)); };
  connection_.session().send_headers(*this, HpackEncoderState::size_update_max + size, write_all,
                                     ends);
  connection_.wake_writer();
}

Task<Result<>> H2Carrier::send_interim(const ResponseHead& head) {
  if (gone()) co_return fail(Errc::closed);
  send_head(head, false);
  co_return {};
}

void H2Carrier::send_head(const ResponseHead& head, bool ends) {
  const auto write = [&](char* out) { return write_response_block(head, out); };
  write_headers(response_block_size_max(head), write, ends);
}

Carrier::Sent H2Carrier::send_common(const Response& response) {
  if (is_connect()) return Sent::nothing;
  const std::string_view text = response.body().text();
  const ResponseBlockCache& block =
      connection_.server().heads().common_block(response.content_type());
  HpackEncoderState& encoder = connection_.encoder();
  const auto write = [&](char* out) { return block.write(text.size(), encoder, out); };
  if (connection_.session().send_whole(*this, block.size_max, write, to_bytes(text))) {
    return Sent::whole;  // finish() wakes the writer
  }
  connection_.session().send_headers(*this, block.size_max, write, text.empty());
  return send_text(text) ? Sent::whole : Sent::part;
}

Carrier::Sent H2Carrier::send_message(const ResponseHead& head, std::string_view text) {
  send_head(head, text.empty());
  return send_text(text) ? Sent::whole : Sent::part;
}

/// Sends a text that ends the stream. The writer of the connection sends what the windows and the
/// output do not allow yet. Returns false if something is left.
bool H2Carrier::send_text(std::string_view text) {
  connection_.wake_writer();
  Bytes rest = to_bytes(text);
  while (!rest.empty() && !connection_.sends_in_place(rest.size())) {
    const std::size_t sent = connection_.session().send_data(*this, rest, true);
    rest = rest.subspan(sent);
    if (sent == 0) break;
  }
  if (rest.empty()) return true;
  pending_ = rest;
  wait_to_send(true);
  return false;
}

/// Asks the writer of the connection to send the pending bytes.
void H2Carrier::wait_to_send(bool ends) {
  pending_ends_ = ends;
  output_.reset();
  connection_.session().want_send(*this);
  connection_.watch_progress();
}

Task<Result<>> H2Carrier::send_rest(const ResponseHead& /*head*/, std::string_view /*text*/) {
  const auto waited = co_await output_.wait();
  if (waited && gone_) co_return fail(Errc::closed);
  co_return waited;
}

void H2Carrier::send_part() {
  std::size_t sent = 0;
  if (connection_.sends_in_place(pending_.size())) {
    sent = connection_.send_in_place(*this, pending_, pending_ends_);
  }
  if (sent == 0) sent = connection_.session().send_data(*this, pending_, pending_ends_);
  assert(sent != 0 && "it was the next sender");
  sent_since_check_ += static_cast<std::uint32_t>(sent);
  count_sent(sent);
  pending_ = pending_.subspan(sent);
  if (!pending_.empty()) return;
  connection_.session().stop_sending(*this);
  output_.set();
  if (is_tunnel()) return on_piece_sent();
  if (state_ == State::running) return;
  exchange_.on_rest_sent();
  finish();
}

bool H2Carrier::is_too_slow(Duration waited, std::uint32_t sent) noexcept {
  const std::uint32_t sent_here = std::exchange(sent_since_check_, 0);
  if (pending_.empty()) return false;
  if (is_tunnel()) return false;  // WebSocketLimits::write_timeout is its limit, on every carrier
  // A stream whose own window is open only waits behind others of the connection.
  const bool here = send_window() <= 0;
  const bool blocked = here || !connection_.session().may_send();
  write_rate_.record(blocked ? waited : Duration::zero(), here ? sent_here : sent);
  return write_rate_.exhausted();
}

Task<Result<>> H2Carrier::send_piece(Bytes piece) {
  if (gone()) co_return fail(Errc::closed);
  if (!send_piece_now(piece)) {
    const auto waited = co_await output_.wait();
    drop_piece();
    WEIR_CO_TRY(waited);
  }
  if (gone()) co_return fail(Errc::closed);
  co_return {};
}

/// Sends a piece as far as the windows and the output allow. Returns false if a part waits.
bool H2Carrier::send_piece_now(Bytes piece) {
  pending_ = piece;
  if (!connection_.sends_in_place(pending_.size())) {
    const std::size_t sent = connection_.session().send_data(*this, pending_, false);
    count_sent(sent);
    pending_ = pending_.subspan(sent);
  }
  connection_.wake_writer();
  if (pending_.empty()) return true;
  wait_to_send(false);
  return false;
}

void H2Carrier::drop_piece() noexcept {
  if (!pending_.empty() && !closed()) connection_.session().stop_sending(*this);
  pending_ = {};
}

void H2Carrier::end(std::string_view trailers) {
  send_end(connection_.session(), connection_.encoder(), *this, trailers);
  connection_.wake_writer();
}

Task<Result<>> H2Carrier::flush() {
  co_return {};
}

// The body of the request.

bool H2Carrier::may_arrive() const noexcept {
  return connection_.session().may_receive() && !connection_.needs_window(*this);
}

void H2Carrier::on_data(Bytes bytes, bool end_stream) {
  if (lingers()) return drop_late(bytes.size(), end_stream);
  received_ += bytes.size();
  const bool wanted = tunnel_ != TunnelState::none || exchange_.body().count(bytes.size());
  if (!wanted || local_ended()) {
    // A task that still reads must not take a body with a gap for a whole one.
    if (!bytes.empty() && tunnel_ == TunnelState::none) exchange_.body().fail(Errc::closed);
    connection_.session().consume(*this, bytes.size());
  } else if (!bytes.empty()) {
    add_arrived(bytes);
    if (collects_) {
      add_collected(bytes.size());
    } else {
      limit_share();
    }
  }
  if (is_tunnel()) return give_input();
  input_.set();
}

void H2Carrier::add_arrived(Bytes bytes) {
  if (arrived_.room().size() < bytes.size()) {
    // A body that arrives faster than it is read gets a large buffer in one step.
    constexpr std::size_t large = 64 * 1024;
    const std::size_t more = arrived_.empty() ? 0 : large - std::min(large, arrived_.size());
    arrived_.make_room(std::max(bytes.size(), more));
  }
  std::memcpy(arrived_.room().data(), bytes.data(), bytes.size());
  arrived_.commit(bytes.size());
}

/// Returns the bytes beyond the share of this body to the window of the connection. A body that its
/// handler does not read would otherwise keep those of the other streams from arriving. The window
/// of the stream still bounds the bytes.
void H2Carrier::limit_share() {
  const std::size_t held = lent_.size() + arrived_.size() - returned_;
  const std::size_t share = connection_.window_share();
  if (held <= share) return;
  returned_ += held - share;  // also if there is no memory for the WINDOW_UPDATE
  connection_.session().consume_on_connection_only(*this, held - share);
  connection_.wake_writer();
}

/// Returns how many of `count` bytes that leave the buffers the connection has back already.
std::size_t H2Carrier::take_returned(std::size_t count) noexcept {
  const std::size_t taken = std::min(count, returned_);
  returned_ -= taken;
  return taken;
}

/// Returns the last piece to the windows.
void H2Carrier::return_lent() {
  const std::size_t lent = std::exchange(lent_, {}).size();
  connection_.session().consume_on_connection_only(*this, lent - take_returned(lent));
  connection_.session().allow_more(*this, lent);
}

void H2Carrier::drop_arrived() {
  const std::size_t count = std::exchange(arrived_, {}).size();
  H2Session& session = connection_.session();
  session.consume_on_connection_only(*this, count - take_returned(count));
  session.allow_more(*this, count);
}

/// Counts bytes that are added to a collected body.
void H2Carrier::add_collected(std::size_t count) {
  connection_.session().consume_on_connection_only(*this, count - take_returned(count));
  collected_ += count;
  withheld_ += count;
  connection_.add_collected(*this, count);
}

void H2Carrier::allow_more() {
  connection_.session().allow_more(*this, std::exchange(withheld_, 0));
}

void H2Carrier::on_end() {
  if (lingers()) return connection_.end(*this);
  if (is_tunnel()) return give_input();
  input_.set();
}

void H2Carrier::on_rejected_trailers(ParseError error) {
  trailers_.clear();
  if (lingers()) return connection_.end(*this);
  exchange_.body().fail(error);
  tunnel_error_ = error;
  on_end();
}

void H2Carrier::on_gone() {
  if (lingers()) return connection_.end(*this);
  gone_ = true;
  exchange_.body().fail(Errc::closed);
  if (!tunnel_error_) tunnel_error_ = Errc::closed;
  input_.set();
  output_.set();
  if (is_tunnel()) give_input();
  end_send(tunnel_error_);
  if (state_ != State::running) return finish();
  exchange_.on_peer_gone();
}

Task<Result<>> H2Carrier::wait_for_input(Instant until) {
  auto waiting = as_task(input_.wait());
  const auto waited = co_await timeout(until - loop().now(), std::move(waiting));
  co_return waited;
}

/// Keeps the body, which is wanted whole, until its end. on_data() consumes the rest of a frame
/// that is incomplete.
void H2Carrier::begin_collecting() {
  if (std::exchange(collects_, true)) return;
  return_lent();
  add_collected(arrived_.size());
  connection_.wake_writer();
}

Carrier::Taken H2Carrier::take(Wanted wanted, Bytes& piece) {
  if (wanted == Wanted::whole) {
    begin_collecting();
    if (!remote_ended()) return Taken::nothing;
  }
  if (arrived_.empty()) return remote_ended() ? Taken::end : Taken::nothing;
  lent_ = std::exchange(arrived_, {});
  piece = lent_.bytes();
  return remote_ended() ? Taken::last_piece : Taken::piece;
}

/// Lets the client send more, as the reader takes what it sends.
void H2Carrier::release_piece() {
  const std::size_t lent = std::exchange(lent_, {}).size();
  if (lent == 0 || collects_) return;
  const std::size_t returned = take_returned(lent);
  if (closed()) return;
  connection_.session().consume_and_grow(*this, lent, returned);
  connection_.wake_writer();
}

// The tunnel of a WebSocket.

void H2Carrier::open_websocket(BlockPtr<ServedWebSocket> socket) {
  websocket_ = std::move(socket);
  tunnel_ = TunnelState::open;
}

/// Serves the WebSocket until it ends.
Task<> H2Carrier::serve_websocket() {
  websocket_->open({}, AnyStream(H2Tunnel(*this)), {});
  co_await http::serve_websocket(std::move(websocket_));
  tunnel_ = TunnelState::ended;
  // It is a reset of TCP for the client (RFC 8441 §5).
  if (!closed() && !local_ended()) connection_.reset(*this, H2Error::cancel);
}

std::error_code H2Carrier::input_error() const noexcept {
  if (tunnel_error_) return tunnel_error_;
  return remote_ended() ? make_error_code(Errc::end_of_stream) : std::error_code();
}

Buffer H2Carrier::take_input() {
  Buffer input = std::exchange(arrived_, {});  // also if there is no memory for WINDOW_UPDATE
  const std::size_t returned = take_returned(input.size());
  if (!closed()) {
    connection_.session().consume_and_grow(*this, input.size(), returned);
    connection_.wake_writer();
  }
  return input;
}

Result<> H2Carrier::finish_writing() {
  if (!may_send()) return fail(Errc::closed);
  end({});
  return {};
}

}  // namespace weir::http
