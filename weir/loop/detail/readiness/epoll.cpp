// The epoll backend: its system calls. ReadinessBackend handles the operations.
#include "weir/loop/detail/readiness/backends.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

#include "weir/loop/detail/readiness/readiness.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::loop {
namespace {

constexpr std::uint64_t wake_tag = 0;  // no socket has this tag
constexpr std::uint32_t everything =
    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | static_cast<std::uint32_t>(EPOLLET);
constexpr std::uint32_t input = EPOLLIN | static_cast<std::uint32_t>(EPOLLET);

/// Returns the events that the kernel is to report. A stream reports room only after it had none. A
/// datagram socket reports it after each datagram that has left, so only a waiting send asks.
std::uint32_t events_of(const ReadinessSocket& socket) noexcept {
  if (socket.role != SocketRole::datagrams) return everything;
  return socket.reports_room ? input | EPOLLOUT : input;
}

Readiness readiness_of(std::uint32_t events) noexcept {
  // An unconnected stream reports EPOLLHUP too, but its peer has not finished sending.
  const bool closed_both_ways = (events & EPOLLHUP) != 0 && (events & EPOLLRDHUP) != 0;
  return {.readable = (events & EPOLLIN) != 0,
          .writable = (events & EPOLLOUT) != 0,
          .peer_finished = (events & EPOLLRDHUP) != 0,
          .urgent = (events & EPOLLPRI) != 0,
          .dead = closed_both_ways || (events & EPOLLERR) != 0};
}

class EpollBackend final : public ReadinessBackend {
 public:
  EpollBackend(Platform& platform, RunQueue& ready, os::Fd epoll, os::Fd wake_event) noexcept
      : ReadinessBackend(platform, ready),
        epoll_(std::move(epoll)),
        wake_event_(std::move(wake_event)) {}

  std::string_view name() const noexcept override { return "epoll"; }
  void wait(Instant until) override;
  // The system call is not counted: the counters belong to the loop's thread. The event is never
  // read: each write is an edge, and the counter is full only after 2^64 - 2 writes.
  void wake() noexcept override { os::signal_event(wake_event_.get()); }

 private:
  Result<> start_watching(ReadinessSocket& socket) override;
  void stop_watching(ReadinessSocket& socket) override;
  void on_interest_change(ReadinessSocket& socket) override {
    const bool asks = socket.role == SocketRole::datagrams && socket.outgoing != nullptr;
    if (asks != socket.reports_room) ask_for_room(socket, asks);
  }

  void ask_for_room(ReadinessSocket& socket, bool asks);
  int control(int operation, const ReadinessSocket& socket);
  int wait_for_events(Instant until);
  int ask_kernel(Duration longest);

  os::Fd epoll_;
  os::Fd wake_event_;
  bool has_nanoseconds_ = true;
  std::array<epoll_event, 512> events_;
};

Result<> EpollBackend::start_watching(ReadinessSocket& socket) {
  if (control(EPOLL_CTL_ADD, socket) < 0) return fail(system_error(errno));
  return {};
}

/// Asks the kernel to report room for a datagram, also room that there is already; or ends that.
void EpollBackend::ask_for_room(ReadinessSocket& socket, bool asks) {
  socket.reports_room = asks;
  [[maybe_unused]] const int changed = control(EPOLL_CTL_MOD, socket);
  assert(changed == 0 && "the socket is registered, and a change needs no memory");
}

int EpollBackend::control(int operation, const ReadinessSocket& socket) {
  epoll_event event{};
  event.events = events_of(socket);
  event.data.u64 = SocketSlab::tag(socket);
  counters_.system_calls.add();
  return ::epoll_ctl(epoll_.get(), operation, socket.descriptor, &event);
}

// Closing the descriptor removes a stream from the set. If a forked child holds it open for
// longer, late reports carry a tag that is no longer valid. A listener may stay open elsewhere for
// good, and each of its connections would wake this loop.
void EpollBackend::stop_watching(ReadinessSocket& socket) {
  if (socket.role != SocketRole::listener) return;
  counters_.system_calls.add();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.descriptor, nullptr);
}

void EpollBackend::wait(Instant until) {
  const int count = wait_for_events(std::min(until, retry_at()));
  for (int index = 0; index < count; ++index) {
    const epoll_event& event = events_[static_cast<std::size_t>(index)];
    if (event.data.u64 == wake_tag) continue;
    ReadinessSocket* socket = SocketSlab::find(event.data.u64);
    if (socket != nullptr) on_ready(*socket, readiness_of(event.events));
  }
  retry_paused();
}

int EpollBackend::wait_for_events(Instant until) {
  for (;;) {
    Duration longest = Duration::max();
    if (until == Instant::min()) {
      longest = {};
    } else if (until != never) {
      longest = std::max(Duration(0), until - platform().now());
    }
    const int count = ask_kernel(longest);
    if (count >= 0) return count;
    assert(errno == EINTR);
  }
}

int EpollBackend::ask_kernel(Duration longest) {
  const int room = static_cast<int>(events_.size());
  const bool for_ever = longest == Duration::max();
  if (has_nanoseconds_) {
    const timespec timeout = os::to_timespec(longest);
    counters_.system_calls.add();
    const int count =
        ::epoll_pwait2(epoll_.get(), events_.data(), room, for_ever ? nullptr : &timeout, nullptr);
    // Old container sandboxes refuse system calls that they do not list with EPERM.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    has_nanoseconds_ = false;
  }
  int timeout = -1;
  if (!for_ever) {
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
    timeout = static_cast<int>(std::min<std::int64_t>(rounded, std::numeric_limits<int>::max()));
  }
  counters_.system_calls.add();
  return ::epoll_wait(epoll_.get(), events_.data(), room, timeout);
}

}  // namespace

Result<std::unique_ptr<Backend>> make_epoll_backend(Platform& platform, RunQueue& ready) {
  os::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail(system_error(errno));
  WEIR_TRY(auto wake_event, os::open_event());
  epoll_event event{};
  event.events = EPOLLIN | static_cast<std::uint32_t>(EPOLLET);
  event.data.u64 = wake_tag;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake_event.get(), &event) < 0) {
    return fail(system_error(errno));
  }
  return std::unique_ptr<Backend>(
      std::make_unique<EpollBackend>(platform, ready, std::move(epoll), std::move(wake_event)));
}

}  // namespace weir::loop
