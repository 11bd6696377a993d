// Hot restart over a Unix socket: the endpoint, the connection and the thread.
#include "weir/loop/detail/process/os_handover.hpp"

#include <poll.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"

namespace weir {

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
  return os::send_message(connection_.get(), encode(message), sockets);
}

void OsHandoverConnection::shut_down_receiving() noexcept {
  static_cast<void>(os::shut_down_receiving(connection_.get()));
}

namespace {

// Pause before the next accept when this process is out of descriptors.
constexpr Duration pause = std::chrono::milliseconds(100);

}  // namespace

OsHandoverEndpoint::OsHandoverEndpoint(Platform& platform, const os::Address& path, os::Fd event)
    : platform_(platform), path_(path), event_(std::move(event)) {}

Result<std::unique_ptr<HandoverConnection>> OsHandoverEndpoint::connect_or_listen() {
  auto met = os::connect_or_listen(path_);
  if (!met) return fail(met.error());
  std::unique_ptr<HandoverConnection> older;
  if (met->listener) {
    listener_ = Descriptor(platform_, met->listener.release());
    file_ = met->file;
  } else {
    older_file_ = met->file;
    older =
        std::make_unique<OsHandoverConnection>(platform_, std::move(met->connection), event_.get());
  }
  return older;
}

void OsHandoverEndpoint::close() noexcept {
  if (file_) os::remove_local_path(path_, *file_);
  file_.reset();
  listener_.reset();
}

std::unique_ptr<HandoverConnection> OsHandoverEndpoint::accept_newer() {
  if (wait_readable(listener_.value(), event_.get(), never) != Woken::readable) return nullptr;
  auto connection = os::accept_one(listener_.value());
  if (connection) {
    return std::make_unique<OsHandoverConnection>(platform_, std::move(*connection), event_.get());
  }
  if (connection.error() != system_error(EAGAIN))
    static_cast<void>(wait(after(platform_.now(), pause)));
  return nullptr;
}

bool OsHandoverEndpoint::wait(Instant until) {
  return wait_readable(-1, event_.get(), until) == Woken::interrupted;
}

void OsHandoverEndpoint::notify() noexcept {
  os::signal_event(event_.get());
}

}  // namespace weir
