// The buffer ring of an io_uring backend.
#include "weir/loop/detail/uring/socket.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <utility>

namespace weir::loop::uring {

Result<> Buffers::open(io_uring& ring) {
  void* memory =
      ::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(system_error(errno));
  ring_ = static_cast<io_uring_buf_ring*>(memory);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(memory);
  registration.ring_entries = count;
  registration.bgid = group;
  const int registered = io_uring_register_buf_ring(&ring, &registration, 0);
  if (registered == -EINVAL) return fail(Errc::unsupported);
  if (registered < 0) return fail(system_error(-registered));
  io_uring_buf_ring_init(ring_);
  missing_.resize(count);
  taken_.reserve(count);
  for (unsigned id = 0; id < count; ++id) missing_[id] = static_cast<std::uint16_t>(id);
  return {};
}

Buffers::~Buffers() {
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes);
}

bool Buffers::fill() noexcept {
  while (!missing_.empty() && replace(missing_.back())) missing_.pop_back();
  return missing_.size() < count;
}

Buffer Buffers::take(std::uint16_t id, std::size_t size) noexcept {
  Buffer taken = std::move(buffers_[id]);
  taken.commit(size);
  taken_.push_back(id);  // never allocates: the capacity is for all buffers
  return taken;
}

void Buffers::replace_taken() noexcept {
  for (const std::uint16_t id : taken_) {
    if (!replace(id)) missing_.push_back(id);  // never allocates either
  }
  taken_.clear();
}

Bytes Buffers::peek(std::uint16_t id, std::size_t size) noexcept {
  return buffers_[id].room().first(size);
}

bool Buffers::replace(std::uint16_t id) noexcept {
  try {
    buffers_[id] = Buffer::with_capacity();
  } catch (const std::bad_alloc&) {
    return false;
  }
  provide(id);
  return true;
}

void Buffers::provide(std::uint16_t id) noexcept {
  const MutableBytes room = buffers_[id].room();
  io_uring_buf_ring_add(ring_, room.data(), static_cast<unsigned>(room.size()), id,
                        io_uring_buf_ring_mask(count), 0);
  io_uring_buf_ring_advance(ring_, 1);
}

}  // namespace weir::loop::uring
