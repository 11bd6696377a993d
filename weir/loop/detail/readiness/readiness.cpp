// Operations of the readiness backends: starting, finishing, cancelling; and the socket slab.
#include "weir/loop/detail/readiness/readiness.hpp"

#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/os/detail/io/socket.hpp"

namespace weir::loop {
namespace {

ReadinessSocket& state_of(Socket& socket) noexcept {
  return static_cast<ReadinessSocket&>(socket);
}

}  // namespace

ReadinessBackend::~ReadinessBackend() {
  paused_.clear();
  sockets_.for_each_open([this](ReadinessSocket& socket) {
    assert(socket.incoming == nullptr && socket.outgoing == nullptr);
    platform_.close(std::exchange(socket.descriptor, -1));
  });
}

Result<Socket*> ReadinessBackend::adopt(Descriptor descriptor, SocketOptions options) {
  ReadinessSocket* socket = nullptr;
  try {
    socket = &sockets_.allocate();
  } catch (const std::bad_alloc&) {
    return fail(system_error(ENOMEM));
  }
  socket->descriptor = descriptor.value();
  socket->role = options.role;
  std::ignore = descriptor.release();
  return static_cast<Socket*>(socket);
}

void ReadinessBackend::close(Socket& closing) {
  ReadinessSocket& socket = state_of(closing);
  assert(socket.incoming == nullptr && socket.outgoing == nullptr);
  socket.unlink();
  if (socket.reported) stop_watching(socket);
  counters_.system_calls.add();
  platform_.close(socket.descriptor);
  sockets_.release(socket);
}

Result<> ReadinessBackend::start_reports(ReadinessSocket& socket) {
  if (socket.reported) return {};
  if (auto watching = start_watching(socket); !watching) return watching;
  socket.reported = true;
  return {};
}

/// Returns true if the operation can wait; else it has failed.
bool ReadinessBackend::ensure_reports(ReadinessSocket& socket, Operation& operation) {
  if (socket.reported) return true;
  const auto started = start_reports(socket);
  if (!started) operation.finish(started.error());
  return started.has_value();
}

bool ReadinessBackend::receive(Socket& on, ReceiveOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.incoming == nullptr);
  operation.pending_on(on);
  if (try_receive(socket, operation) || !ensure_reports(socket, operation)) return true;
  socket.incoming = &operation;
  update_interest(socket);
  return false;
}

bool ReadinessBackend::send(Socket& on, SendOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.outgoing == nullptr);
  operation.pending_on(on);
  operation.sent = 0;
  if (try_send(socket, operation)) return true;
  if (operation.partial) {
    operation.finish();
    return true;
  }
  if (!ensure_reports(socket, operation)) return true;
  socket.outgoing = &operation;
  update_interest(socket);
  return false;
}

bool ReadinessBackend::accept(Socket& on, AcceptOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::listener && socket.incoming == nullptr);
  operation.pending_on(on);
  if (socket.stopped) {
    operation.finish(Errc::closed);
    return true;
  }
  if (try_accept(socket, operation) || !ensure_reports(socket, operation)) return true;
  socket.incoming = &operation;
  update_interest(socket);
  return false;
}

bool ReadinessBackend::connect(Socket& on, ConnectOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.outgoing == nullptr);
  operation.pending_on(on);
  counters_.system_calls.add();
  const auto started = os::start_connect(socket.descriptor, operation.peer);
  // No bytes can have arrived yet, and the kernel reports later ones.
  socket.may_receive = false;
  if (!started || *started == os::ConnectState::established) {
    operation.finish(started ? std::error_code() : started.error());
    return true;
  }
  socket.may_send = false;
  if (!ensure_reports(socket, operation)) return true;
  socket.outgoing = &operation;
  update_interest(socket);
  return false;
}

void ReadinessBackend::stop_accepting(Socket& on) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::listener);
  socket.stopped = true;
  if (socket.reported) stop_watching(socket);
  socket.reported = false;
  Operation* const accepting = std::exchange(socket.incoming, nullptr);
  if (accepting == nullptr) return;
  accepting->finish(Errc::closed);
  ready_.push(*accepting);
}

bool ReadinessBackend::receive_datagrams(Socket& on, ReceiveDatagramsOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::datagrams && socket.incoming == nullptr);
  operation.pending_on(on);
  if (try_receive_datagrams(socket, operation) || !ensure_reports(socket, operation)) return true;
  // An operation that has not tried to receive still has the buffers of its caller.
  for (Datagram& each : operation.target) each.buffer = {};
  socket.incoming = &operation;
  update_interest(socket);
  return false;
}

bool ReadinessBackend::send_datagrams(Socket& on, SendDatagramsOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::datagrams && socket.outgoing == nullptr);
  operation.pending_on(on);
  operation.sent = 0;
  if (try_send_datagrams(socket, operation) || !ensure_reports(socket, operation)) return true;
  socket.outgoing = &operation;
  update_interest(socket);
  return false;
}

