// The interim responses of one request.
#pragma once

#include <coroutine>
#include <cstdint>

#include "weir/base/result.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Sends interim responses, and lets the final one wait for them: none follows the final head (RFC
/// 9110 §15.2). The handler and tasks beside it may send them at the same time.
/// Threads: its loop's.
/// Lifetime: the carrier outlives it.
class InterimSender {
 public:
  InterimSender(Carrier& carrier, Loop& loop) noexcept : carrier_(carrier), loop_(loop) {}
  InterimSender(const InterimSender&) = delete;
  InterimSender& operator=(const InterimSender&) = delete;

  /// Begins another request.
  void open() noexcept { open_ = true; }
  /// Lets no further one begin.
  void close() noexcept { open_ = false; }

  /// Sends one.
  /// Errors: Errc::closed after close(); those of the connection.
  /// Cancel: not affected, as Carrier::send_interim().
  Task<Result<>> send(const ResponseHead& head);

  /// Waits until those that have begun were sent: `co_await interim.all_sent()`. It allocates
  /// nothing. One task waits at a time.
  /// Cancel: not affected.
  class AllSent : public Waiter {
   public:
    explicit AllSent(InterimSender& sender) noexcept : sender_(sender) {}
    bool await_ready() const noexcept { return sender_.pending_ == 0; }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      set_coroutine(handle);
      sender_.waiting_ = this;
    }
    void await_resume() const noexcept {}

   private:
    InterimSender& sender_;
  };
  AllSent all_sent() noexcept { return AllSent(*this); }

 private:
  class Pending;

  Carrier& carrier_;
  Loop& loop_;
  AllSent* waiting_ = nullptr;
  std::uint32_t pending_ = 0;
  bool open_ = false;
};

}  // namespace weir::http
