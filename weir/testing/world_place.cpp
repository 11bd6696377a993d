#include "weir/testing/world_place.hpp"

#include <cassert>
#include <cerrno>
#include <chrono>

#include "weir/sim/host.hpp"
#include "weir/testing/world_state.hpp"

namespace weir {
namespace {

// Now and then a thread gets its CPU so much later.
constexpr double late = 0.05;
constexpr Duration late_max = std::chrono::seconds(2);

}  // namespace

WorldMeeting::~WorldMeeting() {
  for (const auto& each : waiting_) each->leave(WorldLine::Side::older);
}

void WorldMeeting::come(std::shared_ptr<WorldLine> newer) {
  waiting_.push_back(std::move(newer));
  changed();
}

std::shared_ptr<WorldLine> WorldMeeting::take() {
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<WorldLine> first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

WorldPlace::WorldPlace(WorldHost& host, WorldState& state, WorldMeetings& meetings,
                       std::string path)
    : host_(host), state_(state), meetings_(meetings), path_(std::move(path)) {
  host_.set_place(this);
}

WorldPlace::~WorldPlace() {
  assert(talks_.empty());
  leave();
  if (waking_) state_.clock.forget(*waking_);
  host_.set_place(nullptr);
}

Result<std::unique_ptr<HandoverTalk>> WorldPlace::meet() {
  begin_step();
  if (dead_) return fail(system_error(EINTR));
  std::unique_ptr<HandoverTalk> older;
  if (const auto there = meetings_[path_].lock()) {
    auto line = std::make_shared<WorldLine>();
    older = std::make_unique<WorldTalk>(*this, line, WorldLine::Side::newer);
    there->come(std::move(line));
    return older;
  }
  const auto made = std::make_shared<WorldMeeting>();
  const auto number = host_.descriptors().add(made);
  if (!number) return fail(number.error());
  set_socket(Descriptor(host_, *number));
  meetings_[path_] = made;
  owns_ = true;
  return older;
}

WorldMeeting& WorldPlace::meeting() noexcept {
  MemoryEndpoint* const endpoint = host_.descriptors().find(socket_.value());
  assert(endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::meeting);
  return static_cast<WorldMeeting&>(*endpoint);
}

void WorldPlace::set_socket(Descriptor socket) {
  if (socket_) meeting().forget(*this);
  socket_ = std::move(socket);
  meeting().observe(*this);
}

void WorldPlace::own() noexcept {
  begin_step();
  owns_ = !dead_;
}

void WorldPlace::disown() noexcept {
  begin_step();
  owns_ = false;
}

void WorldPlace::leave() noexcept {
  if (!socket_) return;
  const bool there = meetings_[path_].lock().get() == &meeting();
  if (std::exchange(owns_, false) && there) meetings_.erase(path_);
  meeting().forget(*this);
  socket_.reset();
}

std::unique_ptr<HandoverTalk> WorldPlace::wait_for_newer() {
  for (;;) {
    begin_step();
    if (take_ring()) return nullptr;
    if (socket_) {
      if (auto line = meeting().take()) {
        return std::make_unique<WorldTalk>(*this, std::move(line), WorldLine::Side::older);
      }
    }
    wait_for_call(never);
  }
}

bool WorldPlace::wait(Instant until) {
  for (;;) {
    begin_step();
    if (take_ring()) return true;
    if (state_.clock.now() >= until) return false;
    wait_for_call(until);
  }
}

void WorldPlace::ring() noexcept {
  rung_ = true;
  call();
}

void WorldPlace::begin(WorldMain& thread) {
  thread_ = &thread;
  waiting_ = true;
  call();
}

void WorldPlace::die() {
  dead_ = true;
  owns_ = false;  // the name stays
  for (WorldTalk* const each : talks_) each->leave();
  leave();
  ring();
}

void WorldPlace::begin_step() {
  host_.begin_handover_step();
}

void WorldPlace::call() {
  if (!waiting_) return;
  const Duration delay =
      state_.draw.between({}, state_.draw.happens(late) ? late_max : state_.variation.step_max);
  const Instant moment = after(state_.clock.now(), delay);
  if (waking_ && waking_->first <= moment) return;
  if (waking_) state_.clock.forget(*waking_);
  waking_ = state_.clock.at(moment, [this] { resume(); });
}

void WorldPlace::wait_for_call(Instant until) {
  waiting_ = true;
  if (until != never) waking_ = state_.clock.at(until, [this] { resume(); });
  if (thread_ != nullptr) {
    thread_->hand_back();
  } else {
    host_.wait_in_main();
  }
}

void WorldPlace::resume() {
  waking_.reset();
  waiting_ = false;
  if (thread_ == nullptr) return host_.wake_main();
  thread_->go_on();
  if (thread_->returned()) host_.wake_main();
}

}  // namespace weir