void ReadinessBackend::cancel(Operation& operation) {
  if (operation.state() != Operation::State::pending) return;
  ReadinessSocket& socket = state_of(*operation.socket());
  assert(socket.incoming == &operation || socket.outgoing == &operation);
  (socket.incoming == &operation ? socket.incoming : socket.outgoing) = nullptr;
  operation.finish(Errc::cancelled);
  ready_.push(operation);
  update_interest(socket);
}

Result<> ReadinessBackend::shut_down_sending(Socket& socket) {
  assert(state_of(socket).outgoing == nullptr);
  counters_.system_calls.add();
  return os::shut_down_sending(socket.descriptor);
}

void ReadinessBackend::observe_hangup(Socket& on, HangupObserver* observer) {
  ReadinessSocket& socket = state_of(on);
  // A hang-up that could not be reported later counts as having happened already.
  if (observer != nullptr && !start_reports(socket)) socket.dead = true;
  socket.observer = observer;
  update_interest(socket);
  report_hangup(socket);
}

void ReadinessBackend::report_hangup(ReadinessSocket& socket) {
  if (socket.observer == nullptr) return;
  const bool input = socket.observer->observes_input() && socket.incoming == nullptr;
  if (!socket.dead && !(input && has_input(socket))) return;
  HangupObserver* const observer = std::exchange(socket.observer, nullptr);
  update_interest(socket);
  observer->on_hangup();
}

void ReadinessBackend::on_ready(ReadinessSocket& socket, Readiness what) {
  if (socket.role == SocketRole::datagrams) {
    // An error does not end the socket: the next operation reports it.
    if (what.readable || what.dead) socket.may_receive = true;
    if (what.writable || what.dead) socket.may_send = true;
    serve_incoming(socket);
    serve_outgoing(socket);
    return;
  }
  if (what.peer_finished) socket.peer_finished = true;
  if (what.urgent) socket.urgent = true;
  if (what.dead) socket.dead = true;
  if (what.readable || what.peer_finished || what.dead) socket.may_receive = true;
  if (what.writable || what.dead) socket.may_send = true;
  // Receiving goes first: the kernel reports a connection's error only to the first call.
  serve_incoming(socket);
  serve_outgoing(socket);
  report_hangup(socket);
}

void ReadinessBackend::serve_incoming(ReadinessSocket& socket) {
  if (socket.incoming == nullptr || !socket.may_receive || !try_incoming(socket)) return;
  ready_.push(*std::exchange(socket.incoming, nullptr));
  update_interest(socket);
}

void ReadinessBackend::serve_outgoing(ReadinessSocket& socket) {
  if (socket.outgoing == nullptr || !socket.may_send || !try_outgoing(socket)) return;
  ready_.push(*std::exchange(socket.outgoing, nullptr));
  update_interest(socket);
}

bool ReadinessBackend::try_incoming(ReadinessSocket& socket) {
  switch (socket.role) {
    case SocketRole::listener:
      return try_accept(socket, static_cast<AcceptOperation&>(*socket.incoming));
    case SocketRole::datagrams:
      return try_receive_datagrams(socket,
                                   static_cast<ReceiveDatagramsOperation&>(*socket.incoming));
    case SocketRole::stream:
      break;
  }
  return try_receive(socket, static_cast<ReceiveOperation&>(*socket.incoming));
}

bool ReadinessBackend::try_outgoing(ReadinessSocket& socket) {
  if (socket.outgoing->kind() == Operation::Kind::connect) {
    return try_connect(socket, static_cast<ConnectOperation&>(*socket.outgoing));
  }
  if (socket.role == SocketRole::datagrams) {
    return try_send_datagrams(socket, static_cast<SendDatagramsOperation&>(*socket.outgoing));
  }
  return try_send(socket, static_cast<SendOperation&>(*socket.outgoing));
}

void ReadinessBackend::retry_paused() {
  if (paused_.empty() || platform_.now() < retry_at_) return;
  detail::List<ReadinessSocket> retrying;
  retrying.splice_back(paused_);
  while (ReadinessSocket* listener = retrying.pop_front()) {
    listener->paused = false;
    update_interest(*listener);
    serve_incoming(*listener);
  }
}

}  // namespace weir::loop

// Allocation and release of sockets in the slab.

namespace weir::loop {

ReadinessSocket& SocketSlab::allocate() {
  if (free_.empty()) {
    chunks_.push_back(std::make_unique<ReadinessSocket[]>(chunk_sockets));
    for (std::size_t index = 0; index < chunk_sockets; ++index) {
      free_.push_back(chunks_.back()[index]);
    }
  }
  return *free_.pop_front();
}

void SocketSlab::release(ReadinessSocket& socket) noexcept {
  assert(!socket.linked() && socket.incoming == nullptr && socket.outgoing == nullptr);
  const auto next = static_cast<std::uint8_t>(socket.generation + 1);
  socket.~ReadinessSocket();
  ::new (&socket) ReadinessSocket;
  socket.generation = next;
  free_.push_front(socket);
}

}  // namespace weir::loop
