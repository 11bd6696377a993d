// AnyStream: the owner of one stream of any class, without an allocation.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "weir/net/stream.hpp"

namespace weir {

/// An AnyStream owns a stream whose class is known at run time: a tcp::Stream or a layer above one.
/// The stream lies inside the object. A move from an AnyStream leaves a closed stream in it.
/// Threads: those of the stream.
/// Lifetime: that of the stream; no operation is pending when it is moved or destroyed (asserted).
class AnyStream {
 public:
  /// Largest size in bytes of a stream.
  static constexpr std::size_t size = 5 * sizeof(void*);

  template <std::derived_from<Stream> Concrete>
  AnyStream(Concrete stream) noexcept {
    static_assert(sizeof(Concrete) <= size && alignof(Concrete) <= alignof(void*));
    auto* const made = new (room_.data()) Concrete(std::move(stream));
    check(made);
  }
  AnyStream(AnyStream&& other) noexcept { check(other->move_to(room_.data())); }
  AnyStream& operator=(AnyStream&& other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(&**this);
    check(other->move_to(room_.data()));
    return *this;
  }
  ~AnyStream() { std::destroy_at(&**this); }

  Stream& operator*() noexcept { return *std::launder(reinterpret_cast<Stream*>(room_.data())); }
  const Stream& operator*() const noexcept {
    return *std::launder(reinterpret_cast<const Stream*>(room_.data()));
  }
  Stream* operator->() noexcept { return &**this; }
  const Stream* operator->() const noexcept { return &**this; }

 private:
  /// The functions above find the base of every class at the begin of the room.
  void check([[maybe_unused]] const Stream* made) const noexcept {
    assert(static_cast<const void*>(made) == room_.data());
  }

  std::array<void*, size / sizeof(void*)> room_;
};

/// A StreamLayer gives a stream above another stream access to the operations of the lower one. It
/// is a base of the object that owns both operations.
class StreamLayer {
 protected:
  StreamLayer() = default;
  ~StreamLayer() = default;

  /// Starts an operation with the contract of Backend::receive() and Backend::send(). No read or
  /// write of `inner` is pending.
  static bool start_receive(Stream& inner, loop::ReceiveOperation& operation) {
    return inner.start_receive(operation);
  }
  static bool start_send(Stream& inner, loop::SendOperation& operation) {
    return inner.start_send(operation);
  }
  static void cancel_operation(Stream& inner, loop::Operation& operation) {
    inner.cancel_operation(operation);
  }
  static std::size_t sent_of(const Stream& inner, const loop::SendOperation& operation) noexcept {
    return inner.sent_of(operation);
  }
};

}  // namespace weir
