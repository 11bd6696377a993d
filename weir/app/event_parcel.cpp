#include "weir/app/event_parcel.hpp"

#include <new>

#include "weir/base/detail/block_pool.hpp"

namespace weir::detail {

EventParcel* EventParcel::made(const EventType& type, std::size_t value_bytes, std::size_t links) {
  static_assert(sizeof(EventParcel) <= value_offset);
  static_assert(value_offset % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0);
  const std::size_t links_offset =
      (value_offset + value_bytes + alignof(Link) - 1) / alignof(Link) * alignof(Link);
  auto* const memory =
      static_cast<std::byte*>(BlockPool::allocate(links_offset + links * sizeof(Link)));
  auto* const parcel = ::new (memory) EventParcel(type);
  if (links != 0) {
    parcel->links_ = ::new (memory + links_offset) Link{nullptr, parcel};
    for (std::size_t each = 1; each < links; ++each) {
      ::new (memory + links_offset + each * sizeof(Link)) Link{nullptr, parcel};
    }
  }
  return parcel;
}

void EventParcel::let_go() noexcept {
  // acq_rel: who destroys the value has seen all others finish with it.
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (type_.destroy != nullptr) type_.destroy(value());
  std::destroy_at(this);
  BlockPool::release(this);
}

}  // namespace weir::detail
