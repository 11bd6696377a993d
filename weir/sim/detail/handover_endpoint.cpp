// The rendezvous of the processes of one simulated machine, and the waits of the handover thread.
#include "weir/sim/detail/handover_endpoint.hpp"

#include <cassert>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weir/sim/detail/world_state.hpp"
#include "weir/sim/host.hpp"

namespace weir::sim {
namespace {

// The probability and the maximum of a long delay before a thread runs.
constexpr double late_rate = 0.05;
constexpr Duration late_max = std::chrono::seconds(2);

}  // namespace

SimRendezvous::~SimRendezvous() {
  for (const auto& each : waiting_) each->leave(SimPipe::Side::older);
}

void SimRendezvous::add_connection(std::shared_ptr<SimPipe> newer) {
  waiting_.push_back(std::move(newer));
  notify_observers();
}

std::shared_ptr<SimPipe> SimRendezvous::take() {
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<SimPipe> first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

SimHandoverEndpoint::SimHandoverEndpoint(Host& host, WorldState& state,
                                         SimRendezvousMap& rendezvous, std::string path)
    : host_(host), state_(state), rendezvous_(rendezvous), path_(std::move(path)) {
  host_.set_handover_endpoint(this);
}

SimHandoverEndpoint::~SimHandoverEndpoint() {
  assert(connections_.empty());
  close();
  if (wake_event_) state_.clock.cancel(*wake_event_);
  host_.set_handover_endpoint(nullptr);
}

Result<std::unique_ptr<loop::HandoverConnection>> SimHandoverEndpoint::connect_or_listen() {
  start_step();
  if (dead_) return fail(system_error(EINTR));
  std::unique_ptr<loop::HandoverConnection> older;
  if (const auto there = rendezvous_[path_].lock()) {
    auto pipe = std::make_shared<SimPipe>();
    older = std::make_unique<SimHandoverConnection>(*this, pipe, SimPipe::Side::newer);
    there->add_connection(std::move(pipe));
    return older;
  }
  const auto made = std::make_shared<SimRendezvous>();
  WEIR_TRY(const auto number, host_.descriptors().add(made));
  set_socket(loop::Descriptor(host_, number));
  rendezvous_[path_] = made;
  owns_ = true;
  return older;
}

SimRendezvous& SimHandoverEndpoint::rendezvous_socket() noexcept {
  MemoryEndpoint* const endpoint = host_.descriptors().find(socket_.value());
  assert(endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::rendezvous);
  return static_cast<SimRendezvous&>(*endpoint);
}

void SimHandoverEndpoint::set_socket(loop::Descriptor socket) {
  if (socket_) rendezvous_socket().unobserve(*this);
  socket_ = std::move(socket);
  rendezvous_socket().observe(*this);
}

void SimHandoverEndpoint::take_ownership() noexcept {
  start_step();
  owns_ = !dead_;
}

void SimHandoverEndpoint::drop_ownership() noexcept {
  start_step();
  owns_ = false;
}

void SimHandoverEndpoint::close() noexcept {
  if (!socket_) return;
  const bool there = rendezvous_[path_].lock().get() == &rendezvous_socket();
  if (std::exchange(owns_, false) && there) rendezvous_.erase(path_);
  rendezvous_socket().unobserve(*this);
  socket_.reset();
}

std::unique_ptr<loop::HandoverConnection> SimHandoverEndpoint::accept_newer() {
  for (;;) {
    start_step();
    if (take_notification()) return nullptr;
    if (socket_) {
      if (auto pipe = rendezvous_socket().take()) {
        return std::make_unique<SimHandoverConnection>(*this, std::move(pipe),
                                                       SimPipe::Side::older);
      }
    }
    wait_for_wake(never);
  }
}

bool SimHandoverEndpoint::wait(Instant until) {
  for (;;) {
    start_step();
    if (take_notification()) return true;
    if (state_.clock.now() >= until) return false;
    wait_for_wake(until);
  }
}

void SimHandoverEndpoint::notify() noexcept {
  notified_ = true;
  wake();
}

void SimHandoverEndpoint::begin(HostMain& thread) {
  thread_ = &thread;
  waiting_ = true;
  wake();
}

void SimHandoverEndpoint::abandon() {
  dead_ = true;
  owns_ = false;  // the name stays, as after SIGKILL
  for (SimHandoverConnection* const each : connections_) each->leave();
  close();
  notify();
}

void SimHandoverEndpoint::start_step() {
  host_.start_handover_step();
}

void SimHandoverEndpoint::wake() {
  if (!waiting_) return;
  const Duration delay = state_.random.between(
      {}, state_.random.bernoulli(late_rate) ? late_max : state_.jitter.step_max);
  const Instant moment = after(state_.clock.now(), delay);
  if (wake_event_ && wake_event_->first <= moment) return;
  if (wake_event_) state_.clock.cancel(*wake_event_);
  wake_event_ = state_.clock.at(moment, [this] { resume(); });
}

void SimHandoverEndpoint::wait_for_wake(Instant until) {
  waiting_ = true;
  if (until != never) wake_event_ = state_.clock.at(until, [this] { resume(); });
  if (thread_ != nullptr) {
    thread_->yield_to_world();
  } else {
    host_.block_main();
  }
}

void SimHandoverEndpoint::resume() {
  wake_event_.reset();
  waiting_ = false;
  if (thread_ == nullptr) return host_.unblock_main();
  thread_->resume();
  if (thread_->returned()) host_.unblock_main();
}

SimHandover::SimHandover(Host& host, WorldState& state, SimRendezvousMap& rendezvous,
                         const HandoverOptions& options)
    : host_(host),
      endpoint_(host, state, rendezvous, options.path),
      protocol_(host, options, endpoint_) {}

SimHandover::~SimHandover() {
  stop();
  while (thread_ != nullptr && !thread_->returned()) host_.block_main();
}

loop::HandoverStart SimHandover::meet(Host& host, WorldState& state, SimRendezvousMap& rendezvous,
                                      const HandoverOptions& options) {
  std::unique_ptr<SimHandover> handover(new SimHandover(host, state, rendezvous, options));
  std::string failure = handover->protocol_.begin();
  if (!failure.empty()) return {nullptr, std::move(failure)};
  return {std::move(handover), {}};
}

Result<> SimHandover::start(loop::HandoverDelegate& delegate) {
  thread_ = std::make_unique<HostMain>([this, &delegate] { protocol_.run(delegate); });
  endpoint_.begin(*thread_);
  return {};
}

}  // namespace weir::sim
