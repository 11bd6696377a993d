// What belongs to a loop and was let go on another thread comes home to be destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/timers.hpp"

namespace weir {

class Loop;

/// Where a loop gets back what others have let go. Each thing that may come back keeps it alive,
/// so that a thing may also outlive the loop: then it is destroyed wherever it is let go.
/// Threads: any, but for close() and what the bell runs.
class Homecoming {
 public:
  /// A thing that shall be destroyed at home.
  class Guest {
   public:
    /// Ends its life, memory included.
    using Destroy = void (*)(Guest&) noexcept;
    Guest(Homecoming& home, Destroy destroy) noexcept : home_(home), destroy_(destroy) {
      home.keep();
    }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    /// Destroys it: now, when its loop is the one in whose turn this thread is, or has gone; else
    /// as soon as that loop comes to it. Once, on any thread.
    void let_go() noexcept;

   protected:
    ~Guest() { home_.release(); }

   private:
    friend class Homecoming;
    Homecoming& home_;
    Destroy destroy_;
    Guest* next_ = nullptr;
  };

  /// The loop's own share of it ends with close().
  static Homecoming& of(Loop& loop) { return *new Homecoming(loop); }

  /// On the loop's thread, or after its run: destroys what has come back; nothing comes any more.
  void close() noexcept;

 private:
  /// A turn destroys at most so many.
  static constexpr unsigned guests_per_turn = 1024;

  explicit Homecoming(Loop& loop) noexcept : loop_(loop) {}
  ~Homecoming() = default;
  void keep() noexcept;
  void release() noexcept;
  bool push(Guest& guest) noexcept;
  void ring() noexcept;
  void take_returned(Guest* newest) noexcept;
  void receive() noexcept;

  struct Bell : Runnable {
    explicit Bell(Homecoming& of) noexcept
        : Runnable([](Runnable& self) { static_cast<Bell&>(self).home.receive(); }), home(of) {}
    Homecoming& home;
  };
  /// Rings for the next turn, when this one is over.
  struct TurnEnd : Timer {
    explicit TurnEnd(Homecoming& of) noexcept
        : Timer([](Timer& self) { static_cast<TurnEnd&>(self).home.ring(); }), home(of) {}
    Homecoming& home;
  };

  Loop& loop_;                             // until close()
  std::atomic<std::size_t> keepers_{1};    // the loop and the guests
  std::atomic<Guest*> returned_{nullptr};  // newest first
  std::atomic<bool> rung_{false};          // the bell is in the inbox, or about to be
  std::atomic<std::size_t> visitors_{0};   // foreign threads that may yet touch the loop
  Guest* first_ = nullptr;                 // the loop's own: taken and not yet destroyed
  Guest* last_ = nullptr;
  std::uint64_t turn_ = UINT64_MAX;  // the loop's, in which the bell came last
  unsigned left_ = 0;                // to be destroyed in that turn
  Bell bell_{*this};
  TurnEnd turn_end_{*this};
};

}  // namespace weir
