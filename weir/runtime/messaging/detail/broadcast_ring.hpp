// What a broadcast keeps, how far each of its readers is, and who waits for more.
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
#include "weir/runtime/broadcast_options.hpp"
#include "weir/task/context.hpp"

namespace weir::detail {

class BroadcastReader;
class BroadcastWait;

/// The last values, under one mutex: no value is made, copied or destroyed while it is held, no
/// memory taken and no loop woken. Threads: any.
class BroadcastRing {
 public:
  using Value = std::shared_ptr<const void>;

  explicit BroadcastRing(const BroadcastOptions& options);
  BroadcastRing(const BroadcastRing&) = delete;
  BroadcastRing& operator=(const BroadcastRing&) = delete;
  ~BroadcastRing();

  /// Errors: Errc::closed.
  Result<> publish(Value value);
  /// What publish() does when there are no readers. Errors: Errc::closed.
  Result<> publish_to_nobody() const;
  void close();
  /// relaxed: whoever publishes sees all who came before, by whatever has made that "before"; of
  /// those who come at the same time it may see any.
  std::size_t readers() const noexcept { return readers_.load(std::memory_order_relaxed); }
  std::size_t capacity() const noexcept { return kept_.size(); }

 private:
  friend class BroadcastReader;
  friend class BroadcastWait;
  void take_waiting(RunQueue& woken) noexcept;
  static void send_home(RunQueue& woken) noexcept;
  void add_reader() noexcept { readers_.store(readers() + 1, std::memory_order_relaxed); }
  void remove_reader() noexcept { readers_.store(readers() - 1, std::memory_order_relaxed); }
  void forget_unread() noexcept;

  const WhenSlow when_slow_;
  mutable std::mutex mutex_;  // guards all that follows, and what readers say is guarded by it
  std::vector<Value> kept_;   // value number n is at n % size
  std::uint64_t next_ = 0;    // the number of the next value
  bool closed_ = false;
  std::atomic<std::size_t> readers_{0};  // written under the mutex
  List<BroadcastWait> waiting_;
};

/// One subscription. Threads: its loop's.
class BroadcastReader {
 public:
  explicit BroadcastReader(BroadcastRing& ring);
  BroadcastReader(BroadcastReader&& other) noexcept;
  BroadcastReader& operator=(BroadcastReader&& other) noexcept {
    BroadcastReader moved(std::move(other));
    std::swap(ring_, moved.ring_);
    std::swap(place_, moved.place_);
    return *this;
  }
  ~BroadcastReader() { leave(); }

  std::uint64_t missed() const noexcept { return place_.missed; }

  /// Nothing, when there is nothing yet; else a value, or why there will be none.
  struct Taken {
    bool anything = false;
    BroadcastRing::Value value;
    std::error_code error;
  };
  enum class Mode : bool { take, look };
  /// Takes the next value, or only looks whether there is one; when there is nothing yet, lets
  /// `wait` wait, if any.
  Taken next(Mode mode, BroadcastWait* wait);

 private:
  friend class BroadcastWait;
  /// After so many values without a wait the loop takes a turn.
  static constexpr unsigned streak_max = 256;

  Taken look_locked() const;
  Taken take_locked();
  void leave() noexcept;

  struct Place {
    std::uint64_t next = 0;  // the number of the value that it takes next
    std::uint64_t missed = 0;
    unsigned streak = 0;
    bool expelled = false;
    bool waits = false;  // for assertions
  };
  BroadcastRing* ring_;  // nullptr: moved from
  Place place_;
};

/// A reader while it waits, in the frame of its coroutine. Threads: its loop's, but what the mutex
/// guards. Whoever publishes takes it off the list and posts it home; only the home loop resumes
/// it.
class BroadcastWait : Runnable, public ListNode {
 public:
  BroadcastWait(BroadcastReader& reader, BroadcastReader::Mode mode) noexcept
      : Runnable(&run), reader_(reader), mode_(mode) {}
  ~BroadcastWait() { assert(!linked()); }

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }

 protected:
  /// What it was given. Once.
  Result<BroadcastRing::Value> take() noexcept {
    if (taken_.error) return fail(taken_.error);
    return std::move(taken_.value);
  }

 private:
  friend class BroadcastRing;
  friend class BroadcastReader;
  /// Its own, since it is in the ring's list as itself.
  struct Cancelling : CancelNode {
    explicit Cancelling(BroadcastWait& of) noexcept : CancelNode(&ask), wait(of) {}
    static void ask(CancelNode& node);
    BroadcastWait& wait;
  };
  struct EndOfTurn : Timer {
    explicit EndOfTurn(BroadcastWait& of) noexcept : Timer(&has_come), wait(of) {}
    static void has_come(Timer& timer);
    BroadcastWait& wait;
  };
  bool begin(const Context& context);
  BroadcastReader::Taken look(BroadcastWait* wait);
  static void run(Runnable& self);

  BroadcastReader& reader_;
  const BroadcastReader::Mode mode_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  BroadcastReader::Taken taken_;
  Cancelling cancelling_{*this};
  EndOfTurn end_of_turn_{*this};
};

/// See Broadcast::Subscription::arrival().
class [[nodiscard]] BroadcastArrival {
 public:
  explicit BroadcastArrival(BroadcastReader& reader) noexcept : reader_(&reader) {}

  class Awaiter final : public BroadcastWait {
   public:
    explicit Awaiter(BroadcastReader& reader) noexcept
        : BroadcastWait(reader, BroadcastReader::Mode::look) {}
    Result<> await_resume() noexcept {
      if (const auto seen = take(); !seen) return fail(seen.error());
      return {};
    }
  };
  Awaiter operator co_await() && noexcept { return Awaiter(*reader_); }

 private:
  BroadcastReader* reader_;
};

}  // namespace weir::detail
