// The poll backend: its system calls. ReadinessBackend handles the operations.
#include "weir/loop/detail/readiness/backends.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "weir/loop/detail/readiness/readiness.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::loop {
namespace {

class PollBackend final : public ReadinessBackend {
 public:
  PollBackend(Platform& platform, RunQueue& ready, os::Pipe wake_pipe)
      : ReadinessBackend(platform, ready), wake_pipe_(std::move(wake_pipe)) {
    polled_.push_back({wake_pipe_.read_end.get(), POLLIN, 0});
    sockets_.push_back(nullptr);
  }

  std::string_view name() const noexcept override { return "poll"; }
  void wait(Instant until) override;
  void wake() noexcept override;

 private:
  Result<> start_watching(ReadinessSocket& socket) override;
  void stop_watching(ReadinessSocket& socket) override;
  void on_interest_change(ReadinessSocket& socket) override;

  int ask_kernel(Instant until);
  void drain_wake_pipe();

  os::Pipe wake_pipe_;
  // Two parallel arrays; ReadinessSocket::index is the position in both. The first entry is the
  // wake-up pipe.
  std::vector<pollfd> polled_;
  std::vector<ReadinessSocket*> sockets_;
};

// Levels are reported repeatedly, so poll gets only events that an operation waits for. It skips a
// negative descriptor. It always reports hang-ups and errors of the others.
pollfd interest_of(const ReadinessSocket& socket) noexcept {
  short events = 0;
  if (socket.incoming != nullptr && !socket.paused) events |= POLLIN;
  if (socket.outgoing != nullptr) events |= POLLOUT;
  const bool watched = socket.observer != nullptr && !socket.dead;
  if (watched && socket.observer->observes_input()) events |= POLLIN;
  return {events != 0 || watched ? socket.descriptor : -1, events, 0};
}

Readiness readiness_of(short events) noexcept {
  return {.readable = (events & POLLIN) != 0,
          .writable = (events & POLLOUT) != 0,
          .dead = (events & (POLLHUP | POLLERR | POLLNVAL)) != 0};
}

Result<> PollBackend::start_watching(ReadinessSocket& socket) {
  socket.index = static_cast<std::uint32_t>(polled_.size());
  try {
    polled_.push_back(interest_of(socket));
    sockets_.push_back(&socket);
  } catch (const std::bad_alloc&) {
    polled_.resize(socket.index);
    return fail(system_error(ENOMEM));
  }
  return {};
}

void PollBackend::stop_watching(ReadinessSocket& socket) {
  const std::size_t index = socket.index;
  assert(sockets_[index] == &socket);
  polled_[index] = polled_.back();
  sockets_[index] = sockets_.back();
  sockets_[index]->index = socket.index;
  polled_.pop_back();
  sockets_.pop_back();
}

void PollBackend::on_interest_change(ReadinessSocket& socket) {
  pollfd& polled = polled_[socket.index];
  const short reported = polled.revents;
  polled = interest_of(socket);
  polled.revents = reported;
}

void PollBackend::wait(Instant until) {
  int left = ask_kernel(std::min(until, retry_at()));
  if (left > 0 && polled_[0].revents != 0) {
    drain_wake_pipe();
    --left;
  }
  // No socket is adopted or closed in this loop, so positions do not change.
  for (std::size_t index = 1; left > 0 && index < polled_.size(); ++index) {
    const short events = std::exchange(polled_[index].revents, short{0});
    if (events == 0) continue;
    --left;
    ReadinessSocket& socket = *sockets_[index];
    on_ready(socket, readiness_of(events));
    // A Unix listener that refuses new connections stays "readable", even if its queue is empty.
    const bool nothing_accepted = socket.role == SocketRole::listener && socket.incoming != nullptr;
    if (nothing_accepted && !socket.paused) pause(socket);
  }
  retry_paused();
}

int PollBackend::ask_kernel(Instant until) {
  for (;;) {
    Duration longest{};
    if (until != Instant::min() && until != never) {
      longest = std::max(Duration(0), until - platform().now());
    }
    const timespec timeout = os::to_timespec(longest);
    counters_.system_calls.add();
    const int count =
        ::ppoll(polled_.data(), polled_.size(), until == never ? nullptr : &timeout, nullptr);
    if (count >= 0) return count;
    // ENOMEM: the kernel had no memory for the list; the loop calls again.
    if (errno != EINTR) return 0;
  }
}

// A full pipe wakes the loop as well as another byte would. The system call is not counted: the
// counters belong to the loop's thread.
void PollBackend::wake() noexcept {
  const int saved = errno;
  const std::byte one{1};
  [[maybe_unused]] const auto written = ::write(wake_pipe_.write_end.get(), &one, 1);
  errno = saved;
}

void PollBackend::drain_wake_pipe() {
  std::array<std::byte, 256> bytes;
  counters_.system_calls.add();
  [[maybe_unused]] const auto count = ::read(wake_pipe_.read_end.get(), bytes.data(), bytes.size());
}

}  // namespace

Result<std::unique_ptr<Backend>> make_poll_backend(Platform& platform, RunQueue& ready) {
  WEIR_TRY(auto pipe, os::open_pipe());
  return std::unique_ptr<Backend>(std::make_unique<PollBackend>(platform, ready, std::move(pipe)));
}

}  // namespace weir::loop
