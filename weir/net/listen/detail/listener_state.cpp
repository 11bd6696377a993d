#include "weir/net/listen/detail/listener_state.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/state_table.hpp"
#include "weir/net/detail/socket_block.hpp"

namespace weir::tcp {

Listener::State::State(Loop& loop, loop::Socket& socket,
                       const loop::ListenerRegistry::Listener& listener, bool through_drain)
    : loop::Timer(&on_quiet_timer),
      DrainObserver(&on_drain),
      AcceptObserver(&on_resume_accepting),
      loop_(loop),
      counters_(ConnectionCounters::of(loop)),
      socket_(socket),
      shared_(listener.shared),
      hold_(loop.group().listener_registry().held_by_listeners().hold(listener.bound, &loop)),
      balancer_(ConnectionBalancer::of(loop, listener.bound)),
      through_drain_(through_drain) {
  if (shared_ != nullptr) shared_->begin_accepting();
  if (balancer_ != nullptr && balancer_->handoff_queue(loop.core()).open(*this)) {
    handoff_queue_ = &balancer_->handoff_queue(loop.core());
  }
  if (loop.accepting_paused()) loop.observe_resume_accepting(*this);
  if (loop.draining()) {
    drain();
  } else {
    loop.observe_drain(*this);
  }
}

Listener::State::~State() {
  assert(accepting_ == nullptr);
  for (ExtraListener* const each : extra_listeners_) each->close();
  if (handoff_queue_ != nullptr) handoff_queue_->close();
  loop_.backend().close(socket_);
  end_main_listener();
}

void Listener::State::change(AcceptState next) noexcept {
  static constexpr weir::detail::StateTable<AcceptState, 4> table{
      {AcceptState::unused, {AcceptState::idle}},
      {AcceptState::idle, {AcceptState::parked, AcceptState::started}},
      {AcceptState::parked, {AcceptState::started}},
      {AcceptState::started, {AcceptState::idle}},
  };
  table.change(accept_, next);
}

void Listener::State::change(DrainState next) noexcept {
  static constexpr weir::detail::StateTable<DrainState, 5> table{
      {DrainState::none, {DrainState::leaving}},
      {DrainState::leaving, {DrainState::emptying, DrainState::closed}},
      {DrainState::emptying, {DrainState::emptying, DrainState::quiet, DrainState::closed}},
      {DrainState::quiet, {DrainState::emptying, DrainState::quiet, DrainState::closed}},
  };
  table.change(drain_, next);
}

Result<> Listener::State::add_extra_listeners(
    const std::vector<std::shared_ptr<loop::SharedListener>>& additional) {
  extra_listeners_.reserve(additional.size());  // push_back() must not throw: it leaks a listener
  const bool timer_started = empties_queues();
  for (const std::shared_ptr<loop::SharedListener>& each : additional) {
    WEIR_TRY(auto extra, open_extra_listener(loop_, each, *this));
    extra_listeners_.push_back(extra);
    if (draining()) drain_extra_listener(*extra);
  }
  if (empties_queues() && !timer_started) start_quiet_timer();
  // One of these sockets may be the first that is open elsewhere.
  if (through_drain_ && loop_.draining() && !draining()) drain();
  return {};
}

/// Handles the first accept. It reports the inherited sockets whose former owner waits for it, and
/// starts the extra listeners.
void Listener::State::on_first_accept() {
  if (accept_ != AcceptState::unused) return;
  change(AcceptState::idle);
  std::size_t awaited = shared_ != nullptr && shared_->peer_waits_for_accept() ? 1 : 0;
  for (const ExtraListener* const each : extra_listeners_)
    awaited += each->peer_waits_for_accept() ? 1 : 0;
  loop_.group().listener_registry().on_accept_requested(awaited);
  if (loop_.accepting_paused() && !draining()) return;
  for (ExtraListener* const each : extra_listeners_) each->begin();
}

bool Listener::State::begin(loop::AcceptOperation& operation) {
  assert(accepting_ == nullptr);
  if (drain_ == DrainState::quiet) change(DrainState::emptying);
  on_first_accept();
  if (take_ready(operation)) return true;
  if (is_finished()) change(DrainState::closed);
  if (closed()) {
    operation.finish(Errc::closed);
    return true;
  }
  if (main_listener_ended_ || (loop_.accepting_paused() && !draining())) {
    park(operation);
    return false;
  }
  if (loop_.backend().accept(socket_, operation)) return true;
  accepting_ = &operation;
  change(AcceptState::started);
  return false;
}

void Listener::State::on_accept_completed() noexcept {
  accepting_ = nullptr;
  change(AcceptState::idle);
}

/// Returns true if it has finished the operation with a connection that is available already.
bool Listener::State::take_ready(loop::AcceptOperation& operation) {
  if (handoff_queue_ != nullptr) {
    if (loop::Descriptor connection = handoff_queue_->take()) {
      operation.accepted = std::move(connection);
      operation.finish();
      handed_off_ = true;
      counters_.taken_over.add();
      return true;
    }
  }
  const auto extra = std::ranges::find_if(extra_listeners_, &ExtraListener::has_connection);
  if (extra == extra_listeners_.end()) return false;
  operation.accepted = (*extra)->take();
  operation.finish();
  // The other extra listeners come first the next time.
  std::rotate(extra, extra + 1, extra_listeners_.end());
  return true;
}

bool Listener::State::has_connection() const noexcept {
  if (handoff_queue_ != nullptr && !handoff_queue_->empty()) return true;
  return std::ranges::any_of(extra_listeners_, &ExtraListener::has_connection);
}

/// Returns true if a drain has nothing left to accept. All sockets stay open in another process and
/// have ended here.
bool Listener::State::is_finished() const noexcept {
  return drain_ == DrainState::leaving && main_listener_ended_ && !has_connection() &&
         std::ranges::all_of(extra_listeners_, &ExtraListener::ended);
}

void Listener::State::park(loop::AcceptOperation& operation) noexcept {
  operation.pending_on(socket_);
  accepting_ = &operation;
  change(AcceptState::parked);
}

/// Moves the parked accept to the backend.
void Listener::State::unpark() {
  if (accept_ != AcceptState::parked) return;
  change(AcceptState::started);
  if (loop_.backend().accept(socket_, *accepting_)) loop_.ready(*accepting_);
}

/// Wakes the pending accept if a connection is available or the drain has ended.
void Listener::State::wake_accept() {
  if (accepting_ == nullptr) return;
  if (is_finished()) change(DrainState::closed);
  if (closed() || has_connection()) cancel(*accepting_);
}

void Listener::State::cancel(loop::AcceptOperation& operation) {
  if (accept_ != AcceptState::parked || accepting_ != &operation) {
    return loop_.backend().cancel(operation);
  }
  change(AcceptState::started);
  operation.finish(Errc::cancelled);
  loop_.ready(operation);
}

bool Listener::State::try_recover(loop::AcceptOperation& operation) {
  // wake_accept() cancels an accept if another source has a connection, or at the end.
  if (operation.error() == Errc::cancelled) return take_ready(operation);
  if (operation.error() != Errc::closed || closed()) return false;
  end_main_listener();
  if (take_ready(operation)) return true;
  if (is_finished()) change(DrainState::closed);
  return false;
}

void Listener::State::end_main_listener() {
  if (std::exchange(main_listener_ended_, true)) return;
  if (shared_ != nullptr) shared_->end_accepting();
}

bool Listener::State::hand_over(loop::Descriptor& accepted) {
  if (handoff_queue_ == nullptr || draining()) return false;
  if (!balancer_->hand_over(loop_.core(), accepted)) return false;
  counters_.handed_over.add();
  return true;
}

loop::Socket* Listener::State::adopt(loop::Descriptor accepted) {
  // A connection from a listener that refuses new ones may not receive data until it is configured.
  if (draining()) static_cast<void>(loop_.platform().configure(accepted.value(), {}));
  auto socket = loop_.backend().adopt(std::move(accepted), {.role = loop::SocketRole::stream});
  if (socket) return *socket;
  counters_.dropped.add();
  return nullptr;
}

std::error_code Listener::State::to_accept_error(std::error_code error) const noexcept {
  // The kernel fails the accepts of a Unix listener that refuses connections and has none left.
  // This also happens if another loop that shares the socket has begun to drain first.
  const bool refusing = draining() || (shared_ != nullptr && error == system_error(EINVAL));
  const bool drained = closed() || (refusing && error != Errc::cancelled);
  return drained ? make_error_code(Errc::closed) : error;
}

void Listener::State::resume_accepting() {
  if (accept_ != AcceptState::unused) {
    for (ExtraListener* const each : extra_listeners_) each->begin();
  }
  if (!main_listener_ended_) unpark();
  wake_accept();
}

/// Returns true if another process has one of the sockets open.
bool Listener::State::stays_open_elsewhere() const noexcept {
  return (shared_ != nullptr && shared_->stays_open_elsewhere()) ||
         std::ranges::any_of(extra_listeners_, &ExtraListener::stays_open_elsewhere);
}

void Listener::State::drain() {
  if (through_drain_ && !stays_open_elsewhere()) return;
  change(DrainState::leaving);
  if (handoff_queue_ != nullptr) handoff_queue_->stop_receiving();
  if (shared_ != nullptr && shared_->stays_open_elsewhere()) {
    loop_.backend().stop_accepting(socket_);
    if (accept_ == AcceptState::parked) end_main_listener();
  } else {
    begin_emptying();
    // If the platform cannot refuse connections, they are accepted until none comes for a
    // quiet_period.
    static_cast<void>(loop_.platform().refuse_new_connections(socket_.descriptor));
    unpark();
  }
  for (ExtraListener* const each : extra_listeners_) drain_extra_listener(*each);
  if (empties_queues()) start_quiet_timer();
  wake_accept();
}

void Listener::State::begin_emptying() noexcept {
  if (drain_ == DrainState::leaving) change(DrainState::emptying);
}

void Listener::State::drain_extra_listener(ExtraListener& extra) {
  if (extra.stays_open_elsewhere()) return extra.stop();
  begin_emptying();
  static_cast<void>(loop_.platform().refuse_new_connections(extra.descriptor()));
  if (accept_ != AcceptState::unused) extra.begin();
}

void Listener::State::start_quiet_timer() noexcept {
  change(accepting_ != nullptr ? DrainState::quiet : DrainState::emptying);
  loop_.timers().start(*this, after(loop_.now(), quiet_period));
}

void Listener::State::check_quiet() {
  // Queued connections are kept while no accept is pending. Connections from other sources are kept
  // too, because wake_accept() has already woken the accept for them.
  if (accepting_ == nullptr || has_connection() ||
      (drain_ != DrainState::quiet && --rounds_left_ > 0)) {
    start_quiet_timer();
    return;
  }
  change(DrainState::closed);
  cancel(*accepting_);
}

Result<ExtraListener*> open_extra_listener(Loop& loop, std::shared_ptr<loop::SharedListener> shared,
                                           ExtraListener::Observer& observer) {
  WEIR_TRY(auto descriptor, shared->share());
  // Accepted connections inherit this configuration.
  if (auto configured = loop.platform().configure(descriptor.value(), {}); !configured) {
    return fail(configured.error());
  }
  const loop::SocketOptions options{.role = loop::SocketRole::listener, .shared = true};
  WEIR_TRY(auto socket, loop.backend().adopt(std::move(descriptor), options));
  return make_socket_block<ExtraListener>(loop, *socket, std::move(shared), observer).release();
}

ExtraListener::ExtraListener(Loop& loop, loop::Socket& socket,
                             std::shared_ptr<loop::SharedListener> shared, Observer& observer)
    : loop::AcceptOperation(&on_completed),
      loop_(loop),
      socket_(&socket),
      shared_(std::move(shared)),
      observer_(observer) {
  shared_->begin_accepting();
}

void ExtraListener::change(State next) noexcept {
  static constexpr weir::detail::StateTable<State, 5> table{
      {State::unused, {State::accepting, State::ended, State::closed}},
      {State::accepting, {State::holding, State::ended, State::closed}},
      {State::holding, {State::accepting, State::closed}},
      {State::ended, {State::closed}},
  };
  table.change(state_, next);
}

void ExtraListener::begin() {
  if (state_ == State::unused) accept_next();
}

loop::Descriptor ExtraListener::take() {
  assert(has_connection());
  loop::Descriptor taken = std::move(accepted);
  accept_next();
  return taken;
}

void ExtraListener::stop() {
  if (state_ == State::ended) return;
  loop_.backend().stop_accepting(*socket_);
  if (state_ == State::unused) end();
}

void ExtraListener::accept_next() {
  change(State::accepting);
  if (loop_.backend().accept(*socket_, *this)) on_accepted();
}

void ExtraListener::on_accepted() {
  if (error()) {
    end();
  } else {
    change(State::holding);
  }
}

void ExtraListener::end() {
  change(State::ended);
  shared_->end_accepting();
}

void ExtraListener::on_completed(loop::Runnable& self) {
  auto& extra = static_cast<ExtraListener&>(static_cast<loop::AcceptOperation&>(self));
  if (extra.state_ == State::closed) return extra.destroy_self();
  extra.on_accepted();
  extra.observer_.on_change();
}

void ExtraListener::close() {
  const State before = state_;
  change(State::closed);
  if (before == State::accepting) loop_.backend().cancel(*this);
  accepted.reset();
  loop_.backend().close(*std::exchange(socket_, nullptr));
  if (before != State::ended) shared_->end_accepting();
  shared_.reset();
  if (before != State::accepting) destroy_self();
}

void ExtraListener::destroy_self() {
  BlockDeleter<ExtraListener>()(this);
}

}  // namespace weir::tcp
