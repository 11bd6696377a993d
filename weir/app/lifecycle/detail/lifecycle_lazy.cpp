// The lifecycle of Lazy parameters: services that are requested when they are used.
//
// The dependency of such a parameter is unresolved at first: it binds the instance to its
// provider, and neither waits for the other. The first answer resolves it. It counts like a
// required dependency from then on, also in later runs of the instance.
#include <algorithm>
#include <cassert>

#include "weir/app/handles/lazy.hpp"
#include "weir/app/lifecycle/detail/core_agent.hpp"
#include "weir/app/lifecycle/detail/lifecycle.hpp"
#include "weir/loop/loop.hpp"

namespace weir::inject {

/// Prepares the Lazy before the instance is made. A provider that an earlier run has used is given
/// immediately.
void Lifecycle::reset_lazy(Index index) {
  const Dependency& dependency = graph_.dependency(index);
  void* object = nullptr;
  if (dependency.state == DependencyState::resolved) {
    ++graph_.instance(dependency.provider).active_dependants;
    object = graph_.object_for(dependency);
  }
  send(ResetLazy{&graph_.instance(dependency.instance), index, object});
}

void Lifecycle::handle(LazyRequested& event) {
  Dependency& dependency = graph_.dependency(event.dependency);
  assert(dependency.state != DependencyState::resolved);
  dependency.state = DependencyState::requested;
  graph_.instance(dependency.instance).has_lazy_requests = true;
  answer_lazy(event.dependency);
}

/// Answers a request if that is possible now; otherwise makes the provider run.
void Lifecycle::answer_lazy(Index index) {
  const Dependency& dependency = graph_.dependency(index);
  if (dependency.state != DependencyState::requested) return;
  const Instance& instance = graph_.instance(dependency.instance);
  const bool may_wait = running_ && rules_of(instance.state).takes;
  if (dependency.provider == no_index)
    return fail_lazy(index, may_wait ? Errc::not_found : Errc::closed);
  Instance& provider = graph_.instance(dependency.provider);
  if (provider.is_available()) return resolve_lazy(index);
  if (!may_wait) return fail_lazy(index, Errc::closed);
  if (provider.state == State::failed) return fail_lazy(index, failure_of(provider));
  if (provider.registration->stopped_manually) return fail_lazy(index, Errc::not_found);
  if (!provider.is_dormant() && (provider.wanted || !dependency.child)) return;
  if (provider.is_dormant()) provider.use = Use::requested;
  if (dependency.child) provider.wanted = true;
  enqueue(provider);
}

/// Answers the instance's own requests.
void Lifecycle::answer_own_lazy_requests(Instance& instance) {
  instance.has_lazy_requests = false;
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind != DependencyKind::lazy) continue;
    answer_lazy(instance.first_dependency + static_cast<Index>(i));
    if (instance.dependencies[i].state == DependencyState::requested)
      instance.has_lazy_requests = true;
  }
}

/// Answers the requests that wait for this provider.
void Lifecycle::answer_lazy_dependants(const Instance& provider) {
  if (!is_lazy(provider.use)) return;
  for (Index each = provider.first_dependant; each != no_index;
       each = graph_.dependency(each).next) {
    if (graph_.is_unresolved(graph_.dependency(each))) answer_lazy(each);
  }
}

void Lifecycle::resolve_lazy(Index index) {
  Dependency& dependency = graph_.dependency(index);
  dependency.state = DependencyState::resolved;
  ++graph_.instance(dependency.provider).active_dependants;
  send(ResolveLazy{&graph_.instance(dependency.instance), index, graph_.object_for(dependency)});
}

void Lifecycle::fail_lazy(Index index, std::error_code error) {
  Dependency& dependency = graph_.dependency(index);
  dependency.state = DependencyState::idle;
  send(FailLazy{&graph_.instance(dependency.instance), index, error});
}

std::error_code Lifecycle::failure_of(const Instance& instance) const {
  const auto found =
      std::ranges::find(failures_.rbegin(), failures_.rend(), instance.index, &Failure::instance);
  return found == failures_.rend() ? make_error_code(Errc::not_found) : found->error;
}

/// Returns true if the instance was made only for requests that wait through a Lazy.
bool Lifecycle::is_lazy_only(const Instance& instance) const {
  if (instance.use != Use::requested || instance.is_replacement) return false;
  bool asked = false;
  for (Index each = instance.first_dependant; each != no_index;
       each = graph_.dependency(each).next) {
    const Dependency& dependency = graph_.dependency(each);
    if (dependency.state == DependencyState::resolved) return false;
    asked = asked || dependency.state == DependencyState::requested;
  }
  return asked;
}

bool LazyState::is_on_own_core() const noexcept {
  const Loop* const here = Loop::current();
  return here == nullptr || agent->is_on(*here);
}

bool LazyAwaiter::begin(Loop&) {
  if (!state_->request_pending) {
    state_->request_pending = true;
    state_->request(*state_);  // may be answered immediately
  }
  if (state_->request_pending) {
    state_->waiting.push_back(*this);
    return true;
  }
  if (state_->object == nullptr) error_ = state_->error;
  return false;
}

}  // namespace weir::inject
