#include "weir/runtime/detail/hot_restart.hpp"

#include <algorithm>
#include <utility>

#include "weir/loop/detail/handover_state.hpp"
#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/runtime/detail/core.hpp"

namespace weir {

std::string Runtime::HotRestart::begin() {
  if (runtime_.options_.hot_restart) {
    auto begun = runtime_.platform_.begin_handover(*runtime_.options_.hot_restart);
    if (!begun.handover) return begun.failure;
    handover_ = std::move(begun.handover);
    sockets_ = handover_->take_sockets();
    state_ = handover_->take_state();
    taking_over_ = !sockets_.empty();
    if (taking_over_) {
      log("hot restart: taking over " + std::to_string(sockets_.size()) +
          (sockets_.size() == 1 ? " socket" : " sockets") + " from an older process");
    }
  }
  if (runtime_.worker_ != nullptr) take_worker_sockets(*runtime_.worker_);
  return inherit();
}

/// Adopts the sockets of a worker, which stay open after its end.
void Runtime::HotRestart::take_worker_sockets(loop::WorkerHandle& worker) {
  for (loop::WorkerHandle::Socket& each : worker.take_sockets()) {
    auto listener = std::make_shared<loop::SharedListener>(runtime_.platform_,
                                                           std::move(each.descriptor), each.bound);
    listener->set_externally_owned();
    sockets_.push_back(std::move(listener));
  }
}

/// All workers share the socket of a Unix path. One that drains while the others serve leaves it to
/// them.
void Runtime::HotRestart::take_sole_ownership() {
  const loop::WorkerHandle* const worker = runtime_.worker_.get();
  const bool others_serve = worker != nullptr && worker->command() == loop::WorkerCommand::serve;
  for (const auto& each : runtime_.group_->listener_registry().listeners()) {
    if (others_serve && each->bound().family() == os::AddressFamily::local) continue;
    each->set_stays_open_elsewhere(false);
  }
}

/// Adopts inherited sockets, except for those that an older process has handed over already.
std::string Runtime::HotRestart::inherit() {
  loop::Platform& platform = runtime_.platform_;
  const Sockets taken = sockets_;
  for (const InheritedSocket& each : runtime_.options_.inherited) {
    const auto cannot = [&](std::error_code error) {
      return "the inherited socket " + std::to_string(each.descriptor) + " (" + each.name +
             ") cannot be used: " + error.message();
    };
    auto own = platform.share(each.descriptor);
    if (!own) return cannot(own.error());
    auto inherited = platform.inherit_listener(own->release());
    if (!inherited) return cannot(inherited.error());
    const auto bound = platform.local_address(inherited->value());
    if (!bound) return cannot(bound.error());
    if (std::ranges::any_of(taken, [&](const auto& one) { return one->bound() == *bound; })) {
      continue;
    }
    auto listener = std::make_shared<loop::SharedListener>(platform, std::move(*inherited), *bound);
    listener->set_externally_owned();
    sockets_.push_back(std::move(listener));
  }
  return {};
}

void Runtime::HotRestart::prepare(loop::LoopGroup& group) {
  loop::ListenerRegistry& registry = group.listener_registry();
  if (handover_ != nullptr) {
    registry.track_listeners();
    registry.on_accepting = [this] { handover_->on_accepting(); };
    registry.on_stopped = [this] { handover_->on_socket_stopped(); };
  }
  registry.inherit(std::exchange(sockets_, {}));
  group.slots().get<loop::HandoverState>().receive(std::exchange(state_, {}));
  if (runtime_.worker_ != nullptr) registry.share_ports();
}

Result<> Runtime::HotRestart::start() {
  return handover_ != nullptr ? handover_->start(*this) : Result<>();
}

bool Runtime::HotRestart::stop() noexcept {
  if (handover_ != nullptr) handover_->stop();
  return !decision_pending_;
}

bool Runtime::HotRestart::postpones_drain() {
  const std::lock_guard lock(mutex_);
  return newer_connected_ && !std::exchange(drain_postponed_, true);
}

loop::HandoverDelegate::Sockets Runtime::HotRestart::sockets_to_offer() {
  {
    const std::lock_guard lock(mutex_);
    newer_connected_ = true;
  }
  return runtime_.group_->listener_registry().listeners();
}

std::string Runtime::HotRestart::state_to_offer() {
  return runtime_.group_->slots().get<loop::HandoverState>().to_bytes();
}

/// Holds the runtime's mutex: a drain that has begun rejects a newer process, a later drain does
/// not.
bool Runtime::HotRestart::confirm_handover(const Sockets& sockets) {
  const std::lock_guard lock(runtime_.mutex_);
  if (runtime_.drain_requested_.load(std::memory_order_relaxed)) return false;
  for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
  return true;
}

void Runtime::HotRestart::on_handover_failed(const Sockets& sockets) {
  for (const auto& each : sockets) each->set_stays_open_elsewhere(each->externally_owned());
  bool drain = false;
  {
    const std::lock_guard lock(mutex_);
    newer_connected_ = false;
    drain = std::exchange(drain_postponed_, false);
  }
  if (drain) runtime_.drain();
}

void Runtime::HotRestart::on_handed_over() {
  // Drain before logging: the newer process waits, and a log without a reader may block.
  runtime_.drain();
  log("a newer process has taken over: draining");
}

std::string Runtime::HotRestart::unaccepted_addresses() {
  return runtime_.group_->listener_registry().unaccepted_addresses();
}

bool Runtime::HotRestart::prepare_ownership() {
  const std::lock_guard lock(runtime_.mutex_);
  // relaxed: under the mutex, like every store to it.
  decision_pending_ = !runtime_.drain_requested_.load(std::memory_order_relaxed);
  return decision_pending_;
}

void Runtime::HotRestart::on_owned() {
  bool drain = false;
  {
    const std::lock_guard lock(runtime_.mutex_);
    for (const auto& each : runtime_.group_->listener_registry().listeners()) {
      if (each->peer_waits_for_accept()) each->set_stays_open_elsewhere(each->externally_owned());
    }
    decision_pending_ = false;
    drain = runtime_.drain_requested_.load(std::memory_order_relaxed);
  }
  if (drain) runtime_.drain();
}

void Runtime::HotRestart::on_taken_over() {
  // Connections wait: accept them before logging.
  for (const auto& core : runtime_.cores_) core->request_resume_accepting();
  log("hot restart complete: this process accepts connections");
}

void Runtime::HotRestart::on_takeover_failed(std::string why) {
  {
    const std::lock_guard lock(runtime_.mutex_);
    decision_pending_ = false;
  }
  runtime_.core_failed(std::move(why));
}

}  // namespace weir
