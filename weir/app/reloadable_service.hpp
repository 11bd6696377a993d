// A service that is replaced when its part of the configuration changes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/config/reload.hpp"

namespace weir::config {

/// A ReloadableService is the service for one part of a configuration:
///
///   config::ReloadableService database(app, reloadable, &Settings::database,
///                                      [](App& to, const Settings::Database& part) {
///                                        return to.per_core([part] { return Database(part); });
///                                      });
///
/// The function registers a service for the given part, which it copies, and returns the service's
/// id. The constructor calls it immediately, and each change of the part calls it again. The new
/// service then replaces the previous one in a running app, with all its dependants, as
/// App::replace() does. If that fails, for example because a start() fails, the whole file is
/// rejected. The previous service stays, and other subscribers that have already taken the new
/// file get the old one again.
///
/// The task that runs Reloadable::watch() or reload() must not depend on this service, because it
/// would wait for itself. An app that is stopped during the change rejects the file. An app that
/// does not run starts with the new part later. A service that was removed from the app stays
/// removed. If reload() is cancelled, the change continues and ends with one of the two services.
/// The next reload() applies the part again: see Reloadable::reload().
///
/// Threads: the app's core; one thread at a time while the app does not run.
/// Lifetime: the app and the Reloadable outlive it; it outlives each reload() and watch().
class ReloadableService {
 public:
  template <class T, class Part, class Add>
  ReloadableService(App& app, Reloadable<T>& reloadable, Part T::* part, Add add) : app_(app) {
    const auto before = reloadable.current();
    ids_.push_back(add(app, (*before).*part));
    subscription_ = reloadable.on_change(part, [this, add = std::move(add)](const Part& next) {
      return apply_part([this, &add, &next] { return add(app_, next); });
    });
  }
  ReloadableService(const ReloadableService&) = delete;
  ReloadableService& operator=(const ReloadableService&) = delete;

  /// Returns the service that was registered last. The id is empty after a change has found that
  /// the service was removed.
  ServiceId id() const noexcept { return ids_.empty() ? ServiceId() : ids_.back(); }

 private:
  Task<Rejection> apply_part(std::function<ServiceId()> add);
  Task<> register_again(const std::function<ServiceId()>& add);
  void drop_removed_ids();
  std::string rejection_reason(std::error_code error) const;

  App& app_;
  // Candidates for the current service: several only if the result of a cancelled change is
  // unknown.
  std::vector<ServiceId> ids_;
  Subscription subscription_;
};

}  // namespace weir::config
