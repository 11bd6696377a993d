// The ring of a broadcast: its kept values, the positions of its readers, and the waiting
// readers.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/runtime/messaging/detail/selectable.hpp"
#include "weir/runtime/messaging/overflow_policy.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir::detail {

class BroadcastReader;
class BroadcastWaiter;

/// The number of values that the subscribers of broadcasts on one core missed. The thread of the
/// loop counts them. BroadcastReader::missed() has the number of one subscriber.
struct MissedValues {
  /// Returns the count of the core of `loop`.
  /// Threads: any.
  static MissedValues& of(Loop& loop) { return loop.slots().get<MissedValues>(); }
  detail::Counter count;
};

/// A BroadcastRing keeps the last values under one mutex. No value is created, copied or
/// destroyed, no memory is allocated and no loop is woken while the mutex is held.
/// Threads: any.
class BroadcastRing {
 public:
  using Value = std::shared_ptr<const void>;

  explicit BroadcastRing(const BroadcastOptions& options);
  BroadcastRing(const BroadcastRing&) = delete;
  BroadcastRing& operator=(const BroadcastRing&) = delete;
  ~BroadcastRing();

  /// Stores a value and wakes the waiting readers.
  /// Errors: Errc::closed.
  Result<> publish(Value value);
  /// Does what publish() does if there are no readers.
  /// Errors: Errc::closed.
  Result<> publish_without_readers() const;
  void close();
  /// relaxed: a publisher sees every reader that subscribed before, through the synchronization
  /// that made it "before". Subscriptions at the same time may or may not be visible.
  std::size_t readers() const noexcept { return readers_.load(std::memory_order_relaxed); }
  std::size_t capacity() const noexcept { return values_.size(); }

 private:
  friend class BroadcastReader;
  friend class BroadcastWaiter;
  void take_waiting(loop::RunQueue& woken) noexcept;
  static void resume_on_owner(loop::RunQueue& woken) noexcept;
  void add_reader() noexcept { readers_.store(readers() + 1, std::memory_order_relaxed); }
  void remove_reader() noexcept { readers_.store(readers() - 1, std::memory_order_relaxed); }
  void clear_unread() noexcept;

  const SlowReaderPolicy slow_reader_policy_;
  mutable std::mutex mutex_;   // guards the members below and the positions of the readers
  std::vector<Value> values_;  // value number n is at index n % size
  std::uint64_t next_ = 0;     // number of the next value
  bool closed_ = false;
  std::atomic<std::size_t> readers_{0};  // written under the mutex
  detail::List<BroadcastWaiter> waiting_;
};

/// A BroadcastReader is one subscription.
/// Threads: its loop's.
class BroadcastReader {
 public:
  explicit BroadcastReader(BroadcastRing& ring);
  BroadcastReader(BroadcastReader&& other) noexcept;
  BroadcastReader& operator=(BroadcastReader&& other) noexcept {
    BroadcastReader moved(std::move(other));
    std::swap(ring_, moved.ring_);
    std::swap(position_, moved.position_);
    return *this;
  }
  ~BroadcastReader() { unsubscribe(); }

  std::uint64_t missed() const noexcept { return position_.missed; }

  /// Result of a read: a value, an error, or nothing if there is nothing yet.
  struct ReadResult {
    bool has_result = false;
    BroadcastRing::Value value;
    std::error_code error;
  };
  enum class Mode : bool { take, peek };
  /// Takes the next value or, with Mode::peek, only checks if there is one. If there is nothing
  /// yet and `waiter` is not nullptr, `waiter` joins the list of waiting readers.
  ReadResult next(Mode mode, BroadcastWaiter* waiter);

 private:
  friend class BroadcastWaiter;
  /// Number of values without a wait after which the loop takes a turn.
  static constexpr unsigned streak_max = 256;

  ReadResult peek_locked() const;
  ReadResult take_locked();
  void unsubscribe() noexcept;

  struct Position {
    std::uint64_t next = 0;  // number of the value that it takes next
    std::uint64_t missed = 0;
    unsigned streak = 0;
    bool disconnected = false;
    bool waiting = false;  // for assertions
  };
  BroadcastRing* ring_;  // nullptr: moved from
  Position position_;
};

/// A BroadcastWaiter is a waiting reader, in the frame of its coroutine. A publisher takes it off
/// the list and posts it to its owner loop; only that loop resumes it.
/// Threads: its loop's, except for what the ring's mutex guards.
class BroadcastWaiter : protected loop::Runnable, public detail::ListNode {
 protected:
  BroadcastWaiter(BroadcastReader& reader, loop::Runnable::Function run) noexcept
      : loop::Runnable(run), reader_(reader) {}
  ~BroadcastWaiter() { assert(!linked()); }

