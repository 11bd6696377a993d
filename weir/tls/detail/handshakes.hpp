// Handshakes: running the handshakes of one acceptor or connector within their limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/base/buffer.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/stream.hpp"

namespace weir::tls::detail {

/// Grants the steps of handshakes, at most one in each turn of a loop. A step computes for up to a
/// millisecond, and the other work of the core must not wait for several of them.
/// Threads: the loop's.
class StepTurns {
 public:
  explicit StepTurns(Loop& loop) noexcept : loop_(loop) {}
  /// Returns those of the core of `loop`. The first call makes them.
  /// Errors: throws std::bad_alloc.
  static StepTurns& of(Loop& loop) { return loop.slots().get<StepTurns>(loop); }

  /// Waits for a turn without a step, in the order of arrival. The caller then takes one step
  /// without a wait.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue.
  Task<Result<>> wait();

 private:
  bool try_take() noexcept;

  Loop& loop_;
  Semaphore queue_{1};
  std::uint64_t last_ = UINT64_MAX;  // turn of the last step
};

/// Runs handshakes, at most HandshakeLimits::concurrency_max at the same time.
/// Threads: the loop's.
/// Lifetime: outlives its calls; `limits` outlive it.
class Handshakes {
 public:
  /// Errors: throws std::bad_alloc.
  Handshakes(Loop& loop, const HandshakeLimits& limits)
      : limits_(limits),
        counters_(TlsCounters::of(loop)),
        turns_(StepTurns::of(loop)),
        permits_(limits.concurrency_max) {}

  /// Performs the handshake over `inner`, counts the result, and makes the stream.
  /// Errors: see Acceptor::accept() and Connector::connect().
  /// Cancel: closes `inner`.
  Task<Outcome<Stream>> run(std::unique_ptr<SslEngine> engine, AnyStream inner);

 private:
  struct Buffers {
    Buffer input;
    Buffer output;
  };
  Task<Result<>> shake(SslEngine& engine, weir::Stream& inner, Buffers& buffers);
  Task<Result<>> wait_for_permit(SemaphorePermit& permit);

  const HandshakeLimits& limits_;
  TlsCounters& counters_;
  StepTurns& turns_;
  Semaphore permits_;
  std::size_t waiting_ = 0;
};

}  // namespace weir::tls::detail
