// A service that is made anew when its part of the configuration changes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/config_live.hpp"

namespace weir::config {

/// The services that one part of a configuration leads to, one at a time:
///
///   config::LiveService database(app, live, &Settings::database,
///                                [](App& to, const Settings::Database& part) {
///                                  return to.per_core([part] { return Database(part); });
///                                });
///
/// The function registers a service for the part that it is given and returns its id; it is called
/// at once, and again for each new part, which it copies. In a running app the new service then
/// takes the place of the one before, with all that depend on it, as App::replace() does it. If it
/// cannot, because a start() fails for example, the file is refused as a whole: the service goes on
/// as it was, and others that have taken the new file already are given the old one again.
///
/// Whoever runs Live::watch() or reload() must not depend on this service, which would wait for
/// itself. An app that is stopped meanwhile refuses the file; one that does not run starts with the
/// new part. A service that was removed from the app stays away. Where reload() is cancelled, what
/// it has begun goes on and comes to its own end, with one service or the other, and the next
/// reload() gives it its part again: see Live::reload().
///
/// Threads: the app's core, or, while that does not run, one at a time. Lifetime: the app and the
/// Live outlive it, and it outlives each reload() and watch().
class LiveService {
 public:
  template <class T, class Part, class Add>
  LiveService(App& app, Live<T>& live, Part T::* part, Add add) : app_(app) {
    const auto before = live.now();
    ids_.push_back(add(app, (*before).*part));
    subscription_ = live.on_change(part, [this, add = std::move(add)](const Part& next) {
      return renew([this, &add, &next] { return add(app_, next); });
    });
  }
  LiveService(const LiveService&) = delete;
  LiveService& operator=(const LiveService&) = delete;

  /// The one that was registered last; nobody's once it is known that it was removed.
  ServiceId id() const noexcept { return ids_.empty() ? ServiceId() : ids_.back(); }

 private:
  Task<Refusal> renew(std::function<ServiceId()> add);
  Task<> register_anew(const std::function<ServiceId()>& add);
  void forget_removed();
  std::string why_not(std::error_code error) const;

  App& app_;
  std::vector<ServiceId> ids_;  // more than one: nobody knows any more which of them it is
  Subscription subscription_;
};

}  // namespace weir::config
