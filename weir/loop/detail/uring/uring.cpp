// The io_uring backend: dispatch to its sockets, waking, waiting, and destruction.
#include "weir/loop/detail/uring/uring.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/detail/uring/requests.hpp"
#include "weir/loop/detail/uring/socket.hpp"
#include "weir/loop/detail/uring/stream.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop {
namespace uring {
namespace {

// Pause before a stream that found no memory for a read buffer tries again.
constexpr Duration memory_pause = std::chrono::milliseconds(10);
// Maximum of hangup_unconfirmed streams that are checked in one round of wait().
constexpr int checks_max = 256;

Stream& stream_of(Socket& socket) noexcept {
  assert(static_cast<SocketState&>(socket).role == SocketRole::stream);
  return static_cast<Stream&>(socket);
}
Listener& listener_of(Socket& socket) noexcept {
  assert(static_cast<SocketState&>(socket).role == SocketRole::listener);
  return static_cast<Listener&>(socket);
}
Datagrams& datagrams_of(Socket& socket) noexcept {
  assert(static_cast<SocketState&>(socket).role == SocketRole::datagrams);
  return static_cast<Datagrams&>(socket);
}

class UringBackend final : public Backend {
 public:
  UringBackend(Platform& platform, RunQueue& ready, UringOptions options) noexcept
      : context_(platform, ready, counters_), name_(options.linux_6_1 ? "uring:6.1" : "uring") {
    context_.features.limited_multishot = !options.linux_6_1;
  }
  ~UringBackend() override;

  Result<> open();

  std::string_view name() const noexcept override { return name_; }
  Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) override;
  void close(Socket& socket) override;
  bool receive(Socket& socket, ReceiveOperation& operation) override {
    return stream_of(socket).receive(context_, operation);
  }
  bool send(Socket& socket, SendOperation& operation) override {
    return stream_of(socket).send(context_, operation);
  }
  bool accept(Socket& socket, AcceptOperation& operation) override {
    return listener_of(socket).accept(context_, operation);
  }
  bool connect(Socket& socket, ConnectOperation& operation) override {
    return stream_of(socket).connect(context_, operation);
  }
  void stop_accepting(Socket& socket) override { listener_of(socket).stop_accepting(context_); }
  bool receive_datagrams(Socket& socket, ReceiveDatagramsOperation& operation) override {
    return datagrams_of(socket).receive(context_, operation);
  }
  bool send_datagrams(Socket& socket, SendDatagramsOperation& operation) override {
    return datagrams_of(socket).send(context_, operation);
  }
  bool does_files() const noexcept override { return true; }
  void start_file(FileOperation& operation) override { uring::start_file(context_, operation); }
  void cancel(Operation& operation) override;
  Result<> shut_down_sending(Socket& socket) override {
    return stream_of(socket).shut_down_sending(context_);
  }
  void observe_hangup(Socket& socket, HangupObserver* observer) override {
    stream_of(socket).observe_hangup(context_, observer);
  }
  void wait(Instant until) override;
  void wake() noexcept override;

 private:
  void arm_wake();
  void enter(Instant until);
  void reap();
  void dispatch(const Completion& completion);
  void resume_waiting();
  void resume_waiting_for_buffer();
  void check_unconfirmed_hangups();
  Instant next_resume() noexcept;
  void stop(SocketState& socket);
  void forget(SocketState& socket) noexcept;
  void close_in_order();
  void close_from_other_thread();

