// The descriptors of one simulated host: small numbers for what it has open, the lowest free one
// first.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/memory/detail/memory_file.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

/// Threads: one.
class MemoryDescriptors {
 public:
  explicit MemoryDescriptors(std::size_t open_max) noexcept : open_max_(open_max) {}

  bool full() const noexcept { return open_ >= open_max_; }
  std::size_t open() const noexcept { return open_; }
  std::size_t open_max() const noexcept { return open_max_; }
  /// The limit from now on; more may be open already.
  void set_open_max(std::size_t count) noexcept { open_max_ = count; }

  /// Errors: EMFILE; `endpoint` is closed then.
  Result<int> add(std::shared_ptr<MemoryEndpoint> endpoint);
  /// What `descriptor`, which is open, is: for another process of the machine.
  std::shared_ptr<MemoryEndpoint> share(int descriptor) const;
  /// Another number for what `descriptor` is. Errors: EBADF, EMFILE.
  Result<int> duplicate(int descriptor);
  /// nullptr: not open.
  MemoryEndpoint* find(int descriptor) const noexcept;
  /// The stream, or nullptr when it is something else or not open.
  MemoryStream* stream(int descriptor) const noexcept;
  MemoryListener* listener(int descriptor) const noexcept;
  MemoryOpenFile* file(int descriptor) const noexcept;
  MemoryDatagramSocket* datagrams(int descriptor) const noexcept;
  /// Calls `look(MemoryStream&)` for each open stream, by its number.
  template <class Look>
  void each_stream(Look look) const {
    for (const auto& each : endpoints_) {
      const bool right = each != nullptr && each->kind() == MemoryEndpoint::Kind::stream;
      if (right) look(static_cast<MemoryStream&>(*each));
    }
  }
  bool listens() const;
  /// What the death of their process does to them; they are still to be closed.
  void die();
  /// Closing what is not open is a mistake in the caller (asserted).
  void close(int descriptor) noexcept;

 private:
  std::size_t open_max_;
  std::size_t open_ = 0;
  std::vector<std::shared_ptr<MemoryEndpoint>> endpoints_;  // by number
  std::priority_queue<int, std::vector<int>, std::greater<>> free_;
};

}  // namespace weir
