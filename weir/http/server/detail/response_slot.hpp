// The memory of the present response of a Call.
#pragma once

#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "weir/http/message/response.hpp"

namespace weir::http {

/// Holds the response to one request after another. A handler constructs its response in place,
/// because moving one costs more than most handlers do.
/// Threads: one at a time.
class ResponseSlot {
 public:
  ResponseSlot() noexcept {}
  ResponseSlot(const ResponseSlot&) = delete;
  ResponseSlot& operator=(const ResponseSlot&) = delete;
  ~ResponseSlot() { clear(); }

  /// Replaces the response by the result of `make()`. The slot is empty if `make()` throws.
  template <class Make>
  void fill(const Make& make) {
    clear();
    ::new (static_cast<void*>(&response_)) Response(make());
    full_ = true;
  }
  void clear() noexcept {
    if (std::exchange(full_, false)) std::destroy_at(&response_);
  }
  bool empty() const noexcept { return !full_; }

  bool full() const noexcept { return full_; }
  Response& operator*() noexcept {
    assert(full_);
    return response_;
  }
  const Response& operator*() const noexcept {
    assert(full_);
    return response_;
  }
  Response* operator->() noexcept { return &**this; }
  const Response* operator->() const noexcept { return &**this; }

 private:
  union {
    Response response_;
  };
  bool full_ = false;
};

}  // namespace weir::http
