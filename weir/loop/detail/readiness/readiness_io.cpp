// Attempts at operations on a socket that may be ready: the system calls of the readiness
// backends.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/loop/contract/detail/accept_errors.hpp"
#include "weir/loop/detail/readiness/datagram_calls.hpp"
#include "weir/loop/detail/readiness/readiness.hpp"
#include "weir/loop/detail/readiness/stream_calls.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop {
namespace {

// Maximum of connections in a row that were gone when accepted; other sockets then get a turn.
constexpr unsigned accept_tries_max = 128;

bool finish(Operation& operation, std::error_code error = {}) noexcept {
  operation.finish(error);
  return true;
}

}  // namespace

bool ReadinessBackend::try_receive(ReadinessSocket& socket, ReceiveOperation& operation) {
  if (socket.ended) return finish(operation, Errc::end_of_stream);
  if (!socket.may_receive) return false;
  Buffer lent;
  MutableBytes room = operation.target;
  if (room.empty()) {
    try {
      lent = Buffer::with_capacity();
    } catch (const std::bad_alloc&) {
      return finish(operation, system_error(ENOMEM));
    }
    room = lent.room();
  }
  ssize_t received = 0;
  do {
    counters_.system_calls.add();
    received = ::recv(socket.descriptor, room.data(), room.size(), 0);
  } while (received < 0 && errno == EINTR);
  if (received > 0) {
    const auto count = static_cast<std::size_t>(received);
    socket.may_receive =
        count == room.size() || socket.peer_finished || socket.urgent || socket.dead;
    counters_.bytes_received.add(count);
    if (operation.target.empty()) {
      lent.commit(count);
      operation.buffer = std::move(lent);
    } else {
      operation.count = count;
    }
    return finish(operation);
  }
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    socket.may_receive = false;
    return false;
  }
  if (received < 0) socket.error = errno;
  if (socket.error != 0) return finish(operation, system_error(socket.error));
  socket.ended = true;
  return finish(operation, Errc::end_of_stream);
}

/// Returns true if a receive would not wait. It asks the kernel only if bytes may be left.
bool ReadinessBackend::has_input(ReadinessSocket& socket) {
  if (socket.ended || socket.error != 0) return true;
  if (!socket.may_receive) return false;
  std::byte first{};
  ssize_t received = 0;
  do {
    counters_.system_calls.add();
    received = ::recv(socket.descriptor, &first, 1, MSG_PEEK);
  } while (received < 0 && errno == EINTR);
  if (received >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return true;
  socket.may_receive = false;
  return false;
}

bool ReadinessBackend::try_send(ReadinessSocket& socket, SendOperation& operation) {
  const auto has_bytes = [](Bytes piece) { return !piece.empty(); };
  if (!socket.may_send && std::ranges::any_of(operation.pieces, has_bytes)) return false;
  const SendTryResult tried = loop::try_send(socket.descriptor, operation, counters_);
  if (tried.error != 0) {
    if (socket.error == 0 && ends_connection(tried.error)) socket.error = tried.error;
    return finish(operation, system_error(tried.error));
  }
  socket.may_send = socket.may_send && tried.finished;
  return tried.finished && finish(operation);
}

bool ReadinessBackend::try_accept(ReadinessSocket& socket, AcceptOperation& operation) {
  if (socket.paused) return false;
  for (unsigned tries = 0; socket.may_receive && tries < accept_tries_max; ++tries) {
    counters_.system_calls.add();
    auto accepted = os::accept_one(socket.descriptor);
    if (accepted) {
      pause_ = {};
      counters_.accepts.add();
      operation.accepted = Descriptor(platform_, accepted->release());
      return finish(operation);
    }
    switch (classify_accept(accepted.error().value())) {
      case AcceptFailure::no_connection:
        socket.may_receive = false;
        return false;
      case AcceptFailure::connection_gone:
        break;
      case AcceptFailure::exhausted:
        counters_.accept_pauses.add();
        pause(socket);
        return false;
      case AcceptFailure::broken:
        return finish(operation, accepted.error());
    }
  }
  if (socket.may_receive) pause(socket);
  return false;
}

bool ReadinessBackend::try_connect(ReadinessSocket& socket, ConnectOperation& operation) {
  counters_.system_calls.add();
  const auto connected = os::take_error(socket.descriptor);
  return finish(operation, connected ? std::error_code() : connected.error());
}

bool ReadinessBackend::try_receive_datagrams(ReadinessSocket& socket,
                                             ReceiveDatagramsOperation& operation) {
  if (!socket.may_receive) return false;
  const DatagramTryResult tried = loop::try_receive(socket.descriptor, operation, counters_);
  socket.may_receive = tried.may_continue;
  return tried.finished;
}

bool ReadinessBackend::try_send_datagrams(ReadinessSocket& socket,
                                          SendDatagramsOperation& operation) {
  if (!socket.may_send && !operation.datagrams.empty()) return false;
  const DatagramTryResult tried = loop::try_send(socket.descriptor, operation, counters_);
  socket.may_send = tried.may_continue;
  return tried.finished;
}

void ReadinessBackend::pause(ReadinessSocket& listener) {
  if (paused_.empty()) {
    pause_ = next_accept_pause(pause_);
    retry_at_ = after(platform_.now(), pause_);
  }
  listener.paused = true;
  paused_.push_back(listener);
  update_interest(listener);
}

}  // namespace weir::loop
