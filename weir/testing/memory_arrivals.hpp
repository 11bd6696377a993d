// What is on its way to one end of a simulated connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <system_error>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/testing/network/detail/link_model.hpp"

namespace weir {

/// Bytes, the end of the stream, or a reset.
struct MemoryParcel {
  enum class What : std::uint8_t { bytes, end, reset };
  What what = What::bytes;
  std::vector<std::byte> bytes = {};
  std::error_code error = {};  ///< of a reset
  Instant arrives{};
};

/// Parcels arrive in the order in which they were sent, each after the delay of the path. While
/// the path is shut they are sent again and again, each time twice as late, until that is given up.
/// Threads: one.
class MemoryArrivals {
 public:
  /// Who gets them.
  class Receiver {
   public:
    virtual void arrived(MemoryParcel& parcel) = 0;
    /// Nothing more comes: the other side has given up.
    virtual void lost() = 0;

   protected:
    ~Receiver() = default;
  };

  /// Without a path parcels arrive at once.
  explicit MemoryArrivals(Receiver& receiver) noexcept : receiver_(receiver) {}
  MemoryArrivals(const MemoryArrivals&) = delete;
  MemoryArrivals& operator=(const MemoryArrivals&) = delete;
  ~MemoryArrivals() { clear(); }

  void set_path(MemoryPath* path) noexcept { path_ = path; }
  bool at_once() const noexcept { return path_ == nullptr; }
  /// Some of `bytes`, in several parcels perhaps.
  void send(Bytes bytes);
  void send(MemoryParcel parcel);
  /// Nothing that is sent from now on arrives before.
  void hold_until(Instant moment) noexcept { held_until_ = moment; }
  void clear() noexcept;

  /// Bytes on their way.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void call_at(Instant moment);
  void deliver();
  void try_again();

  Receiver& receiver_;
  MemoryPath* path_ = nullptr;
  std::deque<MemoryParcel> coming_;
  std::size_t bytes_ = 0;
  unsigned tries_ = 0;
  Instant held_until_ = Instant::min();
  std::optional<MemoryClock::EventId> next_;
};

}  // namespace weir
