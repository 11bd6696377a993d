// Hot restart over a Unix socket: the endpoint, the connection and the thread.
#include "weir/loop/detail/process/os_handover.hpp"

#include <poll.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"

namespace weir::loop {

OsHandover::~OsHandover() {
  stop();
  thread_.reset();
  endpoint_.close();
}

HandoverStart OsHandover::meet(Platform& platform, const HandoverOptions& options) {
  const std::string cannot = takeover_error_prefix(options);
  const auto path = os::Address::local(options.path);
  if (!path) return {nullptr, cannot + "the path must have 1 to 107 bytes"};
  auto event = os::open_event();
  if (!event) return {nullptr, cannot + event.error().message()};
  std::unique_ptr<OsHandover> handover(new OsHandover(platform, options, *path, std::move(*event)));
  std::string failure = handover->protocol_.begin();
  if (!failure.empty()) return {nullptr, std::move(failure)};
  return {std::move(handover), {}};
}

Result<> OsHandover::start(HandoverDelegate& delegate) {
  delegate_ = &delegate;
  thread_ = platform_.make_thread({.name = "weir-restart"}, *this);
  return thread_->start();
}

std::optional<Instant> OsHandover::step() noexcept {
  protocol_.run(*delegate_);
  return std::nullopt;
}

Woken wait_readable(int descriptor, int event, Instant until) {
  std::array<pollfd, 2> watched{{{descriptor, POLLIN, 0}, {event, POLLIN, 0}}};
  for (;;) {
    const int ready =
        ::poll(watched.data(), watched.size(), os::to_poll_timeout(until, os::monotonic_now()));
    if (ready < 0) continue;  // EINTR, or the kernel is short of memory
    if (watched[1].revents != 0) {
      os::drain_event(event);
      return Woken::interrupted;
    }
    return ready == 0 ? Woken::timed_out : Woken::readable;
  }
}

OsHandoverConnection::OsHandoverConnection(Platform& platform, os::Fd connection,
                                           int interrupt_event)
    : platform_(platform),
      connection_(std::move(connection)),
      interrupt_event_(interrupt_event),
      buffer_(HandoverMessage::bytes_max) {}

std::string OsHandoverConnection::peer_rejection_reason() {
  const auto user = os::peer_user_id(connection_.get());
  if (!user) return user.error().message();
  if (*user == os::effective_user_id() || *user == 0) return {};
  return "the process there belongs to user " + std::to_string(*user);
}

HandoverConnection::ReceiveResult OsHandoverConnection::receive(Instant until) {
  for (;;) {
    switch (wait_readable(connection_.get(), interrupt_event_, until)) {
      case Woken::interrupted:
        return ReceiveResult::interrupted;
      case Woken::timed_out:
        return ReceiveResult::timed_out;
      case Woken::readable:
        break;
    }
    const ReceiveResult received = read_message();
    if (received != ReceiveResult::timed_out) return received;
  }
}

HandoverConnection::ReceiveResult OsHandoverConnection::read_message() {
  auto packet = os::receive_message(connection_.get(), buffer_);
  if (!packet) {
    if (packet.error() == system_error(EAGAIN)) return ReceiveResult::timed_out;
    return packet.error() == system_error(EMSGSIZE) ? ReceiveResult::invalid
                                                    : ReceiveResult::closed;
  }
  if (packet->size == 0) return ReceiveResult::closed;
  auto message = decode_handover(Bytes(buffer_).first(packet->size));
  ::explicit_bzero(buffer_.data(), packet->size);
  if (!message) {
    return message.error() == Errc::unsupported ? ReceiveResult::version_mismatch
                                                : ReceiveResult::invalid;
  }
  // Each socket has exactly one descriptor.
  if (message->sockets.size() != packet->descriptors.size()) return ReceiveResult::invalid;
  message_ = std::move(*message);
  sockets_.clear();
  for (os::Fd& each : packet->descriptors) sockets_.emplace_back(platform_, each.release());
  return ReceiveResult::message;
}

Result<> OsHandoverConnection::do_send(const HandoverMessage& message,
                                       std::span<const int> sockets) {
  std::vector<std::byte> packet = encode(message);
  const Result<> sent = os::send_message(connection_.get(), packet, sockets);
  ::explicit_bzero(packet.data(), packet.size());  // an offer has secrets
  return sent;
}

void OsHandoverConnection::shut_down_receiving() noexcept {
  static_cast<void>(os::shut_down_receiving(connection_.get()));
}

namespace {

// Pause before the next accept when this process is out of descriptors.
constexpr Duration pause = std::chrono::milliseconds(100);
// Time for the first message of a connection. A newer process sends it without waiting.
constexpr Duration first_message_timeout = std::chrono::seconds(5);

}  // namespace

OsHandoverEndpoint::OsHandoverEndpoint(Platform& platform, const os::Address& path, os::Fd event)
    : platform_(platform), path_(path), event_(std::move(event)) {}

Result<std::unique_ptr<HandoverConnection>> OsHandoverEndpoint::connect_or_listen() {
  WEIR_TRY(auto met, os::connect_or_listen(path_));
  std::unique_ptr<HandoverConnection> older;
  if (met.listener) {
    listener_ = Descriptor(platform_, met.listener.release());
    file_ = met.file;
  } else {
    older_file_ = met.file;
    older =
        std::make_unique<OsHandoverConnection>(platform_, std::move(met.connection), event_.get());
  }
  return older;
}

void OsHandoverEndpoint::close() noexcept {
  if (file_) os::remove_local_path(path_, *file_);
  file_.reset();
  listener_.reset();
  silent_.clear();
}

std::unique_ptr<HandoverConnection> OsHandoverEndpoint::accept_newer() {
  for (;;) {
    // The event, the listener, and then the silent connections in their order.
    std::array<pollfd, 2 + silent_max> watched{
        {{event_.get(), POLLIN, 0}, {listener_.value(), POLLIN, 0}}};
    std::size_t count = 2;
    for (const Silent& each : silent_) watched[count++] = {each.connection.get(), POLLIN, 0};
    const Instant until = silent_.empty() ? never : silent_.front().deadline;
    const int timeout = os::to_poll_timeout(until, platform_.now());
    if (::poll(watched.data(), count, timeout) < 0) continue;  // EINTR, or no memory
    if (watched[0].revents != 0) {
      os::drain_event(event_.get());
      return nullptr;
    }
    for (std::size_t index = 0; index < silent_.size(); ++index) {
      if (watched[2 + index].revents == 0) continue;
      os::Fd talking = std::move(silent_[index].connection);
      silent_.erase(silent_.begin() + static_cast<std::ptrdiff_t>(index));
      return std::make_unique<OsHandoverConnection>(platform_, std::move(talking), event_.get());
    }
    drop_overdue();
    if (watched[1].revents != 0 && !accept_silent()) return nullptr;
  }
}

/// Closes the connections that had their time for a first message.
void OsHandoverEndpoint::drop_overdue() {
  const Instant now = platform_.now();
  while (!silent_.empty() && silent_.front().deadline <= now) {
    silent_.erase(silent_.begin());
    platform_.log("weir: hot restart rejected at " + name() +
                  ": a process connected and sent nothing");
  }
}

/// Accepts a connection, from which nothing has been read yet. If there are too many of these, the
/// oldest one is closed.
/// Returns false if the caller has to wait, which this function has done.
bool OsHandoverEndpoint::accept_silent() {
  auto connection = os::accept_one(listener_.value());
  if (!connection) {
    if (connection.error() == system_error(EAGAIN)) return true;
    static_cast<void>(wait(after(platform_.now(), pause)));
    return false;
  }
  if (silent_.size() == silent_max) silent_.erase(silent_.begin());
  silent_.push_back({std::move(*connection), after(platform_.now(), first_message_timeout)});
  return true;
}

bool OsHandoverEndpoint::wait(Instant until) {
  return wait_readable(-1, event_.get(), until) == Woken::interrupted;
}

void OsHandoverEndpoint::notify() noexcept {
  os::signal_event(event_.get());
}

}  // namespace weir::loop
