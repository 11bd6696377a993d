#include "weir/runtime/restart.hpp"

#include <algorithm>
#include <utility>

#include "weir/runtime/detail/core.hpp"
#include "weir/loop/shared_listener.hpp"

namespace weir {

std::string Runtime::Restart::begin() {
  if (runtime_.options_.takeover) {
    auto begun = runtime_.host_.begin_handover(*runtime_.options_.takeover);
    if (!begun.handover) return begun.failure;
    handover_ = std::move(begun.handover);
    sockets_ = handover_->take_sockets();
    taking_over_ = !sockets_.empty();
    if (taking_over_) {
      log("taking over " + std::to_string(sockets_.size()) +
          (sockets_.size() == 1 ? " socket" : " sockets") + " from an older process");
    }
  }
  if (runtime_.seat_ != nullptr) sit_down(*runtime_.seat_);
  return inherit();
}

/// A worker's sockets are its own, but outlive it.
void Runtime::Restart::sit_down(WorkerSeat& seat) {
  for (WorkerSeat::Socket& each : seat.take_sockets()) {
    auto listener =
        std::make_shared<SharedListener>(runtime_.host_, std::move(each.descriptor), each.bound);
    listener->set_held();
    sockets_.push_back(std::move(listener));
  }
}

void Runtime::Restart::keep_for_good() {
  for (const auto& each : runtime_.group_->listeners()) each->set_goes_on(false);
}

/// Those that an older process has given too are the same, and are known already.
std::string Runtime::Restart::inherit() {
  Host& host = runtime_.host_;
  const Sockets taken = sockets_;
  for (const InheritedSocket& each : runtime_.options_.inherited) {
    const auto cannot = [&](std::error_code error) {
      return "the inherited socket " + std::to_string(each.descriptor) + " (" + each.name +
             ") cannot be used: " + error.message();
    };
    auto own = host.share(each.descriptor);
    if (!own) return cannot(own.error());
    auto inherited = host.inherit_listener(own->release());
    if (!inherited) return cannot(inherited.error());
    const auto bound = host.local_address(inherited->value());
    if (!bound) return cannot(bound.error());
    if (std::ranges::any_of(taken, [&](const auto& one) { return one->bound() == *bound; })) {
      continue;
    }
    auto listener = std::make_shared<SharedListener>(host, std::move(*inherited), *bound);
    listener->set_held();
    sockets_.push_back(std::move(listener));
  }
  return {};
}

void Runtime::Restart::prepare(LoopGroup& group) {
  if (handover_ != nullptr) {
    group.keep_listeners();
    group.on_accepting = [this] { handover_->accepting(); };
    group.on_stopped = [this] { handover_->stopped_one(); };
  }
  group.inherit(std::exchange(sockets_, {}));
  if (runtime_.seat_ != nullptr) group.share_ports();
}

Result<> Runtime::Restart::start() {
  return handover_ != nullptr ? handover_->start(*this) : Result<>();
}

bool Runtime::Restart::stop() noexcept {
  if (handover_ != nullptr) handover_->stop();
  return !word_awaited_;
}

bool Runtime::Restart::postpones_drain() {
  const std::lock_guard lock(mutex_);
  return newer_is_here_ && !std::exchange(drain_postponed_, true);
}

HandoverParty::Sockets Runtime::Restart::offer() {
  {
    const std::lock_guard lock(mutex_);
    newer_is_here_ = true;
  }
  return runtime_.group_->listeners();
}

/// With the mutex: a drain that has begun turns newcomers away, one that begins later does not.
bool Runtime::Restart::agree(const Sockets& sockets) {
  const std::lock_guard lock(runtime_.mutex_);
  if (runtime_.asked_to_drain_.load(std::memory_order_relaxed)) return false;
  for (const auto& each : sockets) each->set_goes_on(true);
  return true;
}

void Runtime::Restart::kept(const Sockets& sockets) {
  for (const auto& each : sockets) each->set_goes_on(each->held());
  bool drain = false;
  {
    const std::lock_guard lock(mutex_);
    newer_is_here_ = false;
    drain = std::exchange(drain_postponed_, false);
  }
  if (drain) runtime_.drain();
}

void Runtime::Restart::handed_over() {
  log("a newer process has taken over: draining");
  runtime_.drain();
}

std::string Runtime::Restart::awaited() {
  return runtime_.group_->awaited();
}

bool Runtime::Restart::ready() {
  const std::lock_guard lock(runtime_.mutex_);
  // relaxed: under the mutex, like every store to it.
  word_awaited_ = !runtime_.asked_to_drain_.load(std::memory_order_relaxed);
  return word_awaited_;
}

void Runtime::Restart::owned() {
  bool drain = false;
  {
    const std::lock_guard lock(runtime_.mutex_);
    for (const auto& each : runtime_.group_->listeners()) {
      if (each->awaited()) each->set_goes_on(each->held());
    }
    word_awaited_ = false;
    drain = runtime_.asked_to_drain_.load(std::memory_order_relaxed);
  }
  if (drain) runtime_.drain();
}

void Runtime::Restart::taken_over() {
  log("taken over: this process accepts");
  for (const auto& core : runtime_.cores_) core->ask_to_admit();
}

void Runtime::Restart::not_taken_over(std::string why) {
  {
    const std::lock_guard lock(runtime_.mutex_);
    word_awaited_ = false;
  }
  runtime_.core_failed(std::move(why));
}

}  // namespace weir
