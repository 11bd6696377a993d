// A call on a thread of a pool, from the co_await to its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/runtime/pool/detail/blocking_call.hpp"
#include "weir/runtime/pool/detail/pool_queue.hpp"
#include "weir/task/task.hpp"

namespace weir {

class PoolCrew;

/// Lives in the frame of who awaits it. Until its end it belongs to its crew, whose mutex guards
/// it; posting it home passes it back. Threads: its loop's; call() one of the pool's.
class BlockingJob : public PoolJob, Waiter, CancelNode {
 public:
  BlockingJob(PoolCrew& crew, std::size_t lane) noexcept
      : CancelNode(&ask), crew_(crew), lane_(lane) {}
  BlockingJob(const BlockingJob&) = delete;
  BlockingJob& operator=(const BlockingJob&) = delete;

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    wait_in(handle);
    return begin();
  }
  void await_resume() noexcept { CancelNode::unlink(); }

 protected:
  virtual ~BlockingJob() = default;
  /// On a thread of the pool.
  virtual void call() noexcept = 0;
  /// To ask a call under way to stop; with no state where it does not listen. Any thread.
  virtual std::stop_source stop_source() noexcept { return std::stop_source(std::nostopstate); }
  /// Why it was not called; no error where it was.
  std::error_code refusal() const noexcept { return refusal_; }

 private:
  friend class PoolCrew;
  enum class Phase : std::uint8_t { idle, queued, running, finished };

  bool begin();
  static void ask(CancelNode& node);
  /// Any thread. The job may be gone when it returns.
  void go_home() { context().loop->post_from_outside(*this); }
  void go_on() { resume_later(); }  // at home

  PoolCrew& crew_;
  const std::size_t lane_;
  const WorkUnit* unit_ = nullptr;  // for whom it is called
  std::error_code refusal_;
  // Written under the crew's mutex; see ask() for who reads it without.
  std::atomic<Phase> phase_{Phase::idle};
};

namespace detail {

/// The call of `make`, which takes a const std::stop_token&.
template <class Call, class Make>
class BlockingCall final : public BlockingJob {
 public:
  using Returned = typename Call::Returned;

  BlockingCall(PoolCrew& crew, std::size_t lane, Make& make)
      : BlockingJob(crew, lane), make_(make) {}

  /// At home, after the end. Once.
  typename Call::type take() {
    if (refusal()) return fail(refusal());
    if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (std::is_void_v<Returned>) {
      return {};
    } else {
      return std::move(*value_);
    }
  }

 private:
  void call() noexcept override {
    try {
      if constexpr (std::is_void_v<Returned>) {
        make_(stop_.get_token());
      } else {
        value_.emplace(make_(stop_.get_token()));
      }
    } catch (...) {
      exception_ = std::current_exception();
    }
  }
  std::stop_source stop_source() noexcept override { return stop_; }

  struct Nothing {};
  Make& make_;
  [[no_unique_address]] std::conditional_t<std::is_void_v<Returned>, Nothing,
                                           std::optional<std::remove_cv_t<Returned>>> value_;
  std::exception_ptr exception_;
  // Its state is on the heap: only for those who listen.
  std::stop_source stop_ =
      Call::takes_stop_token ? std::stop_source() : std::stop_source(std::nostopstate);
};

/// A coroutine of its own, so that function and arguments live in its frame.
template <class Fn, class... Args>
Task<PoolResult<Fn, Args...>> run_blocking(PoolCrew& crew, std::size_t lane, Fn fn, Args... args) {
  using Call = PoolCall<Fn, Args...>;
  const auto make = [&](const std::stop_token& stop) -> typename Call::Returned {
    if constexpr (Call::takes_stop_token) {
      return std::invoke(std::move(fn), stop, as_passed(args)...);
    } else {
      static_cast<void>(stop);
      return std::invoke(std::move(fn), as_passed(args)...);
    }
  };
  BlockingCall<Call, decltype(make)> call(crew, lane, make);
  co_await call;
  co_return call.take();
}

}  // namespace detail
}  // namespace weir
