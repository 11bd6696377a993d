// Sending a request over HTTP/2 and reading its response.
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"

#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/detail/state_table.hpp"
#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/task/context.hpp"

namespace weir::http {

namespace {

// Interim responses that wait for the function of their request.
constexpr std::size_t interims_max = 4;

}  // namespace

std::uint64_t H2ClientExchange::interim_bytes_max(const ClientLimits& limits) noexcept {
  using weir::detail::block;
  // A text has exactly the memory of its bytes; the list of pointers doubles its memory.
  const std::uint64_t each = weir::detail::sum({block(sizeof(Interim)), block(0), 4 * sizeof(void*),
                                                header_slots_bytes_max(limits.response.head)});
  return weir::detail::sum(
      {weir::detail::product(interims_max, each), limits.http2.field_list_max});
}

H2ClientExchange::Alarm::Alarm(ManualResetEvent& waited) noexcept
    : loop::Timer([](loop::Timer& timer) {
        auto& self = static_cast<Alarm&>(timer);
        if (self.event.is_set()) return;
        self.expired = true;
        self.event.set();
      }),
      event(waited) {}

H2ClientExchange::H2ClientExchange(H2ClientConnection& connection, const ClientLimits& limits,
                                   Instant deadline)
    : ClientExchange(limits, connection.loop(), deadline),
      connection_(&connection),
      reused_(connection.was_used()) {
  connection.add(*this);
}

H2ClientExchange::~H2ClientExchange() {
  release_connection();
}

void H2ClientExchange::change(Arrived next) noexcept {
  static constexpr weir::detail::StateTable<Arrived, 6> table{
      {Arrived::nothing, {Arrived::interim, Arrived::head, Arrived::complete, Arrived::failed}},
      {Arrived::interim, {Arrived::interim, Arrived::head, Arrived::complete, Arrived::failed}},
      {Arrived::head, {Arrived::complete, Arrived::cut}},
  };
  table.change(arrived_, next);
}

/// Gives the stream back to the connection. A stream that is open is reset.
void H2ClientExchange::release_connection() noexcept {
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->end(*this);
}

void H2ClientExchange::drop_input() noexcept {
  body_ = {};
  release_connection();  // a task that sends finds no stream
}

bool H2ClientExchange::may_repeat(bool repeatable) const noexcept {
  if (!body_repeats()) return false;
  if (fate_ == Fate::not_processed) return true;
  return fate_ == Fate::unanswered && reused_ && repeatable;
}

Task<Result<>> H2ClientExchange::wait(ManualResetEvent& event, Alarm& alarm, Duration timeout,
                                      ClientError timed_out) {
  const Instant start = loop().now();
  const Duration most = limited(timeout);
  event.reset();
  alarm.expired = false;
  if (most != Duration::max()) {
    loop().timers().start(alarm, after(loop().platform().now(), most));
  }
  const Result<> waited = co_await event.wait();
  alarm.cancel();
  if (!waited || !alarm.expired) co_return waited;
  if (connection_ != nullptr) connection_->probe(start);
  co_return fail(timeout_error(timed_out));
}

// The request.

Task<Result<>> H2ClientExchange::run(ClientRequest& request, std::string_view head, Scope* scope) {
  method_ = request.method();
  if (request.interim_function() != nullptr) {
    set_interim_function(request.interim_function(), co_await this_context());
  }
  const Body& body = request.body();
  connection_->open(*this);
  send_head(request.url().scheme(), head, !body.is_stream() && body.text().empty());
  if (!body.is_stream()) {
    pending_ = to_bytes(body.text());
    if (send_now(true)) {
      set_request_complete();
      const Result<> received = co_await read_head(limits().head_timeout);
      co_return accept(received);
    }
    set_text_sent(body.text().size() - std::exchange(pending_, {}).size());
  }
  co_return co_await send_body_and_read_head(request, scope);
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
    sent_ += sent;
    if (sent == 0) break;
  }
  connection_->wake_writer();
  return pending_.empty();
}

