// CoreDemands: the memory and the descriptors that handlers and middleware take on a core.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace weir {
class Loop;
}

namespace weir::http {

/// CoreDemands are what a handler or a middleware takes on one core, apart from the requests
/// themselves. A handler or middleware declares them by a member function, `CoreDemands
/// demands(Loop& loop) const`. A server calls this function on each of its cores before it listens.
/// It adds the results to what it asks of its machine. A lambda around the object hides the
/// function.
struct CoreDemands {
  /// Identity of the shared resource. Of the demands with the same owner, only the largest counts.
  const void* owner = nullptr;
  std::uint64_t request_bytes = 0;  ///< memory of one request
  std::uint64_t body_max = 0;       ///< largest body that it lets a handler collect
  std::uint64_t core_bytes = 0;     ///< memory of all requests of the core together
  std::size_t descriptors = 0;      ///< descriptors of all requests of the core together
};

namespace detail {

template <class F>
concept HasCoreDemands = requires(const F& object, Loop& loop) {
  { object.demands(loop) } -> std::same_as<CoreDemands>;
};

/// The type-erased function demands() of an object; nullptr: the object has none.
using CoreDemandsOf = CoreDemands (*)(const void* object, Loop& loop);

template <class F>
constexpr CoreDemandsOf core_demands_of() noexcept {
  if constexpr (HasCoreDemands<F>) {
    return
        [](const void* object, Loop& loop) { return static_cast<const F*>(object)->demands(loop); };
  } else {
    return nullptr;
  }
}

}  // namespace detail
}  // namespace weir::http
