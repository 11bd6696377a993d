// Operations on sockets of which the kernel only tells readiness: starting, finishing, cancelling.
#include "weir/loop/detail/readiness/readiness.hpp"

#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/os/detail/io/socket.hpp"

namespace weir {
namespace {

ReadinessSocket& state_of(Socket& socket) noexcept {
  return static_cast<ReadinessSocket&>(socket);
}

}  // namespace

ReadinessBackend::~ReadinessBackend() {
  paused_.clear();
  sockets_.for_each_open([this](ReadinessSocket& socket) {
    assert(socket.incoming == nullptr && socket.outgoing == nullptr);
    host_.close(std::exchange(socket.descriptor, -1));
  });
}

Result<Socket*> ReadinessBackend::adopt(Descriptor descriptor, SocketOptions options) {
  ReadinessSocket* socket = nullptr;
  try {
    socket = &sockets_.take();
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
  host_.close(socket.descriptor);
  sockets_.give_back(socket);
}

Result<> ReadinessBackend::start_reports(ReadinessSocket& socket) {
  if (socket.reported) return {};
  if (auto watching = start_watching(socket); !watching) return watching;
  socket.reported = true;
  return {};
}

/// Whether the operation can wait; else it has failed.
bool ReadinessBackend::reports(ReadinessSocket& socket, Operation& operation) {
  if (socket.reported) return true;
  const auto started = start_reports(socket);
  if (!started) operation.finish(started.error());
  return started.has_value();
}

bool ReadinessBackend::receive(Socket& on, ReceiveOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.incoming == nullptr);
  operation.pending_on(on);
  if (try_receive(socket, operation) || !reports(socket, operation)) return true;
  socket.incoming = &operation;
  changed(socket);
  return false;
}

bool ReadinessBackend::send(Socket& on, SendOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.outgoing == nullptr);
  operation.pending_on(on);
  operation.sent = 0;
  if (try_send(socket, operation) || !reports(socket, operation)) return true;
  socket.outgoing = &operation;
  changed(socket);
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
  if (try_accept(socket, operation) || !reports(socket, operation)) return true;
  socket.incoming = &operation;
  changed(socket);
  return false;
}

bool ReadinessBackend::connect(Socket& on, ConnectOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::stream && socket.outgoing == nullptr);
  operation.pending_on(on);
  counters_.system_calls.add();
  const auto started = os::start_connect(socket.descriptor, operation.peer);
  // Nothing can have arrived yet, and what arrives is reported.
  socket.may_receive = false;
  if (!started || *started == os::ConnectState::established) {
    operation.finish(started ? std::error_code() : started.error());
    return true;
  }
  socket.may_send = false;
  if (!reports(socket, operation)) return true;
  socket.outgoing = &operation;
  changed(socket);
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
  if (try_receive_datagrams(socket, operation) || !reports(socket, operation)) return true;
  socket.incoming = &operation;
  changed(socket);
  return false;
}

bool ReadinessBackend::send_datagrams(Socket& on, SendDatagramsOperation& operation) {
  ReadinessSocket& socket = state_of(on);
  assert(socket.role == SocketRole::datagrams && socket.outgoing == nullptr);
  operation.pending_on(on);
  operation.sent = 0;
  if (try_send_datagrams(socket, operation) || !reports(socket, operation)) return true;
  socket.outgoing = &operation;
  changed(socket);
  return false;
}

void ReadinessBackend::cancel(Operation& operation) {
  if (operation.state() != Operation::State::pending) return;
  ReadinessSocket& socket = state_of(*operation.socket());
  assert(socket.incoming == &operation || socket.outgoing == &operation);
  (socket.incoming == &operation ? socket.incoming : socket.outgoing) = nullptr;
  operation.finish(Errc::cancelled);
  ready_.push(operation);
  changed(socket);
}

Result<> ReadinessBackend::shut_down_sending(Socket& socket) {
  assert(state_of(socket).outgoing == nullptr);
  counters_.system_calls.add();
  return os::shut_down_sending(socket.descriptor);
}

void ReadinessBackend::watch(Socket& on, HangupWatcher* watcher) {
  ReadinessSocket& socket = state_of(on);
  // What could not be reported later counts as lost already.
  if (watcher != nullptr && !start_reports(socket)) socket.dead = true;
  socket.watcher = socket.dead ? nullptr : watcher;
  changed(socket);
  if (socket.dead && watcher != nullptr) watcher->hung_up();
}

void ReadinessBackend::became(ReadinessSocket& socket, Readiness what) {
  if (socket.role == SocketRole::datagrams) {
    // An error is no end here: who asks next is told, and the socket goes on.
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
  // Receiving goes first: of a connection's error the kernel tells only who asks first.
  serve_incoming(socket);
  serve_outgoing(socket);
  if (!socket.dead) return;
  HangupWatcher* watcher = std::exchange(socket.watcher, nullptr);
  changed(socket);
  if (watcher != nullptr) watcher->hung_up();
}

void ReadinessBackend::serve_incoming(ReadinessSocket& socket) {
  if (socket.incoming == nullptr || !socket.may_receive || !try_incoming(socket)) return;
  ready_.push(*std::exchange(socket.incoming, nullptr));
  changed(socket);
}

void ReadinessBackend::serve_outgoing(ReadinessSocket& socket) {
  if (socket.outgoing == nullptr || !socket.may_send || !try_outgoing(socket)) return;
  ready_.push(*std::exchange(socket.outgoing, nullptr));
  changed(socket);
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
  if (paused_.empty() || host_.now() < retry_at_) return;
  List<ReadinessSocket> retrying;
  retrying.splice_back(paused_);
  while (ReadinessSocket* listener = retrying.pop_front()) {
    listener->paused = false;
    changed(*listener);
    serve_incoming(*listener);
  }
}

}  // namespace weir