void H2ClientExchange::send_part() {
  const std::size_t sent = connection_->session().send_data(*this, pending_, pending_ends_);
  assert(sent != 0 && "it was the next sender");
  pending_ = pending_.subspan(sent);
  sent_ += sent;
  count_sent(sent);
  if (!pending_.empty()) return;
  connection_->session().stop_sending(*this);
  output_.set();
  if (is_tunnel_) on_piece_sent();
}

/// Returns the error of a request whose stream takes nothing more.
std::error_code H2ClientExchange::output_error() const noexcept {
  return error_ ? error_ : make_error_code(ClientError::connection_lost);
}

Task<Result<>> H2ClientExchange::send_piece(Bytes piece, bool last) {
  if (output_closed()) co_return fail(output_error());
  const Context own = co_await this_context();
  if (own.cancelled()) co_return fail(Errc::cancelled);
  pending_ = piece;
  if (send_now(last)) co_return {};
  pending_ends_ = last;
  connection_->session().want_send(*this);
  const Result<> sent =
      co_await wait(output_, output_alarm_, limits().body_timeout, ClientError::body_timed_out);
  const bool whole = std::exchange(pending_, {}).empty();
  if (!whole && connection_ != nullptr) connection_->session().stop_sending(*this);
  if (!sent) co_return sent;
  if (!whole) co_return fail(output_error());
  co_return {};
}

Task<Result<>> H2ClientExchange::end_body(std::string_view trailers) {
  if (output_closed()) co_return fail(output_error());
  send_end(connection_->session(), connection_->encoder(), *this, trailers);
  connection_->wake_writer();
  co_return {};
}

/// Tells the server that nothing more comes. A response that goes on keeps its stream.
void H2ClientExchange::on_body_cut() noexcept {
  if (arrived_ != Arrived::complete || connection_ == nullptr) return;
  try {
    connection_->session().reset(*this, H2Error::cancel);
    connection_->wake_writer();
  } catch (const std::bad_alloc&) {
    connection_->close(ClientError::connection_lost);
  }
}

// The tunnel of a WebSocket.

Task<Result<>> H2ClientExchange::connect(std::string_view scheme, std::string_view head,
                                         Instant until) {
  method_ = Method::connect;
  while (!error_ && !connection_->session().has_peer_settings()) {
    const Duration left = until - loop().platform().now();
    const Result<> waited = co_await wait_for_input(left, ClientError::head_timed_out);
    if (!waited) co_return waited;
  }
  if (error_) co_return fail(error_);
  if (!connection_->session().peer().connect_protocol) co_return fail(Errc::unsupported);
  if (!connection_->accepts(scheme, head)) co_return fail(Errc::limit_reached);
  if (!connection_->may_open()) {  // as the settings demand, or after a GOAWAY
    fate_ = Fate::not_processed;
    co_return fail(ClientError::not_processed);
  }
  connection_->open(*this);
  send_head(scheme, head, false);
  const Duration left = until - loop().platform().now();
  const Result<> received = accept(co_await read_head(left));
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
  return arrived_ == Arrived::complete ? make_error_code(Errc::end_of_stream) : std::error_code();
}

Buffer H2ClientExchange::take_input() {
  Buffer input = std::exchange(body_, {});
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
  const int status = code_of(head_.status());
  if (status < 200) {
    change(Arrived::interim);
    if (wants_interim()) keep_interim();
    return !end_stream && ++interim_count_ <= limits().response.interim_max;
  }
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
  change(end_stream ? Arrived::complete : Arrived::head);
  input_.set();
  return true;
}

