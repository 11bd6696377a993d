// The operations, the events and the end of a client's connection of HTTP/2.
#include "weir/http/client/detail/h2/h2_client_connection.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <new>
#include <span>
#include <utility>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"
#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/detail/h2/response_fields.hpp"
#include "weir/http/syntax/client_error.hpp"

namespace weir::http {
namespace {

// Reads in one turn. A server that never lets them wait would otherwise fill the turn.
constexpr std::uint8_t reads_per_turn = 16;

}  // namespace

H2ClientConnection::Reading::Reading(H2ClientConnection& owner) noexcept
    : loop::ReceiveOperation([](loop::Runnable& runnable) {
        auto& self = static_cast<Reading&>(runnable).connection;
        self.change(Input::none);
        self.run([](H2ClientConnection& connection) {
          connection.on_received();
          connection.read();
        });
      }),
      connection(owner) {}

H2ClientConnection::Writing::Writing(H2ClientConnection& owner) noexcept
    : loop::SendOperation([](loop::Runnable& runnable) {
        auto& self = static_cast<Writing&>(runnable).connection;
        self.change(Output::idle);
        self.run([](H2ClientConnection& connection) {
          connection.on_sent();
          connection.write();
        });
      }),
      connection(owner) {}

H2ClientConnection::Turn::Turn(H2ClientConnection& owner) noexcept
    : loop::Runnable([](loop::Runnable& runnable) {
        auto& self = static_cast<Turn&>(runnable).connection;
        self.turn_queued_ = false;
        self.run([](H2ClientConnection& connection) {
          connection.write();
          connection.read();
        });
      }),
      connection(owner) {}

H2ClientConnection::Clock::Clock(H2ClientConnection& owner) noexcept
    : loop::Timer([](loop::Timer& timer) {
        auto& self = static_cast<Clock&>(timer).connection;
        self.run([](H2ClientConnection& connection) { connection.on_clock(); });
      }),
      connection(owner) {}

H2ClientConnection::H2ClientConnection(ClientPool& pool, ClientPool::Lease&& lease)
    : loop::HangupObserver(
          [](loop::HangupObserver& observer) {
            auto& self = static_cast<H2ClientConnection&>(observer);
            self.change(Input::reported);
            self.queue_turn();
          },
          Event::input),
      pool_(&pool),
      lease_(std::move(lease)),
      loop_(lease_.stream().loop()),
      limits_(pool.limits()),
      session_(H2Role::client, limits_.http2, loop_.now()),
      usable_until_(after(loop_.now(), limits_.age_max)),
      heard_(loop_.now()) {
  ClosingH2Connections::of(loop_);  // close() makes none
  session_.start();
  connection_ = lease_.take_connection();  // the lease counts it if start() throws
  pool_->on_http2_idle();
  idle_until_ = after(loop_.now(), limits_.idle_timeout);
  set_clock();
}

H2ClientConnection::~H2ClientConnection() {
  assert(exchanges_.empty());
}

// States.

void H2ClientConnection::change(Life next) noexcept {
  static constexpr weir::detail::StateTable<Life, 4> table{
      {Life::usable, {Life::suspected, Life::retired}},
      {Life::suspected, {Life::usable, Life::retired}},
      {Life::retired, {Life::closed}},
  };
  table.change(life_, next);
}

void H2ClientConnection::change(Input next) noexcept {
  static constexpr weir::detail::StateTable<Input, 4> table{
      {Input::none, {Input::observed, Input::reading}},
      {Input::observed, {Input::reported, Input::none}},
      {Input::reported, {Input::reading, Input::none}},
      {Input::reading, {Input::none}},
  };
  table.change(input_state_, next);
}

void H2ClientConnection::change(Output next) noexcept {
  static constexpr weir::detail::StateTable<Output, 3> table{
      {Output::idle, {Output::writing, Output::lost}},
      {Output::writing, {Output::idle}},
  };
  table.change(output_state_, next);
}

// Requests.

bool H2ClientConnection::may_open() const noexcept {
  return life_ == Life::usable && session_.may_open() && loop_.now() < usable_until_ &&
         !connection_->proof_ended();
}

bool H2ClientConnection::accepts(std::string_view scheme, std::string_view head) const noexcept {
  return request_list_fits(scheme, head, session_.peer().max_header_list_size);
}

void H2ClientConnection::add(H2ClientExchange& exchange) noexcept {
  if (is_idle()) pool_->on_http2_busy();
  exchanges_.push_back(exchange);
  idle_until_ = never;
  queue_turn();
}

void H2ClientConnection::open(H2ClientExchange& exchange) {
  [[maybe_unused]] const bool opened = session_.open(exchange);
  assert(opened && "the caller asks may_open()");
  if (session_.streams_open() == 1) heard_ = loop_.now();
  set_clock();
  queue_turn();
}

void H2ClientConnection::end(H2ClientExchange& exchange) noexcept {
  static_cast<H2ClientExchangeNode&>(exchange).unlink();
  try {
    session_.release(exchange);
  } catch (const std::bad_alloc&) {
    if (is_idle()) pool_->on_http2_idle();
    return close(ClientError::connection_lost);
  }
  queue_turn();
  notify_waiting();
  if (!is_idle()) return;
  if (life_ != Life::suspected) answer_until_ = never;
  idle_until_ = after(loop_.now(), limits_.idle_timeout);
  pool_->on_http2_idle();
  const bool useless = !may_open() && life_ != Life::suspected;
  if (useless || pool_->needs_room()) idle_until_ = loop_.now();
  set_clock();
}

void H2ClientConnection::consume(H2ClientExchange& exchange, std::size_t count) noexcept {
  try {
    session_.consume(exchange, count);
    queue_turn();
  } catch (const std::bad_alloc&) {
    close(ClientError::connection_lost);
  }
}

void H2ClientConnection::probe(Instant since) noexcept {
  if (closed() || heard_ > since) return;
  if (life_ == Life::usable) change(Life::suspected);
  if (answer_until_ != never) return;
  expect_answer();
  try {
    session_.send_ping();
    queue_turn();
  } catch (const std::bad_alloc&) {
    answer_until_ = loop_.now();  // no PING was sent, so the clock closes the connection
  }
  set_clock();
}

/// Lets requests that wait for a connection look at this one.
void H2ClientConnection::notify_waiting() noexcept {
  if (may_open()) pool_->on_http2_changed(lease_);
}

void H2ClientConnection::end_if_unproven() noexcept {
  if (!connection_->proof_ended()) return;
  retire();
  if (is_idle()) close(ClientError::connection_lost);
}

/// Lets no new request begin.
void H2ClientConnection::retire() noexcept {
  if (life_ == Life::retired || closed()) return;
  change(Life::retired);
  in_origin_.unlink();
  pool_->on_http2_changed(lease_);
}

// Operations.

template <class Work>
void H2ClientConnection::run(const Work& work) noexcept {
  running_ = true;
  try {
    if (!closed()) work(*this);
  } catch (const std::bad_alloc&) {
    close(ClientError::connection_lost);
  }
  running_ = false;
  if (closed()) destroy_if_unused();
}

void H2ClientConnection::queue_turn() noexcept {
  if (closed() || std::exchange(turn_queued_, true)) return;
  loop_.ready(turn_);
}

void H2ClientConnection::queue_next_turn() noexcept {
  if (closed() || std::exchange(turn_queued_, true)) return;
  loop_.ready_next_turn(turn_);
}

void H2ClientConnection::observe_input() noexcept {
  if (input_state_ == Input::observed) return;
  change(Input::observed);
  connection_->stream().observe_hangup(this);
}

void H2ClientConnection::stop_observing() noexcept {
  if (input_state_ != Input::observed) return;
  change(Input::none);
  connection_->stream().observe_hangup(nullptr);
}

void H2ClientConnection::read() {
  while (!closed() && resume_at_ == never) {
    if (input_state_ == Input::reading) return;
    if (session_.streams_open() == 0 && input_state_ != Input::reported) return observe_input();
    if (!reads_.allow(loop_, reads_per_turn)) return queue_next_turn();
    stop_observing();
    if (!start_receive(connection_->stream(), reading_)) return change(Input::reading);
    if (input_state_ == Input::reported) change(Input::none);
    on_received();
  }
}

void H2ClientConnection::on_received() {
  if (reading_.error()) return close(lost_error(reading_.error()));
  heard_ = loop_.now();
  answer_until_ = never;
  if (output_state_ == Output::lost) expect_answer();
  input_ = std::move(reading_.buffer);
  process();
  if (closed()) return;
  if (output_state_ == Output::lost && is_idle()) return close(ClientError::connection_lost);
  if (life_ == Life::suspected) {
    change(Life::usable);
    if (is_idle() && !may_open()) idle_until_ = heard_;
  }
  notify_waiting();
  set_clock();
  if (!session_.output().empty() || session_.next_sender() != nullptr) queue_turn();
}

void H2ClientConnection::write() {
  while (!closed() && output_state_ == Output::idle) {
    while (H2Stream* const stream = session_.next_sender()) {
      static_cast<H2ClientExchange*>(stream)->send_part();
    }
    if (session_.output().empty()) {
      if (is_idle()) session_.drop_idle_memory();
      return;
    }
    sending_ = session_.take_output();
    taken_ += sending_.size();
    sending_piece_ = sending_.bytes();
    writing_.pieces = std::span<const Bytes>(&sending_piece_, 1);
    if (!start_send(connection_->stream(), writing_)) return change(Output::writing);
    on_sent();
  }
}

void H2ClientConnection::on_sent() {
  sending_ = {};
  if (writing_.error()) lose_output();
}

/// Reads on for a while after a write has failed. A server that has answered may have closed the
/// connection without reading the rest of a request (RFC 9113 §8.1).
void H2ClientConnection::lose_output() {
  change(Output::lost);
  retire();
  if (is_idle()) return close(ClientError::connection_lost);
  expect_answer();
  set_clock();
  queue_next_turn();
}

// Events.

void H2ClientConnection::process() {
  for (bool more = true; more && !closed();) {
    const H2Event event = session_.next(input_.bytes(), loop_.now());
    more = handle(event);
    input_.consume(event.consumed);
    if (event.kind != H2Event::Kind::delay) continue;
    resume_at_ = after(loop_.now(), event.delay);
    return;
  }
  input_ = {};
}

bool H2ClientConnection::handle(const H2Event& event) {
  auto* const exchange = static_cast<H2ClientExchange*>(event.stream);
  switch (event.kind) {
    case H2Event::Kind::headers:
      on_headers(event);
      return true;
    case H2Event::Kind::trailers:
      on_trailers(event);
      return true;
    case H2Event::Kind::discarded:
      on_discarded(event);
      return true;
    case H2Event::Kind::data:
      if (!exchange->on_data(event.bytes, event.end_stream)) {
        fail_exchange(*exchange, ClientError::bad_response);
      }
      return true;
    case H2Event::Kind::reset:
      exchange->on_reset(ClientError::connection_lost, event.error == H2Error::refused_stream);
      return true;
    case H2Event::Kind::settings:
      encoder_.set_peer_size_max(session_.peer().header_table_size_min);
      pool_->on_http2_settings(
          lease_, std::min(session_.peer().max_concurrent_streams, limits_.http2.streams_max));
      for (H2ClientExchangeNode* each = exchanges_.front(); each != nullptr;
           each = exchanges_.next(*each)) {
        static_cast<H2ClientExchange*>(each)->on_settings();
      }
      return true;
    case H2Event::Kind::goaway:
      on_goaway(event.stream_id);
      return true;
    case H2Event::Kind::ping_ack:
      return true;
    case H2Event::Kind::delay:
    case H2Event::Kind::need_more:
    case H2Event::Kind::open:  // a client has no such event
      break;
    case H2Event::Kind::failed:
      write();  // GOAWAY
      close(ClientError::bad_response);
      break;
  }
  return false;
}

void H2ClientConnection::fail_exchange(H2ClientExchange& exchange, std::error_code error) {
  session_.reset(exchange, H2Error::protocol_error);
  exchange.on_reset(error, false);
}

void H2ClientConnection::on_headers(const H2Event& event) {
  auto& exchange = *static_cast<H2ClientExchange*>(event.stream);
  const FieldsResult read =
      pool_->response_fields().read_response(table_, event.bytes, exchange.received_head());
  if (read.kind == FieldsResult::Kind::invalid_block) {
    return session_.fail(H2Error::compression_error);
  }
  was_used_ = true;
  const bool valid =
      read.kind == FieldsResult::Kind::complete && exchange.on_head(event.end_stream);
  if (!valid) fail_exchange(exchange, ClientError::bad_response);
}

void H2ClientConnection::on_trailers(const H2Event& event) {
  auto& exchange = *static_cast<H2ClientExchange*>(event.stream);
  const FieldsResult read =
      pool_->response_fields().read_trailers(table_, event.bytes, exchange.received_trailers());
  if (read.kind == FieldsResult::Kind::invalid_block) {
    return session_.fail(H2Error::compression_error);
  }
  if (read.kind == FieldsResult::Kind::complete) return exchange.on_end();
  fail_exchange(exchange, ClientError::bad_response);
}

void H2ClientConnection::on_discarded(const H2Event& event) {
  const FieldsResult read = pool_->response_fields().skip(table_, event.bytes);
  if (read.kind == FieldsResult::Kind::invalid_block) {
    return session_.fail(H2Error::compression_error);
  }
  if (event.stream == nullptr) return;
  static_cast<H2ClientExchange*>(event.stream)->on_reset(ClientError::bad_response, false);
}

/// Gives up the requests that the server ignores. The others go on.
void H2ClientConnection::on_goaway(std::uint32_t last_stream) {
  retire();
  for (H2ClientExchangeNode* each = exchanges_.front(); each != nullptr;) {
    auto& exchange = *static_cast<H2ClientExchange*>(each);
    each = exchanges_.next(*each);
    if (exchange.id() <= last_stream || exchange.closed()) continue;
    session_.reset(exchange, H2Error::cancel);
    exchange.on_reset(ClientError::connection_lost, true);
  }
  if (is_idle()) idle_until_ = loop_.now();
}

// Time.

/// Closes the connection after ping_timeout unless something arrives before, or an earlier
/// deadline passes.
void H2ClientConnection::expect_answer() noexcept {
  constexpr Duration longest = std::chrono::hours(24 * 365);  // a deadline is never `never`
  const Instant until = after(loop_.now(), std::min(limits_.ping_timeout, longest));
  answer_until_ = std::min(answer_until_, until);
}

void H2ClientConnection::set_clock() noexcept {
  if (closed()) return;
  Instant until = std::min({idle_until_, answer_until_, resume_at_});
  if (life_ != Life::retired) until = std::min(until, usable_until_);
  if (session_.streams_open() != 0 && answer_until_ == never) {
    until = std::min(until, after(heard_, limits_.ping_interval));
  }
  if (until == never || (clock_.armed() && clock_.deadline() <= until)) return;
  loop_.timers().start(clock_, until);
}

void H2ClientConnection::on_clock() {
  const Instant now = loop_.now();
  if (usable_until_ <= now) retire();
  if (answer_until_ <= now || (is_idle() && (idle_until_ <= now || usable_until_ <= now))) {
    return close(ClientError::connection_lost);
  }
  if (resume_at_ <= now) {
    resume_at_ = never;
    process();
    read();
    queue_turn();
  }
  const bool silent = session_.streams_open() != 0 && after(heard_, limits_.ping_interval) <= now;
  if (!closed() && silent && answer_until_ == never) {
    expect_answer();
    session_.send_ping();
    queue_turn();
  }
  set_clock();
}

// The end.

void H2ClientConnection::close(std::error_code error) noexcept {
  if (closed()) return;
  if (session_.failed()) error = ClientError::bad_response;  // the write of its GOAWAY may fail too
  const bool idle = is_idle();
  const bool lost = session_.streams_open() != 0 && error == ClientError::connection_lost;
  retire();
  change(Life::closed);
  if (lost) pool_->on_http2_lost(lease_);
  session_.abandon();  // the releases below send nothing
  clock_.cancel();
  while (H2ClientExchangeNode* const node = exchanges_.front()) {
    auto& exchange = *static_cast<H2ClientExchange*>(node);
    node->unlink();
    session_.release(exchange);
    // The kernel may have taken any byte that the stream got: also those of a send that has failed,
    // of a record of TLS, or of a request that io_uring submits later.
    exchange.on_detached(error, taken_);
  }
  if (idle) pool_->on_http2_busy();
  in_pool_.unlink();
  pool_->on_http2_closed();
  lease_.release();
  pool_ = nullptr;
  stop_observing();
  Stream& stream = connection_->stream();
  if (reading_.state() == loop::Operation::State::pending) cancel_operation(stream, reading_);
  if (writing_.state() == loop::Operation::State::pending) cancel_operation(stream, writing_);
  if (!running_) destroy_if_unused();
}

bool H2ClientConnection::has_operations() const noexcept {
  return input_state_ == Input::reading || output_state_ == Output::writing || turn_queued_;
}

/// Destroys a closed connection if nothing refers to it any more.
void H2ClientConnection::destroy_if_unused() noexcept {
  if (!has_operations()) return BlockDeleter<H2ClientConnection>()(this);
  if (!in_pool_.linked()) ClosingH2Connections::of(loop_).add(in_pool_);
}

ClosingH2Connections::~ClosingH2Connections() {
  while (Http2Node* const node = connections_.pop_front()) {
    H2ClientConnection* const connection = &node->connection;
    for (loop::Operation* each :
         std::array<loop::Operation*, 2>{&connection->reading_, &connection->writing_}) {
      if (each->state() == loop::Operation::State::pending) each->finish(Errc::cancelled);
    }
    // A stream that is never destroyed does not close its socket, which exists no more.
    alignas(AnyStream) std::array<std::byte, sizeof(AnyStream)> forgotten;
    new (forgotten.data()) AnyStream(connection->connection_->take_stream());
    BlockDeleter<H2ClientConnection>()(connection);
  }
}

}  // namespace weir::http
