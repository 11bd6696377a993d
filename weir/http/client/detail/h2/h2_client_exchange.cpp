// Sending a request over HTTP/2 and reading its response.
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {

H2ClientExchange::Alarm::Alarm(ManualResetEvent& waited) noexcept
    : loop::Timer([](loop::Timer& timer) {
        auto& self = static_cast<Alarm&>(timer);
        if (self.event.is_set()) return;
        self.expired = true;
        self.event.set();
      }),
      event(waited) {}

/// The sink of a streamed body.
class H2ClientExchange::Sink final : public RequestSink {
 public:
  Sink(H2ClientExchange& exchange, std::optional<std::uint64_t> length) noexcept
      : RequestSink(length), exchange_(exchange) {}

 private:
  bool late() const override { return exchange_.late(); }
  Task<Result<>> send(Bytes piece) override { return exchange_.send_piece(piece, false); }

  H2ClientExchange& exchange_;
};

H2ClientExchange::H2ClientExchange(H2ClientConnection& connection, const ClientLimits& limits,
                                   Instant deadline)
    : ResponseSource(limits.body_max),
      connection_(&connection),
      loop_(connection.loop()),
      limits_(&limits),
      deadline_(deadline),
      reused_(connection.was_used()) {
  connection.add(*this);
}

H2ClientExchange::~H2ClientExchange() {
  detach();
}

/// Gives the stream back to the connection. A stream that is open is reset.
void H2ClientExchange::detach() noexcept {
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->end(*this);
}

void H2ClientExchange::abandon(std::error_code error) noexcept {
  ended_ = true;
  error_ = error;
  arrived_ = {};
  if (is_sending()) stop_sending();
  detach();  // the task that sends finds no stream
}

bool H2ClientExchange::may_repeat(bool repeatable) const noexcept {
  if (stream_called_) return false;
  if (refused_ || unsent_) return true;
  return lost_ && reused_ && !received_ && repeatable;
}

Duration H2ClientExchange::limited(Duration timeout) const {
  return deadline_ == never ? timeout : std::min(timeout, deadline_ - loop_.platform().now());
}

bool H2ClientExchange::late() const {
  return deadline_ != never && loop_.platform().now() >= deadline_;
}

Task<Result<>> H2ClientExchange::wait(ManualResetEvent& event, Alarm& alarm, Duration timeout,
                                      ClientError timed_out) {
  const Instant start = loop_.now();
  const Duration most = limited(timeout);
  event.reset();
  alarm.expired = false;
  if (most != Duration::max()) {
    loop_.timers().start(alarm, after(loop_.platform().now(), most));
  }
  const Result<> waited = co_await event.wait();
  alarm.cancel();
  if (!waited || !alarm.expired) co_return waited;
  if (connection_ != nullptr) connection_->probe(start);
  co_return fail(late() ? ClientError::timed_out : timed_out);
}

// The request.

Task<Result<>> H2ClientExchange::run(ClientRequest& request, std::string_view head, Scope* scope) {
  method_ = request.method();
  Body& body = request.body();
  connection_->open(*this);
  send_head(request.url().scheme(), head, !body.is_stream() && body.text().empty());
  if (!body.is_stream()) {
    pending_ = to_bytes(body.text());
    if (pending_.empty() || send_now(true)) co_return co_await read_head(limits_->head_timeout);
  }
  if (scope != nullptr) co_return co_await read_head_beside(*scope, request);
  const Result<> sent = co_await send_before_head(body);
  if (!sent || has_head_) co_return sent;
  co_return co_await read_head(limits_->head_timeout);
}

void H2ClientExchange::send_head(std::string_view scheme, std::string_view head, bool ends) {
  begins_at_ = connection_->bytes_queued();
  HpackEncoderState& encoder = connection_->encoder();
  const auto write = [&](char* out) {
    return write_request_block(scheme, head, encoder.write_size_update(out));
  };
  connection_->session().send_headers(
      *this, HpackEncoderState::size_update_max + request_block_size_max(scheme, head), write,
      ends);
  connection_->wake_writer();
}

/// Sends the pending bytes as far as possible. Returns true if nothing is left.
bool H2ClientExchange::send_now(bool ends) {
  H2Session& session = connection_->session();
  while (!pending_.empty()) {
    const std::size_t sent = session.send_data(*this, pending_, ends);
    pending_ = pending_.subspan(sent);
    if (sent == 0) break;
  }
  connection_->wake_writer();
  return pending_.empty();
}

void H2ClientExchange::send_part() {
  const std::size_t sent = connection_->session().send_data(*this, pending_, pending_ends_);
  assert(sent != 0 && "it was the next sender");
  pending_ = pending_.subspan(sent);
  count_sent(sent);
  if (!pending_.empty()) {
    if (output_alarm_.armed()) start_output_alarm();
    return;
  }
  connection_->session().stop_sending(*this);
  output_.set();
  if (is_tunnel_) on_piece_sent();
}

Task<Result<>> H2ClientExchange::send_piece(Bytes piece, bool ends) {
  if (connection_ == nullptr || local_ended()) {
    co_return fail(error_ ? error_ : make_error_code(ClientError::connection_lost));
  }
  if (writer_->cancelled()) co_return fail(Errc::cancelled);
  pending_ = piece;
  if (send_now(ends)) co_return {};
  pending_ends_ = ends;
  connection_->session().want_send(*this);
  Duration most = limits_->body_timeout;
  output_until_ = after(loop_.now(), most);
  if (response_stalls()) most = std::min(most, answered_stall_max);
  const Result<> sent = co_await wait(output_, output_alarm_, most, ClientError::body_timed_out);
  const bool whole = std::exchange(pending_, {}).empty();
  if (!whole && connection_ != nullptr) connection_->session().stop_sending(*this);
  if (!sent) co_return sent;
  if (!whole) co_return fail(error_ ? error_ : make_error_code(ClientError::connection_lost));
  co_return {};
}

/// Sends the body, or the rest of its text.
Task<Result<>> H2ClientExchange::send_body(Body& body) {
  if (!body.is_stream()) {
    for (Bytes rest = pending_; !rest.empty();) {
      const Bytes slice = rest.first(std::min(rest.size(), body_slice));
      rest = rest.subspan(slice.size());
      if (late()) co_return fail(ClientError::timed_out);
      const Result<> sent = co_await send_piece(slice, rest.empty());
      if (!sent) co_return sent;
    }
    co_return {};
  }
  Sink sink(*this, body.length());
  stream_called_ = true;
  const Result<> streamed = co_await (*body.stream())(sink);
  if (!streamed) co_return streamed;
  if (sink.error()) co_return fail(sink.error());
  if (connection_ == nullptr || local_ended()) co_return {};
  send_end(connection_->session(), connection_->encoder(), *this, sink.trailers().lines());
  connection_->wake_writer();
  co_return {};
}

Task<Result<>> H2ClientExchange::send_in_time(Body& body) {
  auto sending = send_body(body);
  const Result<> sent = co_await timeout(limited(Duration::max()), std::move(sending));
  if (!sent && sent.error() == Errc::timed_out) co_return fail(ClientError::timed_out);
  co_return sent;
}

/// Sends the body until stop_sending(). Sets `thrown` to the exception of the body's function.
/// Cancel: stops sending.
Task<Result<>> H2ClientExchange::send_stoppable(Body& body, std::exception_ptr& thrown) {
  const Context own = co_await this_context();
  CancelSource cancel(own.cancel);
  writer_ = &cancel;
  Result<> sent = fail(Errc::closed);  // if the function of the body throws
  try {
    sent = co_await in_context(Context{own.loop, &cancel}, send_in_time(body));
  } catch (...) {
    thrown = std::current_exception();
  }
  writer_ = nullptr;
  co_return sent;
}

/// Sends the body. A response that ends_request(), or a server that has answered and leaves the
/// body unread, ends it early.
Task<Result<>> H2ClientExchange::send_before_head(Body& body) {
  const Context own = co_await this_context();
  std::exception_ptr thrown;
  const Result<> sent = co_await send_stoppable(body, thrown);
  if (thrown) std::rethrow_exception(thrown);
  if (own.cancelled()) co_return fail(Errc::cancelled);
  if (sent) co_return {};
  const bool unread = sent.error() == ClientError::body_timed_out;
  if (has_head_ && (stopped_early_ || unread)) {
    // The server learns that nothing more comes. A response that goes on keeps its stream.
    if (complete_ && connection_ != nullptr) {
      connection_->session().reset(*this, H2Error::cancel);
      connection_->wake_writer();
    }
    co_return {};
  }
  if (error_ && stopped_early_) co_return fail(error_);
  co_return sent;
}

/// Starts the task that sends the body, and reads the head of the response. The request keeps its
/// body if nothing sends it any more, so that it can be sent again.
Task<Result<>> H2ClientExchange::read_head_beside(Scope& scope, ClientRequest& request) {
  sending_ = std::make_unique<Sending>();
  const std::size_t left = pending_.size();
  sending_->body = std::move(request.body());
  if (left != 0) {  // a short text has moved with its body
    const std::string_view text = sending_->body.text();
    pending_ = to_bytes(text.substr(text.size() - left));
  }
  scope.spawn(send_beside());
  const Result<> received = co_await read_head_while_sending();
  const bool goes_on = received && code_of(head().status()) < 300;
  if (goes_on) co_return received;
  if (is_sending()) {
    stop_sending();
    const Result<> ended = co_await sending_->ended.wait();
    if (!ended) co_return ended;
  }
  request.body() = std::move(sending_->body);
  co_return received;
}

/// Reads the head of the response. Its timeout begins at the end of the request.
Task<Result<>> H2ClientExchange::read_head_while_sending() {
  while (!has_head_ && !error_) {
    if (sending_->error) co_return fail(sending_->error);
    if (!is_sending()) co_return co_await read_head(limits_->head_timeout);
    const Result<> waited =
        co_await wait(input_, input_alarm_, Duration::max(), ClientError::timed_out);
    if (!waited) co_return waited;
  }
  if (sending_->error) co_return fail(sending_->error);
  if (has_head_) co_return {};
  co_return fail(error_);
}

/// The task that sends the body. It may destroy the exchange.
Task<> H2ClientExchange::send_beside() {
  std::exception_ptr thrown;
  const Result<> sent = co_await send_stoppable(sending_->body, thrown);
  end_sending(sent);
  if (thrown) std::rethrow_exception(thrown);
}

void H2ClientExchange::stop_sending() noexcept {
  if (sending_ != nullptr) sending_->stopped = true;
  writer_->cancel();
}

/// Ends the sending of a body that the server needs no more; see ends_request().
void H2ClientExchange::end_request_early() noexcept {
  if (writer_ == nullptr || stopped_early_) return;
  const bool complete = complete_ && sending_ == nullptr;
  const auto progress = complete ? ResponseProgress::complete : ResponseProgress::head;
  if (!ends_request(head_.status(), progress)) return;
  stopped_early_ = true;
  stop_sending();
}

/// Returns true if the response has used up its window, and only a read after the end of the
/// request would return it.
bool H2ClientExchange::response_stalls() const noexcept {
  return has_head_ && !complete_ && sending_ == nullptr && !may_receive();
}

/// Shortens the wait of the body if the response stalls, because server and client would otherwise
/// wait for each other.
void H2ClientExchange::limit_stall() noexcept {
  if (writer_ == nullptr || pending_.empty() || !response_stalls()) return;
  const Instant until = after(loop_.now(), answered_stall_max);
  if (output_alarm_.armed() && output_alarm_.deadline() <= until) return;
  loop_.timers().start(output_alarm_, until);
}

/// Begins the time of a stall anew after progress. The time of the whole piece goes on.
void H2ClientExchange::start_output_alarm() noexcept {
  const Instant stall = after(loop_.now(), answered_stall_max);
  loop_.timers().start(output_alarm_,
                       response_stalls() ? std::min(output_until_, stall) : output_until_);
}

void H2ClientExchange::end_sending(const Result<>& sent) noexcept {
  if (destroy_if_released()) return;
  // A server that has answered may leave the rest of the request unread.
  const bool unread = has_head_ && !sent && sent.error() == ClientError::body_timed_out;
  if (!sent && !error_ && !sending_->stopped && !unread) sending_->error = sent.error();
  sending_->ended.set();
  input_.set();
  if (ended_) detach();
}

// The tunnel of a WebSocket.

Task<Result<>> H2ClientExchange::connect(std::string_view scheme, std::string_view head,
                                         Instant until) {
  method_ = Method::connect;
  while (!error_ && !connection_->session().has_peer_settings()) {
    const Duration left = until - loop_.platform().now();
    const Result<> waited = co_await wait(input_, input_alarm_, left, ClientError::head_timed_out);
    if (!waited) co_return waited;
  }
  if (error_) co_return fail(error_);
  if (!connection_->session().peer().connect_protocol) co_return fail(Errc::unsupported);
  if (!connection_->accepts(scheme, head)) co_return fail(Errc::limit_reached);
  if (!connection_->may_open()) {  // as the settings demand, or after a GOAWAY
    refused_ = true;
    co_return fail(ClientError::not_processed);
  }
  connection_->open(*this);
  send_head(scheme, head, false);
  const Result<> received = co_await read_head(until - loop_.platform().now());
  // The tunnel is refused, so nothing else is sent.
  const bool refused = received && code_of(head_.status()) >= 300;
  if (refused) std::ignore = finish_writing();
  co_return received;
}

AnyStream H2ClientExchange::tunnel(detail::ExchangePtr exchange) {
  auto& carrier = static_cast<H2ClientExchange&>(*exchange.release());
  carrier.is_tunnel_ = true;
  return AnyStream(H2Tunnel(carrier));
}

os::Address H2ClientExchange::peer_address() const {
  return connection_ == nullptr ? os::Address() : connection_->stream().peer_address();
}

const TlsInfo* H2ClientExchange::tls() const noexcept {
  return connection_ == nullptr ? nullptr : connection_->stream().tls();
}

/// Returns the error of TCP for a stream that was reset or lost, as over HTTP/1.1.
std::error_code H2ClientExchange::input_error() const noexcept {
  if (error_) return error_ == ClientError::connection_lost ? system_error(ECONNRESET) : error_;
  return complete_ ? make_error_code(Errc::end_of_stream) : std::error_code();
}

Buffer H2ClientExchange::take_input() {
  Buffer input = std::exchange(arrived_, {});
  if (connection_ != nullptr) connection_->consume(*this, input.size());
  return input;
}

bool H2ClientExchange::send_piece_now(Bytes piece) {
  pending_ = piece;
  try {
    const bool whole = send_now(false);
    count_sent(piece.size() - pending_.size());
    if (whole) return true;
  } catch (const std::bad_alloc&) {
    if (connection_ != nullptr) connection_->close(ClientError::connection_lost);
    throw;
  }
  pending_ends_ = false;
  connection_->session().want_send(*this);
  return false;
}

void H2ClientExchange::drop_piece() noexcept {
  if (!pending_.empty() && connection_ != nullptr) connection_->session().stop_sending(*this);
  pending_ = {};
}

Result<> H2ClientExchange::finish_writing() {
  if (!may_send()) return fail(Errc::closed);
  try {
    send_end(connection_->session(), connection_->encoder(), *this, {});
  } catch (const std::bad_alloc&) {
    connection_->close(ClientError::connection_lost);
    return fail(Errc::closed);
  }
  connection_->wake_writer();
  return {};
}

/// Reports an event of the stream to the tunnel.
void H2ClientExchange::tell_tunnel() noexcept {
  if (!is_tunnel_) return;
  give_input();
  if (!may_send()) end_send(error_ ? input_error() : make_error_code(Errc::closed));
}

// Events.

bool H2ClientExchange::on_head(bool end_stream) {
  received_ = true;
  const int status = code_of(head_.status());
  if (status < 200) return !end_stream && ++interim_count_ <= limits_->response.interim_max;
  const bool tunnel = method_ == Method::connect && status < 300;
  const bool bodiless = method_ == Method::head || status == 204 || status == 304;
  const bool has_body = !end_stream && !tunnel && !bodiless;
  length_ = has_body ? head_.length_in_stream() : BodyLength();
  if (tunnel) {
    H2Session::final_head(*this);  // a length has no meaning (RFC 9110 §9.3.6)
  } else if (bodiless) {
    H2Session::final_head(*this, 0);
  } else if (head_.has_content_length()) {
    if (end_stream && head_.content_length() != 0) return false;
    H2Session::final_head(*this, head_.content_length());
  } else {
    H2Session::final_head(*this);
  }
  const std::string_view bytes = head_.bytes();
  head_bytes_ = Buffer::with_capacity(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(head_bytes_.room().data(), bytes.data(), bytes.size());
  head_bytes_.commit(bytes.size());
  head_.rebase(head_bytes_.text().data());
  has_head_ = true;
  if (end_stream) complete_ = true;
  end_request_early();
  input_.set();
  return true;
}

bool H2ClientExchange::on_data(Bytes bytes, bool end_stream) {
  if (!has_head_) {
    connection_->consume(*this, bytes.size());
    return false;
  }
  if (!bytes.empty()) {
    arrived_.make_room(bytes.size());
    std::memcpy(arrived_.room().data(), bytes.data(), bytes.size());
    arrived_.commit(bytes.size());
  }
  if (end_stream) complete_ = true;
  end_request_early();
  limit_stall();
  input_.set();
  tell_tunnel();
  return true;
}

void H2ClientExchange::on_end() {
  complete_ = true;
  end_request_early();
  input_.set();
  tell_tunnel();
}

void H2ClientExchange::on_reset(std::error_code error, bool refused) noexcept {
  if (!complete_ && !error_) {
    refused_ = refused && !received_;
    error_ = refused_ ? make_error_code(ClientError::not_processed) : error;
  }
  if (writer_ != nullptr) {
    stopped_early_ = true;
    stop_sending();
  }
  input_.set();
  output_.set();
  tell_tunnel();
}

void H2ClientExchange::on_detached(std::error_code error, std::uint64_t bytes_sent) noexcept {
  connection_ = nullptr;
  if (!complete_ && !error_) {
    lost_ = error == ClientError::connection_lost;
    unsent_ = bytes_sent <= begins_at_;
  }
  on_reset(error, false);
}

// The response.

Task<Result<>> H2ClientExchange::read_head(Duration timeout) {
  while (!has_head_) {
    if (error_) co_return fail(error_);
    const Result<> waited =
        co_await wait(input_, input_alarm_, timeout, ClientError::head_timed_out);
    if (!waited) co_return waited;
  }
  co_return {};
}

Task<Result<Bytes>> H2ClientExchange::read() {
  if (!lent_.empty() && connection_ != nullptr && !ended_)
    connection_->consume(*this, lent_.size());
  lent_ = {};
  while (!ended_) {
    // Bytes that always arrive in time must not hide that the time has passed.
    const bool stopped = !complete_ && (late() || (sending_ != nullptr && sending_->error));
    if (!arrived_.empty() && (!stopped || error_)) {
      lent_ = std::exchange(arrived_, {});
      co_return lent_.bytes();
    }
    if (complete_) {
      ended_ = true;
      if (!is_sending()) detach();
      break;
    }
    if (error_ || stopped) {
      if (!error_) error_ = late() ? make_error_code(ClientError::timed_out) : sending_->error;
      abandon(error_);
      break;
    }
    const Result<> waited =
        co_await wait(input_, input_alarm_, limits_->body_timeout, ClientError::body_timed_out);
    if (waited) continue;
    if (waited.error() == Errc::cancelled) co_return fail(Errc::cancelled);
    abandon(waited.error());
  }
  if (error_) co_return fail(error_);
  co_return Bytes();
}

}  // namespace weir::http
