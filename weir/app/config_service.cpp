#include "weir/app/config_service.hpp"

#include <string>
#include <system_error>

namespace weir::config {

Task<Refusal> LiveService::renew(std::function<ServiceId()> add) {
  if (!app_.running()) {
    co_await register_anew(add);
    co_return std::nullopt;
  }
  const ServiceId fresh = add();
  Result<> replaced = fail(Errc::not_found);
  for (std::size_t left = ids_.size(); left-- > 0 && !replaced;) {
    if (replaced.error() != Errc::not_found) break;
    replaced = co_await app_.replace(ids_[left], fresh);
  }
  if (replaced) {
    ids_.assign(1, fresh);
    co_return std::nullopt;
  }
  const std::error_code error = replaced.error();
  // It is here still if nobody was found whose place it could take. Else it has gone with a start()
  // that failed, maybe for something that was not found either.
  if (error == Errc::not_found) {
    const Result<> removed = co_await app_.remove(fresh);
    if (removed) co_return std::nullopt;
  }
  if (error != Errc::cancelled) {
    std::string why;
    for (const std::string& each : app_.problems()) why += (why.empty() ? "" : "; ") + each;
    co_return why.empty() ? error.message() : why;
  }
  if (!app_.running()) co_return "the app was stopped";
  ids_.push_back(fresh);  // who reloads is cancelled, and the change goes on
  co_return std::nullopt;
}

/// For the next start.
Task<> LiveService::register_anew(const std::function<ServiceId()>& add) {
  bool there = false;
  for (const ServiceId each : ids_) {
    const Result<> removed = co_await app_.remove(each);
    there = there || removed;
  }
  if (there) ids_.assign(1, add());
}

}  // namespace weir::config
