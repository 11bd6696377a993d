// The poll backend's conversation with the kernel; what follows from it is in readiness.
#include "weir/loop/poll.hpp"

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

namespace weir {
namespace {

class PollBackend final : public ReadinessBackend {
 public:
  PollBackend(Host& host, RunQueue& ready, os::Pipe wake_pipe)
      : ReadinessBackend(host, ready), wake_pipe_(std::move(wake_pipe)) {
    polled_.push_back({wake_pipe_.read_end.get(), POLLIN, 0});
    sockets_.push_back(nullptr);
  }

  std::string_view name() const noexcept override { return "poll"; }
  void wait(Instant until) override;
  void wake() noexcept override;

 private:
  Result<> start_watching(ReadinessSocket& socket) override;
  void stop_watching(ReadinessSocket& socket) override;
  void interest_changed(ReadinessSocket& socket) override;

  int ask_kernel(Instant until);
  void drain_wake_pipe();

  os::Pipe wake_pipe_;
  // Side by side; a socket knows its place. The first is the wake-up pipe.
  std::vector<pollfd> polled_;
  std::vector<ReadinessSocket*> sockets_;
};

// Levels are reported again and again, so only what somebody waits for may be asked. A negative
// descriptor is not looked at; hang-ups and errors are always reported of the others.
pollfd interest_of(const ReadinessSocket& socket) noexcept {
  short events = 0;
  if (socket.incoming != nullptr && !socket.paused) events |= POLLIN;
  if (socket.outgoing != nullptr) events |= POLLOUT;
  const bool watched = socket.watcher != nullptr && !socket.dead;
  return {events != 0 || watched ? socket.descriptor : -1, events, 0};
}

Readiness readiness_of(short events) noexcept {
  return {.readable = (events & POLLIN) != 0,
          .writable = (events & POLLOUT) != 0,
          .dead = (events & (POLLHUP | POLLERR | POLLNVAL)) != 0};
}

Result<> PollBackend::start_watching(ReadinessSocket& socket) {
  socket.place = static_cast<std::uint32_t>(polled_.size());
  try {
    polled_.push_back(interest_of(socket));
    sockets_.push_back(&socket);
  } catch (const std::bad_alloc&) {
    polled_.resize(socket.place);
    return fail(system_error(ENOMEM));
  }
  return {};
}

void PollBackend::stop_watching(ReadinessSocket& socket) {
  const std::size_t place = socket.place;
  assert(sockets_[place] == &socket);
  polled_[place] = polled_.back();
  sockets_[place] = sockets_.back();
  sockets_[place]->place = socket.place;
  polled_.pop_back();
  sockets_.pop_back();
}

void PollBackend::interest_changed(ReadinessSocket& socket) {
  pollfd& polled = polled_[socket.place];
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
  // Nothing is adopted or closed in here, so places do not change.
  for (std::size_t place = 1; left > 0 && place < polled_.size(); ++place) {
    const short events = std::exchange(polled_[place].revents, short{0});
    if (events == 0) continue;
    --left;
    ReadinessSocket& socket = *sockets_[place];
    became(socket, readiness_of(events));
    // A Unix listener that refuses newcomers is "readable" for good, though nobody is in its queue.
    const bool in_vain = socket.role == SocketRole::listener && socket.incoming != nullptr;
    if (in_vain && !socket.paused) pause(socket);
  }
  retry_paused();
}

int PollBackend::ask_kernel(Instant until) {
  for (;;) {
    Duration longest{};
    if (until != Instant::min() && until != never) {
      longest = std::max(Duration(0), until - host().now());
    }
    const timespec timeout = os::to_timespec(longest);
    counters_.system_calls.add();
    const int count =
        ::ppoll(polled_.data(), polled_.size(), until == never ? nullptr : &timeout, nullptr);
    if (count >= 0) return count;
    // ENOMEM: the kernel had no room for the list; the loop comes back.
    if (errno != EINTR) return 0;
  }
}

// A full pipe wakes as well as one more byte would. Not counted: the counters belong to the loop's
// thread.
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

Result<std::unique_ptr<Backend>> make_poll_backend(Host& host, RunQueue& ready) {
  auto pipe = os::open_pipe();
  if (!pipe) return fail(pipe.error());
  return std::unique_ptr<Backend>(std::make_unique<PollBackend>(host, ready, std::move(*pipe)));
}

}  // namespace weir
