// Handshakes: running the handshakes of one acceptor or connector within their limits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/detail/lingering_streams.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/detail/records/record_layer.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/stream.hpp"

namespace weir::tls::detail {

/// Grants the computing steps of handshakes, at most one in each turn of a loop. A computing step
/// may take up to a millisecond, and the other work of the core must not wait for several of them.
/// SslEngine::may_compute() and computed() tell which steps compute.
/// Threads: the loop's.
class StepTurns {
 public:
  explicit StepTurns(Loop& loop) noexcept : loop_(loop) {}
  /// Returns the StepTurns of the core of `loop`. The first call makes the object.
  /// Errors: throws std::bad_alloc.
  static StepTurns& of(Loop& loop) { return loop.slots().get<StepTurns>(loop); }

  /// Takes the step of this turn, unless it is taken or other handshakes wait for it. This costs no
  /// coroutine frame. The caller then takes one step without a wait.
  /// Returns: false if the caller has to wait().
  bool try_now() noexcept { return queue_.try_acquire().has_value() && try_take(); }
  /// Returns the step of this turn, which has not computed. Another handshake may take it.
  void give_back() noexcept { last_ = UINT64_MAX; }
  /// Waits for a turn without a step, in the order of arrival. The caller then takes one step
  /// without a wait.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue.
  Task<Result<>> wait();

 private:
  bool try_take() noexcept;

  Loop& loop_;
  Semaphore queue_{1};
  std::uint64_t last_ = UINT64_MAX;  // turn of the last computing step
};

/// A handshake of a server that may begin. A handshake of a client begins without an entry.
struct HandshakeEntry {
  Buffer input;  ///< the first message of the client
  SemaphorePermit permit;
  Instant end;  ///< of HandshakeLimits::timeout
};

/// The limits of the proof by a peer's certificate; see TlsInfo::proof_ended().
struct ProofLimits {
  Duration lifetime;  ///< after the full handshake
  std::shared_ptr<const std::atomic<bool>> trust_replaced;
};

/// Runs handshakes, at most HandshakeLimits::concurrency_max at the same time. When others wait for
/// a permit, a handshake of a server that has waited for its client for stall_max ends. A few
/// silent clients thus cannot keep all permits.
/// Threads: the loop's.
/// Lifetime: outlives its calls; `limits` outlive it.
class Handshakes : loop::Timer {
 public:
  /// Time for which a client may be silent during its handshake when others wait.
  static constexpr Duration stall_max = std::chrono::milliseconds(500);

  /// Errors: throws std::bad_alloc.
  Handshakes(Loop& loop, const HandshakeLimits& limits, RecordCode records = RecordCode::weir)
      : loop::Timer([](loop::Timer& self) { static_cast<Handshakes&>(self).end_stalled(); }),
        loop_(loop),
        limits_(limits),
        record_code_(records),
        counters_(TlsCounters::of(loop)),
        turns_(StepTurns::of(loop)),
        aead_(AeadCore::of(loop)),
        clock_(loop.platform()),
        permits_(limits.concurrency_max),
        lingering_(loop) {
    if (limits.rate && RateLimiter::check(*limits.rate)) rate_.emplace(*limits.rate);
  }

  /// Receives the first message of a client, and waits until its handshake may begin. A client that
  /// sends slowly holds its stream and the bytes that it has sent. A client with a too long message
  /// gets an alert, and `inner` is taken until it can have read this. Failures are counted.
  /// Errors: Error::timed_out, peer_left, input_too_large, too_many_handshakes; Errc::cancelled.
  /// Cancel: ends the wait.
  Task<Outcome<>> enter(AnyStream& inner, Duration hello_timeout, HandshakeEntry& entry);
  /// Performs the handshake over `inner`, counts the result, and makes the stream. `proof` limits
  /// the proof by a certificate that the handshake verifies.
  /// Errors: see Acceptor::accept() and Connector::connect().
  /// Cancel: closes `inner`.
  Task<Outcome<Stream>> run(std::unique_ptr<SslEngine> engine, AnyStream inner, ProofLimits proof,
                            std::optional<HandshakeEntry> entry = {});
  /// Sends an answer to a client that speaks no TLS, and closes `inner` when the client can have
  /// read it. The failure is counted. Returns: Error::plain_http. Cancel: closes `inner`.
  Task<Failure> refuse_plain(AnyStream inner, std::string_view answer, Instant end);
  /// Counts a failure and returns it.
  Failure failed(Failure failure) noexcept;

 private:
  struct Buffers {
    Buffer input;
    Buffer output;
    bool alerted = false;  // true if the last output was the alert of a failure
  };
  /// Counts a handshake in a queue while it exists.
  class Queued {
   public:
    explicit Queued(std::size_t& count) noexcept : count_(count) { ++count_; }
    Queued(const Queued&) = delete;
    Queued& operator=(const Queued&) = delete;
    ~Queued() { --count_; }

   private:
    std::size_t& count_;
  };
  /// A handshake of a server that waits for its client.
  struct Stalled : weir::detail::ListNode {
    Stalled(weir::Stream& stream, Instant begin) noexcept : inner(stream), since(begin) {}
    weir::Stream& inner;
    Instant since;       // when the last step had an answer
    bool ended = false;  // others need its permit
  };

  Task<Result<>> receive_hello(weir::Stream& inner, Buffer& input, Instant end) const;
  Task<Result<Buffer>> receive(weir::Stream& inner, std::optional<Instant> stalled_since);
  Task<Result<>> shake(SslEngine& engine, weir::Stream& inner, Buffers& buffers, bool entered);
  Task<Result<SslEngine::Step>> sign(SslEngine& engine, Buffers& buffers);
  void linger(AnyStream inner) noexcept;
  void end_stalled() noexcept;
  bool try_permit(SemaphorePermit& permit);
  Task<Result<>> wait_for_permit(SemaphorePermit& permit);
  Task<Result<>> wait_in_line(SemaphorePermit& permit);
  std::unique_ptr<RecordLayer> records_of(std::unique_ptr<SslEngine> engine) const;
  std::shared_ptr<const TlsInfo> share(TlsInfo info);

  Loop& loop_;
  const HandshakeLimits& limits_;
  const RecordCode record_code_;
  TlsCounters& counters_;
  StepTurns& turns_;
  AeadCore& aead_;
  loop::PlatformClock& clock_;
  std::optional<RateLimiter> rate_;
  Semaphore permits_;
  LingeringStreams lingering_;           // failed ones, whose peers may still read the alert
  std::size_t waiting_ = 0;              // handshakes that wait for the rate or a permit
  std::size_t waiting_for_permits_ = 0;  // those that wait for a permit
  std::size_t ended_for_waiting_ = 0;    // stalled handshakes that have ended for them
  weir::detail::List<Stalled> stalled_;
  std::array<std::shared_ptr<const TlsInfo>, 8> latest_infos_;  // which later connections share
  std::size_t next_info_ = 0;                                   // index of the oldest one
};

}  // namespace weir::tls::detail
