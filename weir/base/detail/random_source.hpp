// The source of random numbers of a simulation, for libraries that have a generator of their own.
#pragma once

#include <cstdint>

namespace weir::detail {

/// A RandomSource replaces the generators of libraries, such as that of OpenSSL, on the threads of
/// a simulation. A seed then determines their numbers too.
/// Threads: one at a time.
class RandomSource {
 public:
  /// Makes a source the current one of the calling thread while it exists.
  class Use {
   public:
    explicit Use(RandomSource& source) noexcept : source_(source), previous_(newest_) {
      newest_ = this;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Later uses of the thread may still exist.
    ~Use() {
      Use** link = &newest_;
      while (*link != this) link = &(*link)->previous_;
      *link = previous_;
    }

   private:
    friend RandomSource;
    static constinit inline thread_local Use* newest_ = nullptr;

    RandomSource& source_;
    Use* previous_;
  };

  virtual std::uint64_t random() noexcept = 0;
  /// Returns the current source of the calling thread; nullptr: none, so that the libraries use
  /// their own generators.
  static RandomSource* current() noexcept {
    return Use::newest_ == nullptr ? nullptr : &Use::newest_->source_;
  }

 protected:
  ~RandomSource() = default;
};

}  // namespace weir::detail
