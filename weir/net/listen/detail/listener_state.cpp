#include "weir/net/listener_state.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace weir::tcp {

Listener::State::State(Loop& loop, Socket& socket, const LoopGroup::Listener& listener)
    : Timer(&grace_ended),
      DrainWatcher(&drain_asked),
      AdmissionWatcher(&admitted),
      loop_(loop),
      socket_(socket),
      shared_(listener.shared),
      balance_(listener.balance) {
  if (shared_ != nullptr) shared_->begin_accepting();
  if (balance_ != nullptr && balance_->intake(loop.core()).open(*this)) {
    intake_ = &balance_->intake(loop.core());
  }
  if (loop.holding()) loop.watch_admission(*this);
  if (loop.draining()) {
    drain();
  } else {
    loop.watch_drain(*this);
  }
}

Listener::State::~State() {
  assert(accepting_ == nullptr);
  for (SideDoor* const each : side_doors_) each->leave();
  if (intake_ != nullptr) intake_->close();
  loop_.backend().close(socket_);
  end_main();
}

Result<> Listener::State::add_side_doors(
    const std::vector<std::shared_ptr<SharedListener>>& further) {
  side_doors_.reserve(further.size());  // a door that is open is known
  for (const std::shared_ptr<SharedListener>& each : further) {
    auto door = open_side_door(loop_, each, *this);
    if (!door) return fail(door.error());
    side_doors_.push_back(*door);
    if (draining_) (*door)->stop();
  }
  return {};
}

/// The first accept: what was inherited is about to be accepted from.
void Listener::State::announce() {
  if (std::exchange(announced_, true)) return;
  std::size_t awaited = shared_ != nullptr && shared_->awaited() ? 1 : 0;
  for (const SideDoor* const each : side_doors_) awaited += each->awaited() ? 1 : 0;
  loop_.group().asked_to_accept(awaited);
  if (loop_.holding() && !draining_) return;
  for (SideDoor* const each : side_doors_) each->begin();
}

bool Listener::State::begin(AcceptOperation& operation) {
  assert(accepting_ == nullptr);
  quiet_ = false;
  announce();
  if (take_one(operation)) return true;
  if (closed_ || over()) {
    closed_ = true;
    operation.finish(Errc::closed);
    return true;
  }
  if (main_ended_ || (loop_.holding() && !draining_)) {
    park(operation);
    return false;
  }
  if (loop_.backend().accept(socket_, operation)) return true;
  accepting_ = &operation;
  return false;
}

/// Whether it has finished with a connection that is here already.
bool Listener::State::take_one(AcceptOperation& operation) {
  if (intake_ != nullptr) {
    if (Descriptor connection = intake_->take()) {
      operation.accepted = std::move(connection);
      operation.finish();
      taken_over_ = true;
      loop_.count_taken_over();
      return true;
    }
  }
  const auto door = std::ranges::find_if(side_doors_, &SideDoor::has_one);
  if (door == side_doors_.end()) return false;
  operation.accepted = (*door)->take();
  operation.finish();
  // The next time another one's turn comes first.
  std::rotate(door, door + 1, side_doors_.end());
  return true;
}

bool Listener::State::has_one() const noexcept {
  if (intake_ != nullptr && !intake_->empty()) return true;
  return std::ranges::any_of(side_doors_, &SideDoor::has_one);
}

/// Whether everything that another process goes on with has ended here, and there is nothing else.
bool Listener::State::over() const noexcept {
  return draining_ && !empties_ && main_ended_ && !has_one() &&
         std::ranges::all_of(side_doors_, &SideDoor::ended);
}

void Listener::State::park(AcceptOperation& operation) noexcept {
  operation.pending_on(socket_);
  accepting_ = &operation;
  parked_ = true;
}

/// From here on it waits in the backend.
void Listener::State::unpark() {
  if (!std::exchange(parked_, false)) return;
  if (loop_.backend().accept(socket_, *accepting_)) loop_.ready(*accepting_);
}

/// Lets the accept that waits look again: a connection is here, or the end.
void Listener::State::reconsider() {
  if (accepting_ == nullptr) return;
  if (over()) closed_ = true;
  if (closed_ || has_one()) cancel(*accepting_);
}

void Listener::State::cancel(AcceptOperation& operation) {
  if (!parked_ || accepting_ != &operation) return loop_.backend().cancel(operation);
  parked_ = false;
  operation.finish(Errc::cancelled);
  loop_.ready(operation);
}

bool Listener::State::goes_on(AcceptOperation& operation) {
  // It was cut short for what came by another way, or it is over.
  if (operation.error() == Errc::cancelled) return take_one(operation);
  if (operation.error() != Errc::closed || closed_) return false;
  end_main();
  if (take_one(operation)) return true;
  closed_ = over();
  return false;
}

void Listener::State::end_main() {
  if (std::exchange(main_ended_, true)) return;
  if (shared_ != nullptr) shared_->end_accepting();
}

bool Listener::State::hand_over(Descriptor& accepted) {
  if (intake_ == nullptr || draining_) return false;
  if (!balance_->hand_over(loop_.core(), accepted)) return false;
  loop_.count_handed_over();
  return true;
}

Socket* Listener::State::adopt(Descriptor accepted) {
  // What was accepted from a listener that turns newcomers away may not hear its peer yet.
  if (draining_) static_cast<void>(loop_.host().configure(accepted.value(), {}));
  auto socket = loop_.backend().adopt(std::move(accepted), {.role = SocketRole::stream});
  if (socket) return *socket;
  loop_.count_dropped_connection();
  return nullptr;
}

std::error_code Listener::State::explain(std::error_code error) const noexcept {
  // The kernel fails the accepts of a Unix listener that takes no newcomers and has none left,
  // also where another loop that shares it has begun to drain first.
  const bool refusing = draining_ || (shared_ != nullptr && error == system_error(EINVAL));
  const bool drained = closed_ || (refusing && error != Errc::cancelled);
  return drained ? make_error_code(Errc::closed) : error;
}

void Listener::State::admit() {
  if (announced_) {
    for (SideDoor* const each : side_doors_) each->begin();
  }
  if (!main_ended_) unpark();
  reconsider();
}

void Listener::State::drain() {
  draining_ = true;
  if (intake_ != nullptr) intake_->shut();
  if (shared_ != nullptr && shared_->goes_on()) {
    loop_.backend().stop_accepting(socket_);
    if (parked_) end_main();
  } else {
    empties_ = true;
    // Where the host cannot refuse, connections are still accepted until none comes for a while.
    static_cast<void>(loop_.host().refuse_new_connections(socket_.descriptor));
    unpark();
  }
  for (SideDoor* const each : side_doors_) {
    if (each->goes_on()) {
      each->stop();
    } else {
      empties_ = true;
      static_cast<void>(loop_.host().refuse_new_connections(each->descriptor()));
      if (announced_) each->begin();
    }
  }
  if (empties_) start_grace();
  reconsider();
}

void Listener::State::start_grace() noexcept {
  quiet_ = accepting_ != nullptr;
  loop_.timers().start(*this, after(loop_.now(), grace));
}

void Listener::State::check_quiet() {
  // While nobody accepts, what waits in the queue is not lost but kept. Nor is what came by other
  // ways: whoever accepts has been told.
  if (accepting_ == nullptr || has_one() || (!quiet_ && --rounds_left_ > 0)) {
    start_grace();
    return;
  }
  closed_ = true;
  cancel(*accepting_);
}

}  // namespace weir::tcp