  /// Reads, and joins the list if there is nothing yet and `waits` is true. A reader that has taken
  /// many values without a wait waits for the end of the turn. Returns false if it does not wait.
  bool start(Loop& loop, BroadcastReader::Mode mode, bool waits);
  /// Returns true if start() would not wait.
  bool poll() noexcept;
  /// Reads without waiting, and adds missed values to the counter of the loop.
  BroadcastReader::ReadResult read(Loop& loop, BroadcastReader::Mode mode,
                                   BroadcastWaiter* waiter = nullptr);
  /// Leaves the list. Returns false if a publisher has posted it, so that it is about to run.
  bool withdraw() noexcept;
  /// Ends the wait that start() began.
  void end_wait() noexcept { reader_.position_.waiting = false; }
  BroadcastReader& reader() const noexcept { return reader_; }
  Loop& loop() const noexcept { return *loop_; }

  BroadcastReader::ReadResult taken_;

 private:
  friend class BroadcastRing;
  friend class BroadcastReader;
  struct EndOfTurn : loop::Timer {
    explicit EndOfTurn(BroadcastWaiter& of) noexcept : loop::Timer(&on_turn_end), waiter(of) {}
    static void on_turn_end(loop::Timer& timer);
    BroadcastWaiter& waiter;
  };

  BroadcastReader& reader_;
  Loop* loop_ = nullptr;
  EndOfTurn end_of_turn_{*this};
};

/// A BroadcastAwaiter is the waiting reader of a task that waits for nothing else.
class BroadcastAwaiter : BroadcastWaiter {
 public:
  BroadcastAwaiter(BroadcastReader& reader, BroadcastReader::Mode mode) noexcept
      : BroadcastWaiter(reader, &run), mode_(mode) {}

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }

 protected:
  /// Returns the value or the error. Called once.
  Result<BroadcastRing::Value> take() noexcept {
    if (taken_.error) return fail(taken_.error);
    return std::move(taken_.value);
  }

 private:
  /// A separate node, because the awaiter itself is linked in the ring's list.
  struct CancelHook : CancelNode {
    explicit CancelHook(BroadcastAwaiter& of) noexcept : CancelNode(receive_kind), awaiter(of) {}
    static void on_cancel(CancelNode& node);
    static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
      return static_cast<const CancelHook&>(node).awaiter.handle_;
    }
    static constexpr Kind receive_kind{&on_cancel, "Broadcast::receive", &coroutine_of};
    BroadcastAwaiter& awaiter;
  };
  bool begin(const Context& context);
  static void run(loop::Runnable& self);

  const BroadcastReader::Mode mode_;
  std::coroutine_handle<> handle_;
  CancelHook cancel_hook_{*this};
};

/// A BroadcastWait is the waiting reader as a case of a select(). It takes nothing before it is
/// chosen.
class BroadcastWait : public Wait, BroadcastWaiter {
 public:
  BroadcastWait(BroadcastWait&& other) noexcept : BroadcastWait(other.reader()) {}
  bool ready() noexcept { return poll(); }
  bool begin(Loop& loop) { return start(loop, BroadcastReader::Mode::peek, true); }
  bool withdraw() noexcept {
    withdrawn_ = !BroadcastWaiter::withdraw();
    if (!withdrawn_) end_wait();
    return !withdrawn_;
  }

 protected:
  explicit BroadcastWait(BroadcastReader& reader) noexcept : BroadcastWaiter(reader, &run) {}
  ~BroadcastWait() = default;
  /// Returns the value or the error. Called once.
  Result<BroadcastRing::Value> take(BroadcastReader::Mode mode);

 private:
  static void run(loop::Runnable& self);

  bool withdrawn_ = false;  // true if it has lost but still has to run
};

/// A BroadcastReadableAwaiter waits as a reader but takes nothing.
class BroadcastReadableAwaiter final : public BroadcastAwaiter {
 public:
  explicit BroadcastReadableAwaiter(BroadcastReader& reader) noexcept
      : BroadcastAwaiter(reader, BroadcastReader::Mode::peek) {}
  Result<> await_resume() noexcept {
    WEIR_TRY(take());
    return {};
  }
};

/// A BroadcastReadableWait is readable() as a case of a select().
class BroadcastReadableWait final : public BroadcastWait {
 public:
  using Value = Result<>;
  explicit BroadcastReadableWait(BroadcastReader& reader) noexcept : BroadcastWait(reader) {}
  Value value() {
    WEIR_TRY(take(BroadcastReader::Mode::peek));
    return {};
  }
};

/// A BroadcastReadable is the awaitable of Broadcast::Subscription::readable().
using BroadcastReadable =
    Selectable<BroadcastReader, BroadcastReadableAwaiter, BroadcastReadableWait>;

}  // namespace weir::detail
