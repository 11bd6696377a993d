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
#include "weir/loop/uring_datagrams.hpp"
#include "weir/loop/uring_file.hpp"
#include "weir/loop/uring_listener.hpp"
#include "weir/loop/uring_socket.hpp"
#include "weir/loop/uring_stream.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {
namespace uring {
namespace {

// How long a stream for which there was no read buffer waits before it asks again.
constexpr Duration memory_pause = std::chrono::milliseconds(10);
// How many doubted streams are checked between two looks at what is done.
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
  UringBackend(Host& host, RunQueue& ready, UringOptions options) noexcept
      : core_(host, ready, counters_), name_(options.linux_6_1 ? "uring:6.1" : "uring") {
    core_.features.limited_multishot = !options.linux_6_1;
  }
  ~UringBackend() override;

  Result<> open();

  std::string_view name() const noexcept override { return name_; }
  Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) override;
  void close(Socket& socket) override;
  bool receive(Socket& socket, ReceiveOperation& operation) override {
    return stream_of(socket).receive(core_, operation);
  }
  bool send(Socket& socket, SendOperation& operation) override {
    return stream_of(socket).send(core_, operation);
  }
  bool accept(Socket& socket, AcceptOperation& operation) override {
    return listener_of(socket).accept(core_, operation);
  }
  bool connect(Socket& socket, ConnectOperation& operation) override {
    return stream_of(socket).connect(core_, operation);
  }
  void stop_accepting(Socket& socket) override { listener_of(socket).take_no_more(core_); }
  bool receive_datagrams(Socket& socket, ReceiveDatagramsOperation& operation) override {
    return datagrams_of(socket).receive(core_, operation);
  }
  bool send_datagrams(Socket& socket, SendDatagramsOperation& operation) override {
    return datagrams_of(socket).send(core_, operation);
  }
  bool does_files() const noexcept override { return true; }
  void start_file(FileOperation& operation) override { uring::start_file(core_, operation); }
  void cancel(Operation& operation) override;
  Result<> shut_down_sending(Socket& socket) override {
    return stream_of(socket).shut_down_sending(core_);
  }
  void watch(Socket& socket, HangupWatcher* watcher) override {
    stream_of(socket).watch(core_, watcher);
  }
  void wait(Instant until) override;
  void wake() noexcept override;

 private:
  void arm_wake();
  void enter(Instant until);
  void reap();
  void dispatch(const Completion& completion);
  void resume_waiting();
  void resume_starved();
  void check_doubted();
  Instant next_resume() noexcept;
  void stop(SocketState& socket);
  void forget(SocketState& socket) noexcept;
  void close_in_order();
  void close_abruptly();

  Core core_;
  std::string_view name_;
  os::Fd wake_event_;
  std::atomic<bool> wake_signalled_{false};
  bool destroying_ = false;
};

Result<> UringBackend::open() {
  if (auto opened = core_.ring.open(); !opened) return opened;
  if (auto opened = core_.buffers.open(core_.ring.native()); !opened) return opened;
  auto event = os::open_event();
  if (!event) return fail(event.error());
  wake_event_ = std::move(*event);
  arm_wake();
  return {};
}