  StreamMemory streams_;  // declared before the context, whose lists are destroyed first
  BackendContext context_;
  std::string_view name_;
  os::Fd wake_event_;
  std::atomic<bool> wake_signalled_{false};
  bool destroying_ = false;
};

Result<> UringBackend::open() {
  if (auto opened = context_.ring.open(); !opened) return opened;
  if (auto opened = context_.buffers.open(context_.ring.native()); !opened) return opened;
  WEIR_TRY(auto event, os::open_event());
  wake_event_ = std::move(event);
  arm_wake();
  return {};
}

Result<Socket*> UringBackend::adopt(Descriptor descriptor, SocketOptions options) {
  SocketState* socket = nullptr;
  try {
    switch (options.role) {
      case SocketRole::stream:
        socket = &streams_.create(descriptor.value(), options.unread_max);
        break;
      case SocketRole::listener:
        socket = make_block<Listener>(descriptor.value(), options.shared).release();
        break;
      case SocketRole::datagrams:
        socket = make_block<Datagrams>(descriptor.value()).release();
        break;
    }
  } catch (const std::bad_alloc&) {
    return fail(system_error(ENOMEM));
  }
  static_cast<void>(descriptor.release());
  context_.sockets.push_back(*socket);
  return socket;
}

void UringBackend::close(Socket& socket) {
  auto& state = static_cast<SocketState&>(socket);
  assert(!state.closing);
  stop(state);
  if (state.role != SocketRole::stream && state.in_flight == 0) {
    // No request names it, and its port becomes free immediately.
    context_.platform.close(state.descriptor);
  } else {
    // Closed after the cancellations: an armed request would keep the file open, and the peer
    // waiting.
    context_.ring.close_descriptor(state.descriptor);
  }
  state.closing = true;
  if (state.in_flight == 0) forget(state);
}

void UringBackend::stop(SocketState& socket) {
  switch (socket.role) {
    case SocketRole::stream:
      return stream_of(socket).stop(context_);
    case SocketRole::datagrams:
      return datagrams_of(socket).stop(context_);
    case SocketRole::listener:
      break;
  }
  // The ring closes it only in the next wait(). A connection that arrives until then, perhaps for
  // the next listener on this address, must not end up here.
  Listener& listener = listener_of(socket);
  if (!listener.shared()) ::shutdown(socket.descriptor, SHUT_RD);
  listener.stop(context_);
}

void UringBackend::forget(SocketState& socket) noexcept {
  socket.unlink();
  switch (socket.role) {
    case SocketRole::stream:
      return streams_.destroy(stream_of(socket));
    case SocketRole::listener:
      return BlockDeleter<Listener>()(&listener_of(socket));
    case SocketRole::datagrams:
      return BlockDeleter<Datagrams>()(&datagrams_of(socket));
  }
}

void UringBackend::cancel(Operation& operation) {
  if (operation.state() != Operation::State::pending) return;
  if (operation.kind() == Operation::Kind::file) {
    cancel_file(context_, static_cast<FileOperation&>(operation));
    return;
  }
  Socket& socket = *operation.socket();
  switch (static_cast<SocketState&>(socket).role) {
    case SocketRole::stream:
      return stream_of(socket).cancel(context_, operation);
    case SocketRole::listener:
      return listener_of(socket).cancel(context_, operation);
    case SocketRole::datagrams:
      return datagrams_of(socket).cancel(context_, operation);
  }
}

// --- waking --------------------------------------------------------------------------------------
// The event's counter is never read back: the poll is edge-triggered, so each write completes it.

void UringBackend::arm_wake() {
  io_uring_sqe& entry = context_.ring.next();
  io_uring_prep_poll_multishot(&entry, wake_event_.get(), POLLIN);
  Ring::mark(entry, this, Tag::wake);
}

void UringBackend::wake() noexcept {
  // acq_rel: the loop that resets the flag sees what was done before a wake() that finds the flag
  // set. It reads the flag from this exchange or from a later one.
  if (!wake_signalled_.exchange(true, std::memory_order_acq_rel)) {
    os::signal_event(wake_event_.get());
  }
}

// --- waiting -------------------------------------------------------------------------------------

void UringBackend::wait(Instant until) {
  context_.notified = false;
  for (;;) {
    enter(std::min(until, next_resume()));
    reap();
    resume_waiting();
    resume_waiting_for_buffer();
    check_unconfirmed_hangups();
    if (wake_signalled_.load(std::memory_order_relaxed)) {
      wake_signalled_.exchange(false, std::memory_order_acq_rel);
      return;
    }
    // A completion may concern no operation, for example that of a closed socket's last request.
    if (context_.notified || !context_.ready.empty()) return;
    if (until == Instant::min() || (until != never && until <= context_.platform.now())) return;
  }
}

void UringBackend::enter(Instant until) {
  context_.buffers.replace_taken();
  if (until == never) return context_.ring.wait(std::nullopt);
  if (until == Instant::min()) return context_.ring.poll();
  const Instant now = context_.platform.now();
  if (until <= now) return context_.ring.poll();
  context_.ring.wait(until - now);
}

void UringBackend::reap() {
  context_.ring.reap([this](const Completion& completion) { dispatch(completion); });
}

void UringBackend::dispatch(const Completion& completion) {
  if (completion.tag == Tag::none) return;
  if (completion.tag == Tag::wake) {
    if (!completion.more() && !destroying_) arm_wake();
    return;
  }
  if (completion.tag == Tag::file) {
    file_completed(context_, completion);
    return;
  }
  auto& socket = *static_cast<SocketState*>(completion.object);
  switch (socket.role) {
    case SocketRole::stream:
      stream_of(socket).completed(context_, completion);
      break;
    case SocketRole::listener:
      listener_of(socket).completed(context_, completion);
      break;
    case SocketRole::datagrams:
      datagrams_of(socket).completed(context_, completion);
      break;
  }
  if (socket.closing && socket.in_flight == 0) forget(socket);
}

// Returns the time when resume_waiting() or check_unconfirmed_hangups() have something to do.
Instant UringBackend::next_resume() noexcept {
  Instant earliest = context_.hangup_check_at;
  for (auto* each = context_.waiting.front(); each != nullptr;
       each = context_.waiting.next(*each)) {
    const Instant when = each->role == SocketRole::listener
                             ? listener_of(*each).resume_at()
                             : after(context_.platform.now(), memory_pause);
    earliest = std::min(earliest, when);
  }
  return earliest;
}

void UringBackend::resume_waiting() {
  if (context_.waiting.empty()) return;
  detail::List<SocketState> all;
  all.splice_back(context_.waiting);
  const Instant now = context_.platform.now();
  while (SocketState* each = all.pop_front()) {
    if (each->role == SocketRole::stream) {
      stream_of(*each).resume(context_);
    } else if (listener_of(*each).resume_at() <= now) {
      listener_of(*each).resume(context_);
    } else {
      context_.add_waiting(*each);
    }
  }
}

void UringBackend::resume_waiting_for_buffer() {
  // If no buffer is available, the first stream then waits for memory.
  for (std::size_t left = std::max<std::size_t>(context_.buffers.available(), 1); left > 0;
       --left) {
    SocketState* each = context_.waiting_for_buffer.front();
    if (each == nullptr) return;
    stream_of(*each).resume(context_);
  }
}

void UringBackend::check_unconfirmed_hangups() {
  if (context_.hangup_check_at == never || context_.platform.now() < context_.hangup_check_at)
    return;
  for (int left = checks_max; left > 0; --left) {
    SocketState* each = context_.hangup_unconfirmed.front();
    if (each == nullptr) {
      context_.hangup_check_at = never;
      return;
    }
    stream_of(*each).check_hangup(context_);
  }
}

// --- the end -------------------------------------------------------------------------------------

UringBackend::~UringBackend() {
  destroying_ = true;
  context_.sockets.splice_back(context_.waiting);
  context_.sockets.splice_back(context_.waiting_for_buffer);
  context_.sockets.splice_back(context_.hangup_unconfirmed);
  if (context_.ring.is_open() && context_.ring.issued_by_this_thread()) {
    close_in_order();
  } else {
    close_from_other_thread();
  }
  context_.ring.close();
  while (SocketState* socket = context_.sockets.front()) forget(*socket);
}

// Runs on the ring's own thread: closes each socket as its owner would have done.
void UringBackend::close_in_order() {
  detail::List<SocketState> all;
  all.splice_back(context_.sockets);
  while (SocketState* each = all.pop_front()) {
    context_.sockets.push_back(*each);
    if (!each->closing) close(*each);
  }
  // The kernel answers immediately; the limit is for a request that it cannot cancel.
  constexpr int rounds_max = 20;
  for (int round = 0; round < rounds_max && !context_.sockets.empty(); ++round) {
    context_.ring.wait(std::chrono::milliseconds(100));
    reap();
  }
  context_.ring.poll();
}

// Runs on another thread, which cannot use the ring. Shutting the sockets down notifies the peers
// immediately. The kernel releases the files only after it has cancelled the armed requests.
void UringBackend::close_from_other_thread() {
  for (SocketState* each = context_.sockets.front(); each != nullptr;
       each = context_.sockets.next(*each)) {
    if (each->closing) continue;
    each->closing = true;
    const bool listens = each->role == SocketRole::listener;
    if (listens) listener_of(*each).drop_accepted(context_);
    if (!listens || !listener_of(*each).shared()) ::shutdown(each->descriptor, SHUT_RDWR);
    context_.platform.close(each->descriptor);
  }
  if (context_.ring.is_open()) reap();
}

}  // namespace
}  // namespace uring

Result<std::unique_ptr<Backend>> make_uring_backend(Platform& platform, RunQueue& ready,
                                                    UringOptions options) {
  auto backend = std::make_unique<uring::UringBackend>(platform, ready, options);
  WEIR_TRY(backend->open());
  return backend;
}

}  // namespace weir::loop