/// Keeps an interim response for the task that reads the head.
void H2ClientExchange::keep_interim() {
  std::size_t kept = head_.bytes().size();
  for (const auto& each : interims_) kept += each->bytes.size();
  if (interims_.size() == interims_max || kept > limits().http2.field_list_max) return;
  auto interim = std::make_unique<Interim>(head_, std::string(head_.bytes()));
  interim->head.rebase(interim->bytes.data());
  interims_.push_back(std::move(interim));
  input_.set();
}

bool H2ClientExchange::on_data(Bytes bytes, bool end_stream) {
  if (!has_head()) {
    connection_->consume(*this, bytes.size());
    return false;
  }
  if (!bytes.empty()) {
    body_.make_room(bytes.size());
    std::memcpy(body_.room().data(), bytes.data(), bytes.size());
    body_.commit(bytes.size());
  }
  if (end_stream) change(Arrived::complete);
  input_.set();
  tell_tunnel();
  return true;
}

void H2ClientExchange::on_end() {
  change(Arrived::complete);
  input_.set();
  tell_tunnel();
}

void H2ClientExchange::on_reset(std::error_code error, bool refused) noexcept {
  if (arrived_ < Arrived::complete) {
    const bool not_processed = refused && arrived_ == Arrived::nothing;
    if (not_processed) fate_ = Fate::not_processed;
    error_ = not_processed ? make_error_code(ClientError::not_processed) : error;
    change(has_head() ? Arrived::cut : Arrived::failed);
  }
  if (is_sending()) stop_sending();
  input_.set();
  output_.set();
  tell_tunnel();
}

void H2ClientExchange::on_detached(std::error_code error, std::uint64_t bytes_sent) noexcept {
  connection_ = nullptr;
  if (arrived_ < Arrived::complete) {
    lost_ = error == ClientError::connection_lost;
    if (lost_ && arrived_ == Arrived::nothing) fate_ = Fate::unanswered;
    if (bytes_sent <= begins_at_) fate_ = Fate::not_processed;
  }
  on_reset(error, false);
}

// The response.

Task<Result<>> H2ClientExchange::wait_for_input(Duration timeout, ClientError timed_out) {
  if (take_wake()) co_return fail(Errc::cancelled);
  const Result<> waited = co_await wait(input_, input_alarm_, timeout, timed_out);
  if (waited && take_wake()) co_return fail(Errc::cancelled);
  co_return waited;
}

Task<Result<>> H2ClientExchange::read_head(Duration timeout) {
  Instant until = after(loop().now(), timeout);
  while (!has_head() || !interims_.empty()) {
    if (!interims_.empty()) {
      const auto interim = std::move(interims_.front());
      interims_.erase(interims_.begin());
      const Result<> reported = co_await report_interim(interim->head, until);
      if (!reported) co_return reported;
      continue;
    }
    if (error_) co_return fail(error_);
    const Duration left = time_until(until, loop().platform().now());
    const Result<> waited = co_await wait_for_input(left, ClientError::head_timed_out);
    if (!waited) co_return waited;
  }
  co_return {};
}

Task<ClientExchange::Early> H2ClientExchange::receive_early() {
  if (arrived_ >= Arrived::complete) co_return Early::complete;
  if (!may_receive()) co_return Early::full;
  const Result<> waited = co_await wait_for_input(Duration::max(), ClientError::timed_out);
  co_return waited ? Early::some : Early::stopped;
}

ClientExchange::Taken H2ClientExchange::take(Bytes& piece) {
  if (!body_.empty()) {
    lent_ = std::exchange(body_, {});
    piece = lent_.bytes();
    return Taken::piece;
  }
  if (arrived_ == Arrived::complete) return Taken::end;
  return error_ ? Taken::error : Taken::nothing;
}

void H2ClientExchange::release_piece() noexcept {
  if (!lent_.empty() && connection_ != nullptr) connection_->consume(*this, lent_.size());
  lent_ = {};
}

Task<Result<>> H2ClientExchange::wait_for_body() {
  return wait_for_input(limits().body_timeout, ClientError::body_timed_out);
}

}  // namespace weir::http