Result<Socket*> UringBackend::adopt(Descriptor descriptor, SocketOptions options) {
  SocketState* socket = nullptr;
  try {
    switch (options.role) {
      case SocketRole::stream:
        socket = make_block<Stream>(descriptor.value(), options.unread_max).release();
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
  core_.sockets.push_back(*socket);
  return socket;
}

void UringBackend::close(Socket& socket) {
  auto& state = static_cast<SocketState&>(socket);
  assert(!state.closing);
  stop(state);
  if (state.role != SocketRole::stream && state.in_flight == 0) {
    // Nothing is behind it in the ring, and its port is free at once.
    core_.host.close(state.descriptor);
  } else {
    // Behind the cancellations: an armed request would keep the file open, and its peer waiting.
    core_.ring.close_descriptor(state.descriptor);
  }
  state.closing = true;
  if (state.in_flight == 0) forget(state);
}

void UringBackend::stop(SocketState& socket) {
  switch (socket.role) {
    case SocketRole::stream:
      return stream_of(socket).stop(core_);
    case SocketRole::datagrams:
      return datagrams_of(socket).stop(core_);
    case SocketRole::listener:
      break;
  }
  // The ring closes it only in the next wait(): whoever connects until then, maybe to the next
  // listener on this address, must not end up here.
  Listener& listener = listener_of(socket);
  if (!listener.shared()) ::shutdown(socket.descriptor, SHUT_RD);
  listener.stop(core_);
}

void UringBackend::forget(SocketState& socket) noexcept {
  socket.unlink();
  switch (socket.role) {
    case SocketRole::stream:
      return BlockDeleter<Stream>()(&stream_of(socket));
    case SocketRole::listener:
      return BlockDeleter<Listener>()(&listener_of(socket));
    case SocketRole::datagrams:
      return BlockDeleter<Datagrams>()(&datagrams_of(socket));
  }
}

void UringBackend::cancel(Operation& operation) {
  if (operation.state() != Operation::State::pending) return;
  if (operation.kind() == Operation::Kind::file) {
    cancel_file(core_, static_cast<FileOperation&>(operation));
    return;
  }
  Socket& socket = *operation.socket();
  switch (static_cast<SocketState&>(socket).role) {
    case SocketRole::stream:
      return stream_of(socket).cancel(core_, operation);
    case SocketRole::listener:
      return listener_of(socket).cancel(core_, operation);
    case SocketRole::datagrams:
      return datagrams_of(socket).cancel(core_, operation);
  }
}

// --- waking --------------------------------------------------------------------------------------
// The event's counter is never read back: the poll is edge-triggered, and the kernel looks at it at
// each write.

void UringBackend::arm_wake() {
  io_uring_sqe& entry = core_.ring.next();
  io_uring_prep_poll_multishot(&entry, wake_event_.get(), POLLIN);
  Ring::mark(entry, this, Tag::wake);
}

void UringBackend::wake() noexcept {
  // acq_rel: what was done before a wake() that finds the flag set is seen by the loop that resets
  // it, because it reads the flag from this exchange, or from a later one.
  if (!wake_signalled_.exchange(true, std::memory_order_acq_rel)) {
    os::signal_event(wake_event_.get());
  }
}

// --- waiting -------------------------------------------------------------------------------------

void UringBackend::wait(Instant until) {
  core_.told = false;
  for (;;) {
    enter(std::min(until, next_resume()));
    reap();
    resume_waiting();
    resume_starved();
    check_doubted();
    if (wake_signalled_.load(std::memory_order_relaxed)) {
      wake_signalled_.exchange(false, std::memory_order_acq_rel);
      return;
    }
    // A completion may mean nothing to anybody, such as that of a closed socket's last request.
    if (core_.told || !core_.ready.empty()) return;
    if (until == Instant::min() || (until != never && until <= core_.host.now())) return;
  }
}

void UringBackend::enter(Instant until) {
  if (until == never) return core_.ring.wait(std::nullopt);
  if (until == Instant::min()) return core_.ring.poll();
  const Instant now = core_.host.now();
  if (until <= now) return core_.ring.poll();
  core_.ring.wait(until - now);
}

void UringBackend::reap() {
  core_.ring.reap([this](const Completion& completion) { dispatch(completion); });
}

void UringBackend::dispatch(const Completion& completion) {
  if (completion.tag == Tag::none) return;
  if (completion.tag == Tag::wake) {
    if (!completion.more() && !destroying_) arm_wake();
    return;
  }
  if (completion.tag == Tag::file) {
    file_completed(core_, completion);
    return;
  }
  auto& socket = *static_cast<SocketState*>(completion.object);
  switch (socket.role) {
    case SocketRole::stream:
      stream_of(socket).completed(core_, completion);
      break;
    case SocketRole::listener:
      listener_of(socket).completed(core_, completion);
      break;
    case SocketRole::datagrams:
      datagrams_of(socket).completed(core_, completion);
      break;
  }
  if (socket.closing && socket.in_flight == 0) forget(socket);
}

// When resume_waiting() or check_doubted() have something to do.
Instant UringBackend::next_resume() noexcept {
  Instant earliest = core_.check_at;
  for (auto* each = core_.waiting.front(); each != nullptr; each = core_.waiting.next(*each)) {
    const Instant when = each->role == SocketRole::listener ? listener_of(*each).resume_at()
                                                            : after(core_.host.now(), memory_pause);
    earliest = std::min(earliest, when);
  }
  return earliest;
}

void UringBackend::resume_waiting() {
  if (core_.waiting.empty()) return;
  List<SocketState> all;
  all.splice_back(core_.waiting);
  const Instant now = core_.host.now();
  while (SocketState* each = all.pop_front()) {
    if (each->role == SocketRole::stream) {
      stream_of(*each).resume(core_);
    } else if (listener_of(*each).resume_at() <= now) {
      listener_of(*each).resume(core_);
    } else {
      core_.wait_with(*each);
    }
  }
}

void UringBackend::resume_starved() {
  // Without any, the first finds out how to wait for memory.
  for (std::size_t left = std::max<std::size_t>(core_.buffers.lent(), 1); left > 0; --left) {
    SocketState* each = core_.starved.front();
    if (each == nullptr) return;
    stream_of(*each).resume(core_);
  }
}

void UringBackend::check_doubted() {
  if (core_.check_at == never || core_.host.now() < core_.check_at) return;
  for (int left = checks_max; left > 0; --left) {
    SocketState* each = core_.doubted.front();
    if (each == nullptr) {
      core_.check_at = never;
      return;
    }
    stream_of(*each).check(core_);
  }
}

// --- the end -------------------------------------------------------------------------------------

UringBackend::~UringBackend() {
  destroying_ = true;
  core_.sockets.splice_back(core_.waiting);
  core_.sockets.splice_back(core_.starved);
  core_.sockets.splice_back(core_.doubted);
  if (core_.ring.is_open() && core_.ring.issued_by_this_thread()) {
    close_in_order();
  } else {
    close_abruptly();
  }
  core_.ring.close();
  while (SocketState* socket = core_.sockets.front()) forget(*socket);
}

// On the ring's own thread: as if the owner of each socket had closed it.
void UringBackend::close_in_order() {
  List<SocketState> all;
  all.splice_back(core_.sockets);
  while (SocketState* each = all.pop_front()) {
    core_.sockets.push_back(*each);
    if (!each->closing) close(*each);
  }
  // The kernel answers at once; the limit is for a request that it cannot cancel.
  constexpr int rounds_max = 20;
  for (int round = 0; round < rounds_max && !core_.sockets.empty(); ++round) {
    core_.ring.wait(std::chrono::milliseconds(100));
    reap();
  }
  core_.ring.poll();
}

// Elsewhere: the ring answers nobody but its own thread. Shutting down tells the peers at once,
// though the kernel lets go of the files only after it has cancelled what is armed.
void UringBackend::close_abruptly() {
  for (SocketState* each = core_.sockets.front(); each != nullptr;
       each = core_.sockets.next(*each)) {
    if (each->closing) continue;
    each->closing = true;
    const bool listens = each->role == SocketRole::listener;
    if (listens) listener_of(*each).drop_accepted(core_);
    if (!listens || !listener_of(*each).shared()) ::shutdown(each->descriptor, SHUT_RDWR);
    core_.host.close(each->descriptor);
  }
  if (core_.ring.is_open()) reap();
}

}  // namespace
}  // namespace uring

Result<std::unique_ptr<Backend>> make_uring_backend(Host& host, RunQueue& ready,
                                                    UringOptions options) {
  auto backend = std::make_unique<uring::UringBackend>(host, ready, options);
  if (auto opened = backend->open(); !opened) return fail(opened.error());
  return backend;
}

}  // namespace weir
