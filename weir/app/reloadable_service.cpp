// Replaces a service when its part of the configuration changes.
#include "weir/app/reloadable_service.hpp"

#include <string>
#include <system_error>

namespace weir::config {

Task<Rejection> ReloadableService::apply_part(std::function<ServiceId()> add) {
  drop_removed_ids();
  if (ids_.empty()) co_return std::nullopt;
  if (!app_.running()) {
    co_await register_again(add);
    co_return std::nullopt;
  }
  const ServiceId fresh = add();
  Result<> replaced;
  do {
    replaced = co_await app_.replace(ids_.back(), fresh);
    drop_removed_ids();  // the last id too, if the service to be replaced has failed
  } while (!replaced && replaced.error() == Errc::not_found && !ids_.empty() &&
           app_.contains(fresh));
  if (replaced) {
    ids_.assign(1, fresh);
    co_return std::nullopt;
  }
  if (!app_.contains(fresh)) co_return rejection_reason(replaced.error());
  if (replaced.error() == Errc::not_found) {
    std::ignore = co_await app_.remove(fresh);  // there is no service to replace
    co_return std::nullopt;
  }
  if (replaced.error() != Errc::cancelled) {
    // Another change of the app has removed the previous service.
    std::ignore = co_await app_.remove(fresh);
    co_return rejection_reason(replaced.error());
  }
  ids_.push_back(fresh);  // the reload was cancelled, and the change continues
  co_return "the reload was cancelled";
}

/// Registers the part's service for the next start. A removed service is removed by the change,
/// also after a cancellation.
Task<> ReloadableService::register_again(const std::function<ServiceId()>& add) {
  const std::vector<ServiceId> before = std::exchange(ids_, {add()});
  for (const ServiceId each : before) std::ignore = co_await app_.remove(each);
}

void ReloadableService::drop_removed_ids() {
  std::erase_if(ids_, [this](ServiceId each) { return !app_.contains(each); });
}

std::string ReloadableService::rejection_reason(std::error_code error) const {
  if (!app_.running()) return "the app was stopped";
  std::string why;
  for (const std::string& each : app_.errors()) why += (why.empty() ? "" : "; ") + each;
  return why.empty() ? error.message() : why;
}

}  // namespace weir::config
