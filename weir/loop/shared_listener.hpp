// One Unix socket on which several loops listen.
#pragma once

#include <utility>

#include "weir/base/result.hpp"
#include "weir/loop/host.hpp"

namespace weir {

/// A path can be bound but once, so the loops of a group share one listening socket instead of
/// having one each. Whoever listens through it holds a pointer; the last one to let go closes the
/// socket, and removes its file if that is still there and ours.
/// Threads: any. Lifetime: not longer than the host.
class SharedListener {
 public:
  /// `own` is a descriptor of the socket that no loop uses.
  SharedListener(Host& host, Descriptor own, const os::Address& bound) noexcept
      : host_(host), own_(std::move(own)), bound_(bound) {}
  ~SharedListener() { host_.remove_local_path(bound_); }
  SharedListener(const SharedListener&) = delete;
  SharedListener& operator=(const SharedListener&) = delete;

  /// A listening descriptor for one more loop. Errors: those of Host::share().
  Result<Descriptor> share() { return host_.share(own_.value()); }

 private:
  Host& host_;
  Descriptor own_;  // open while any loop listens, whichever closes first
  os::Address bound_;
};

}  // namespace weir
