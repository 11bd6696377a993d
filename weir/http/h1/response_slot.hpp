// The place of a connection's present response.
#pragma once

#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "weir/http/message/response.hpp"

namespace weir::http {

/// Holds the response to one request after the other. A handler makes its response right here:
/// moving one costs more than most handlers do. Threads: one at a time.
class ResponseSlot {
 public:
  ResponseSlot() noexcept {}
  ResponseSlot(const ResponseSlot&) = delete;
  ResponseSlot& operator=(const ResponseSlot&) = delete;
  ~ResponseSlot() { clear(); }

  /// Replaces the response by what `make()` returns. When it throws, there is none.
  template <class Make>
  void fill(const Make& make) {
    clear();
    ::new (static_cast<void*>(&response_)) Response(make());
    full_ = true;
  }
  void clear() noexcept {
    if (std::exchange(full_, false)) std::destroy_at(&response_);
  }

  Response* operator->() noexcept { return &value(); }
  const Response* operator->() const noexcept { return &value(); }

 private:
  Response& value() noexcept {
    assert(full_);
    return response_;
  }
  const Response& value() const noexcept {
    assert(full_);
    return response_;
  }

  union {
    Response response_;
  };
  bool full_ = false;
};

}  // namespace weir::http
