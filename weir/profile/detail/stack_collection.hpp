// The stacks of a profile: collected from samples, and named afterwards.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/profiler.hpp"

namespace weir::profile {

/// The facts that all samples of one kind have in common.
struct Stack {
  std::size_t core = 0;                        ///< loop::CpuSample::no_core: no loop
  std::string thread = {};                     ///< name of a thread that has no loop
  std::string route = {};                      ///< "GET /users/{id}"; empty: no request
  std::uintptr_t activity = 0;                 ///< see loop::CpuSample; 0: none
  std::vector<std::uintptr_t> addresses = {};  ///< innermost first; each lies in its function

  auto operator<=>(const Stack&) const = default;
};

/// Adds up samples. Its memory is bounded; samples of further stacks are counted as dropped.
/// Threads: one at a time.
class StackCollection {
 public:
  /// The limit of all addresses together: 32 MiB.
  static constexpr std::size_t addresses_max = std::size_t{1} << 22;

  /// Samples of other routes are left out unless `route` is empty. It is a pattern, with or without
  /// a method before it.
  explicit StackCollection(std::string_view route = {}) : only_route_(route) {}

  void add(const loop::CpuSample& sample, std::string_view route);

  const std::map<Stack, std::uint64_t>& stacks() const noexcept { return stacks_; }
  /// Removes and returns all stacks.
  std::map<Stack, std::uint64_t> take_stacks() noexcept {
    addresses_ = 0;
    return std::exchange(stacks_, {});
  }
  /// Frees some stacks, which takes a bounded time.
  /// Returns: true if some are left.
  bool free_some() noexcept;
  /// Returns the number of dropped samples.
  std::uint64_t dropped() const noexcept { return dropped_; }
  /// Returns all addresses of the stacks and their activities, sorted, each once.
  std::vector<std::uintptr_t> addresses() const;

 private:
  bool is_wanted(std::string_view route) const noexcept;

  std::string only_route_;
  std::map<Stack, std::uint64_t> stacks_;  // with the sum of the weights
  std::size_t addresses_ = 0;
  std::uint64_t dropped_ = 0;
};

/// A whole profile, with names.
struct Profile {
  std::map<Stack, std::uint64_t> stacks;
  std::vector<std::uintptr_t> addresses;  ///< of all stacks and activities, sorted
  os::Symbols symbols;                    ///< of the addresses
  unsigned hertz = 99;
  WallTime started = {};
  Duration length = {};
  std::uint64_t dropped = 0;

  /// Returns the name of one of the addresses.
  const os::AddressName& name_of(std::uintptr_t address) const noexcept {
    return symbols.names[index_of(address)];
  }
  std::size_t index_of(std::uintptr_t address) const noexcept;
  /// Returns the CPU time of a weight of 1.
  Duration period() const noexcept { return std::chrono::nanoseconds(1'000'000'000 / hertz); }
  /// Returns the sum of the weights of all stacks.
  std::uint64_t weight() const noexcept;
};

}  // namespace weir::profile
