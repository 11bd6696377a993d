// WebSocket connections: their activity, their timer and their end.
#include "weir/http/ws/detail/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/detail/state_table.hpp"

namespace weir::http {
namespace {

// The time between two checks of a connection with an activity. An activity without use ends at the
// second one.
constexpr Duration check_interval = std::chrono::seconds(1);

}  // namespace

std::uint64_t websocket_bytes_max(const WebSocketLimits& limits,
                                  const std::optional<WebSocketCompression>& compression) noexcept {
  using weir::detail::buffer;
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t grown = 3;  // a buffer of twice the size, and the one before it
  const std::uint64_t slice = compression ? WsDeflate::room_for(WsDeflate::slice_max) : 0;
  return sum({weir::detail::block(sizeof(WsActivity)),
              compression ? WsDeflate::bytes_max(*compression) : 0,
              2 * buffer(0),  // the input, and the one with the last message
              product(grown, buffer(sum({limits.message_bytes_max, slice}))),
              product(2 * grown, buffer(sum({limits.output_max, ws_header_size_max, slice})))});
}

WsActivity::Receive::Receive(WsConnection& owner) noexcept
    : loop::ReceiveOperation([](loop::Runnable& self) {
        WsConnection& connection = static_cast<Receive&>(self).connection;
        connection.call([&connection] { connection.on_received(); });
      }),
      connection(owner) {}

WsActivity::Send::Send(WsConnection& owner) noexcept
    : loop::SendOperation([](loop::Runnable& self) {
        WsConnection& connection = static_cast<Send&>(self).connection;
        connection.call([&connection] {
          connection.on_sent();
          connection.run();
        });
      }),
      connection(owner) {}

void WsActivity::on_cancel(CancelNode& self) {
  static_cast<WsActivity&>(self).connection().abort(make_error_code(Errc::cancelled));
}

WsActivity::WsActivity(WsConnection& owner, WsRole role, const WebSocketLimits& limits,
                       bool deflates) noexcept
    : loop::Runnable([](loop::Runnable& self) {
        auto& activity = static_cast<WsActivity&>(self);
        activity.queued = false;
        WsConnection& connection = activity.connection();
        connection.call([&connection] { connection.run(); });
      }),
      CancelNode(unnamed_kind<&on_cancel>),
      loop::HangupObserver([](loop::HangupObserver& self) {
        auto& activity = static_cast<WsActivity&>(self);
        activity.hung_up = true;
        activity.connection().queue();
      }),
      session(role, limits, deflates),
      receive(owner),
      send(owner) {}

void WsActivity::change(ReceiveState next) noexcept {
  using enum ReceiveState;
  static constexpr weir::detail::StateTable<ReceiveState, 3> table{
      {idle, {pending}},
      {pending, {idle, ending}},
      {ending, {idle, pending}},
  };
  table.change(receive_state, next);
}

void WsActivity::change(ResultPlace next) noexcept {
  using enum ResultPlace;
  static constexpr weir::detail::StateTable<ResultPlace, 4> table{
      {none, {in_input, in_message}},
      {in_input, {none, lent}},
      {lent, {none}},
      {in_message, {none}},
  };
  table.change(result_place, next);
}

void WsConnection::change(HandlerState next) noexcept {
  using enum HandlerState;
  static constexpr weir::detail::StateTable<HandlerState, 4> table{
      {open, {told, dropping}},
      {told, {dropping}},
      {dropping, {finished}},
  };
  table.change(handler_state_, next);
}

void WsConnection::change(PingState next) noexcept {
  using enum PingState;
  static constexpr weir::detail::StateTable<PingState, 3> table{
      {none, {due}},
      {due, {sent, none}},
      {sent, {none}},
  };
  table.change(ping_, next);
}

void WsConnection::set_told() noexcept {
  if (handler_state_ == HandlerState::open) change(HandlerState::told);
}

void WsConnection::set_dropping() noexcept {
  if (handler_state_ < HandlerState::dropping) change(HandlerState::dropping);
}

/// Bytes of the peer have arrived.
void WsConnection::on_heard() noexcept {
  heard_ = loop().now();
  if (ping_ == PingState::sent) change(PingState::none);
}

WsConnection::WsConnection(AnyStream stream, WsRole role, const WebSocketLimits& limits,
                           Buffer input, std::unique_ptr<const std::string> subprotocol,
                           CancelSource* parent, std::unique_ptr<WsDeflate> deflate)
    : loop::Timer([](loop::Timer& self) {
        auto& connection = static_cast<WsConnection&>(self);
        connection.call([&connection] { connection.check(); });
      }),
      loop::HangupObserver(
          [](loop::HangupObserver& self) {
            auto& connection = static_cast<WsConnection&>(self);
            connection.input_seen_ = true;
            connection.loop().timers().start(connection, connection.loop().now());
          },
          Event::input),
      role_(role),
      stream_(std::move(stream)),
      limits_(limits),
      deflate_(std::move(deflate)),
      handler_(parent),
      subprotocol_(std::move(subprotocol)),
      heard_(loop().now()) {
  if (!input.empty()) {
    activate().input = std::move(input);
    queue();
  } else {
    arm(heard_);
    stream_->observe_hangup(this);
  }
}

WsConnection::~WsConnection() {
  stream_->observe_hangup(nullptr);
}

std::string_view WsConnection::close_reason() const noexcept {
  return activity_ != nullptr && close_code_ != WebSocketCloseCode::abnormal
             ? std::string_view(activity_->close_reason)
             : std::string_view();
}

bool WsConnection::may_send() const noexcept {
  if (lost_ || error()) return false;
  return activity_ == nullptr || (activity_->session.may_send() && !activity_->close_order);
}

// The activity.

WsActivity& WsConnection::activate() {
  if (activity_ == nullptr) {
    const std::error_code error = this->error();
    activity_ = make_block<WsActivity>(*this, role_, limits_, deflate_ != nullptr);
    activity_->error = error;
    stream_->observe_hangup(activity_.get());
    arm(loop().now());
    if (reader_ != nullptr) queue();  // it goes on with a receive
  }
  activity_->used = true;
  if (activity_->receive_state == WsActivity::ReceiveState::ending) {
    activity_->change(WsActivity::ReceiveState::pending);
  }
  return *activity_;
}

bool WsConnection::can_rest() const noexcept {
  const WsActivity& a = *activity_;
  const bool result_in_use = a.has_result || a.result_place != WsActivity::ResultPlace::none;
  return !error() && !lost_ && !result_in_use && !a.queued && !a.writing &&
         ping_ != PingState::due && a.output.empty() && a.topics.empty() && a.senders.empty() &&
         a.input.empty() && !a.has_held() && !a.close_order && a.session.at_rest();
}

/// Begins the end of the activity.
void WsConnection::rest() noexcept {
  switch (activity_->receive_state) {
    case WsActivity::ReceiveState::idle:
      return end_activity();
    case WsActivity::ReceiveState::pending:
      activity_->change(WsActivity::ReceiveState::ending);
      break;
    case WsActivity::ReceiveState::ending:
      break;
  }
  cancel_operation(*stream_, activity_->receive);
}

void WsConnection::end_activity() noexcept {
  activity_.reset();
  arm(loop().now());
  stream_->observe_hangup(this);
}

/// Lets run() follow in the ready queue.
void WsConnection::queue() noexcept {
  if (activity_ == nullptr || is_finished()) return;
  if (std::exchange(activity_->queued, true)) return;
  loop().ready(*activity_);
}

/// Lets run() follow in the next turn, so that a peer that never waits does not fill a turn.
void WsConnection::queue_next_turn() noexcept {
  if (activity_ == nullptr || is_finished()) return;
  if (std::exchange(activity_->queued, true)) return;
  loop().ready_next_turn(*activity_);
}

/// Sends what waits, and lets the reader go on.
void WsConnection::run() {
  // A pending receive reports the end of the connection behind the last bytes. A reader that still
  // gets a message waits for that receive.
  const bool has_message = activity_->has_held() && reader_ != nullptr;
  if (activity_->hung_up && !activity_->receiving() && !has_message && !error()) {
    lose(system_error(ECONNRESET));
  }
  pump_output();
  if (drops()) {
    drop_input();
  } else if (reader_ != nullptr) {
    read_on();
  } else if (!activity_->has_result) {
    look_ahead();
  }
  if (!error()) return;
  if (!activity_->failed.is_set()) activity_->failed.set();
  if (reader_ == nullptr && lost_ && handler_state_ == HandlerState::open) handler_.cancel();
}

// The timer.

/// Starts the timer for the next check.
void WsConnection::arm(Instant now) noexcept {
  Instant next = never;
  if (activity_ != nullptr) {
    next = std::min(after(now, check_interval), activity_->close_until);
  } else if (limits_.ping_interval != Duration::max()) {
    next = after(heard_, limits_.ping_interval);
    if (ping_ == PingState::sent) next = after(next, limits_.pong_timeout);
  }
  loop().timers().start(*this, std::max(next, now));
}

void WsConnection::check() {
  const Instant now = loop().now();
  if (std::exchange(input_seen_, false)) activate();
  if (!error()) check_ping(now);
  if (activity_ == nullptr) {
    if (!lost_) arm(now);
    return;
  }
  WsActivity& a = *activity_;
  if (now >= a.close_until) {
    abort(make_error_code(Errc::timed_out));
    a.close_until = never;
    const bool handler_unaware = handler_state_ == HandlerState::open && reader_ == nullptr;
    if (handler_unaware || draining_) handler_.cancel();
  }
  if ((a.writing || blocks_topic()) && !lost_) {
    const std::size_t taken = a.writing ? sent_of(*stream_, a.send) : 0;
    if (taken != std::exchange(a.progress, taken)) {
      a.progress_since = now;
      if (ping_ != PingState::sent) heard_ = now;
    }
    if (now >= after(a.progress_since, limits_.write_timeout)) {
      abort(make_error_code(Errc::timed_out));
    }
  }
  const bool used = std::exchange(a.used, false);
  run();
  if (!used && can_rest()) rest();
  arm(now);
}

/// Sends a ping to a peer that is silent, and ends the connection if nothing comes back. A peer is
/// not heard while the handler does not take its messages.
void WsConnection::check_ping(Instant now) {
  if (limits_.ping_interval == Duration::max()) return;
  const Instant ping = after(heard_, limits_.ping_interval);
  if (now < ping) return;
  if (ping_ != PingState::sent) {
    if (ping_ == PingState::due || !may_send()) return;
    activate();
    change(PingState::due);
  } else if (now >= after(ping, limits_.pong_timeout)) {
    const bool listens = activity_ == nullptr || activity_->receiving();
    if (listens) abort(make_error_code(Errc::timed_out));
  }
}

// The end.

/// Ends the reading. A reader gets the error from run().
void WsConnection::set_error(std::error_code error) noexcept {
  WsActivity& a = *activity_;
  if (a.error) return;
  a.error = error;
  a.held = {};
  if (a.close_until == never) a.close_until = after(loop().now(), limits_.close_timeout);
  if (a.receiving()) cancel_operation(*stream_, a.receive);
  queue();
}

/// Ends the connection, because the stream has failed.
void WsConnection::lose(std::error_code error) noexcept {
  lost_ = true;
  set_error(error);
}

void WsConnection::abort(std::error_code error) noexcept {
  if (activity_ == nullptr) {
    if (lost_) return;
    try {
      activate();
    } catch (const std::bad_alloc&) {
      lost_ = true;
      if (reader_ != nullptr) {
        std::exchange(reader_, nullptr)->grant();
      } else {
        handler_.cancel();
      }
      return;
    }
  }
  lose(error);
  if (activity_->writing) cancel_operation(*stream_, activity_->send);
  queue();
}

void WsConnection::begin_close(WebSocketCloseCode code, std::string_view reason) {
  if (!may_send()) return;
  WsActivity& a = activate();
  a.close_reason = reason;
  a.close_order = code;
  queue();
}

void WsConnection::limit_close() noexcept {
  if (activity_ == nullptr || is_finished()) return;
  const Instant until = after(loop().now(), limits_.close_timeout);
  activity_->close_until = std::min(activity_->close_until, until);
  arm(loop().now());
}

void WsConnection::drain(WebSocketCloseCode code) noexcept {
  draining_ = true;
  guard([this, code] { begin_close(code, {}); });
  limit_close();
}

/// Returns true if nothing is left to do.
bool WsConnection::quiet() const noexcept {
  if (activity_ == nullptr) return static_cast<bool>(error());
  const WsActivity& a = *activity_;
  return error() && !a.receiving() && !a.writing && !a.queued &&
         (lost_ || (a.output.empty() && !has_messages()));
}

void WsConnection::drop_messages() noexcept {
  set_dropping();
  queue();
}

bool WsConnection::start_finish(WebSocketCloseCode code, loop::Runnable& finished,
                                CancelSource* cancel) noexcept {
  set_dropping();
  guard([this, code] { begin_close(code, {}); });
  if (error()) limit_close();
  if (quiet()) {
    end();
    return true;
  }
  activity_->finished = &finished;
  if (!activity_->join(cancel)) abort(make_error_code(Errc::cancelled));
  queue();
  arm(loop().now());
  return false;
}

void WsConnection::end() noexcept {
  if (!is_finished()) change(HandlerState::finished);  // a second finish() has nothing to do
  loop::Timer::cancel();
  stream_->observe_hangup(nullptr);
}

/// Reports the end to the caller of finish(). It is the last step of each callback.
void WsConnection::end_if_quiet() noexcept {
  if (activity_ == nullptr || activity_->finished == nullptr || !quiet()) return;
  end();
  activity_->leave();
  loop().ready(*std::exchange(activity_->finished, nullptr));
}

}  // namespace weir::http
