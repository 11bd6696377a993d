#include "weir/app/config_service.hpp"

#include <string>
#include <system_error>

namespace weir::config {

Task<Refusal> LiveService::renew(std::function<ServiceId()> add) {
  forget_removed();
  if (ids_.empty()) co_return std::nullopt;
  if (!app_.running()) {
    co_await register_anew(add);
    co_return std::nullopt;
  }
  const ServiceId fresh = add();
  Result<> replaced;
  do {
    replaced = co_await app_.replace(ids_.back(), fresh);
    forget_removed();  // the last one, where what it was to take the place of had failed itself
  } while (!replaced && replaced.error() == Errc::not_found && !ids_.empty() && app_.knows(fresh));
  if (replaced) {
    ids_.assign(1, fresh);
    co_return std::nullopt;
  }
  if (!app_.knows(fresh)) co_return why_not(replaced.error());
  if (replaced.error() == Errc::not_found) {
    static_cast<void>(co_await app_.remove(fresh));  // nobody is there whose place it could take
    co_return std::nullopt;
  }
  if (replaced.error() != Errc::cancelled) {
    // Another change of the app has taken it along.
    static_cast<void>(co_await app_.remove(fresh));
    co_return why_not(replaced.error());
  }
  ids_.push_back(fresh);  // who reloads is cancelled, and the change goes on
  co_return "it was cancelled";
}

/// For the next start. What is removed goes with the change that removes it, also under a
/// cancellation.
Task<> LiveService::register_anew(const std::function<ServiceId()>& add) {
  const std::vector<ServiceId> before = std::exchange(ids_, {add()});
  for (const ServiceId each : before) static_cast<void>(co_await app_.remove(each));
}

void LiveService::forget_removed() {
  std::erase_if(ids_, [this](ServiceId each) { return !app_.knows(each); });
}

std::string LiveService::why_not(std::error_code error) const {
  if (!app_.running()) return "the app was stopped";
  std::string why;
  for (const std::string& each : app_.problems()) why += (why.empty() ? "" : "; ") + each;
  return why.empty() ? error.message() : why;
}

}  // namespace weir::config
