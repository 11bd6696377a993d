// Reads a changed file, checks it, and notifies the subscribers of a configuration.
#include "weir/config/reload.hpp"

#include <cassert>
#include <exception>

#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/task/drain.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::config::detail {
namespace {

std::string text_of(const Type& type, const void* value) {
  std::string text;
  type.write(text, value);
  return text;
}

bool has_unknown_state(const std::shared_ptr<Subscriber>& subscriber) noexcept {
  return subscriber->state_unknown && *subscriber->active;
}

/// Returns the reason why the subscriber's check rejects its part of `whole`, or nullopt.
Rejection rejection_by_check(const Subscriber& subscriber, const void* whole) {
  if (!subscriber.check) return std::nullopt;
  try {
    return subscriber.check(whole);
  } catch (...) {
    return describe({}, std::current_exception());
  }
}

bool has_same_content(const FileText& left, const FileText& right) noexcept {
  return left.text == right.text && left.error == right.error;
}

}  // namespace

Task<Rejection> ready_result(Rejection rejection) {
  co_return rejection;
}

Task<Rejection> accept_after(Task<> applying) {
  co_await std::move(applying);
  co_return std::nullopt;
}

ReloadableBase::ReloadableBase(const SectionType& type, Make make,
                               std::shared_ptr<const void> first, Sources sources,
                               ReloadOptions options)
    : type_(type),
      make_(make),
      sources_(std::move(sources)),
      file_choice_(choose_file(sources_)),
      options_(std::move(options)),
      current_(std::move(first)) {}

std::shared_ptr<const void> ReloadableBase::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::size_t ReloadableBase::field_at(const void* address) const {
  const auto whole = current();
  for (std::size_t index = 0; index < type_.fields().size(); ++index) {
    if (type_.member(whole.get(), index) == address) return index;
  }
  assert(false && "not a field of this struct");
  return Subscriber::all_fields;
}

Subscription ReloadableBase::add(Subscriber subscriber) {
  std::erase_if(subscribers_, [](const auto& each) { return !*each->active; });
  subscribers_.push_back(std::make_shared<Subscriber>(std::move(subscriber)));
  return Subscription(subscribers_.back()->active);
}

std::string ReloadableBase::field_name_of(const Subscriber& subscriber) const {
  if (subscriber.field == Subscriber::all_fields) return {};
  return std::string(type_.fields()[subscriber.field].name);
}

void ReloadableBase::log(const Subscriber& subscriber, std::string_view what,
                         loop::PlatformLog& platform) const {
  const std::string field = field_name_of(subscriber);
  platform.log("weir: configuration: subscriber to " + (field.empty() ? "all fields" : field) +
               std::string(what));
}

Task<Result<FileText>> ReloadableBase::read() {
  FileText file;
  file.path = file_choice_.path;
  auto text = co_await files::read_file(file_choice_.path, sources_.file_bytes_max);
  if (text) {
    file.text = std::move(*text);
  } else if (text.error() == Errc::cancelled) {
    co_return fail(Errc::cancelled);
  } else {
    file.error = text.error();
  }
  co_return file;
}

bool ReloadableBase::is_already_applied(const FileText& file) const noexcept {
  if (std::ranges::any_of(subscribers_, &has_unknown_state)) return false;
  if (last_reload_) return has_same_content(file, last_reload_->file);
  // The file never existed and is not required.
  return !file_choice_.required && file.error == std::errc::no_such_file_or_directory;
}

/// Reads the file until it has been unchanged for debounce_time, or until it is known already.
Task<Result<FileText>> ReloadableBase::read_until_stable() {
  auto file = co_await read();
  while (file && !is_already_applied(*file)) {
    WEIR_CO_TRY(co_await sleep(options_.debounce_time));
    auto again = co_await read();
    if (!again || has_same_content(*file, *again)) co_return again;
    file = std::move(again);
  }
  co_return file;
}

Task<ReloadResult> ReloadableBase::reload() {
  if (file_choice_.path.empty()) co_return ReloadResult::unchanged;
  loop::PlatformLog& platform = (co_await this_context()).loop->platform();
  const auto lock = co_await reload_mutex_.lock();
  if (!lock) co_return ReloadResult::unchanged;
  const auto file = co_await read_until_stable();
  if (!file) co_return ReloadResult::unchanged;
  if (is_already_applied(*file)) {
    const bool was_rejected = last_reload_ && last_reload_->result == ReloadResult::rejected;
    co_return was_rejected ? ReloadResult::rejected : ReloadResult::unchanged;
  }
  const std::optional<ReloadResult> result = co_await apply_file(*file, platform);
  if (!result) co_return ReloadResult::unchanged;
  last_reload_ = LastReload{*file, *result};
  co_return *result;
}

ReloadResult ReloadableBase::reject(const Errors& errors, loop::PlatformLog& platform) const {
  if (options_.on_rejected) {
    options_.on_rejected(errors);
  } else {
    for (const Error& each : errors.all)
      platform.log("weir: configuration rejected: " + each.message());
  }
  return ReloadResult::rejected;
}

std::vector<std::shared_ptr<Subscriber>> ReloadableBase::affected_subscribers(const void* before,
                                                                              const void* next) {
  const bool anything = text_of(type_, before) != text_of(type_, next);
  const auto differs = [&](std::size_t field) {
    if (field == Subscriber::all_fields || !anything) return anything;
    const Type& type = type_.fields()[field].type();
    return text_of(type, type_.member(before, field)) != text_of(type, type_.member(next, field));
  };
  std::vector<std::shared_ptr<Subscriber>> found;
  for (const auto& subscriber : subscribers_) {
    if (!*subscriber->active) continue;
    if (subscriber->state_unknown || differs(subscriber->field)) found.push_back(subscriber);
  }
  return found;
}

Task<std::optional<ReloadResult>> ReloadableBase::apply_file(const FileText& file,
                                                             loop::PlatformLog& platform) {
  const auto before = current();
  const std::shared_ptr<void> next = make_();
  Errors errors = fill(type_, next.get(), file, sources_);
  if (!errors.empty()) {
    co_await reapply_to_unknown(before.get(), platform);
    co_return reject(errors, platform);
  }
  const auto subscribers = affected_subscribers(before.get(), next.get());
  if (subscribers.empty() && text_of(type_, before.get()) == text_of(type_, next.get())) {
    co_return ReloadResult::unchanged;
  }
  for (const auto& subscriber : subscribers) {
    if (auto rejection = rejection_by_check(*subscriber, next.get())) {
      errors.add({file.path, field_name_of(*subscriber), std::move(*rejection)});
    }
  }
  if (!errors.empty()) {
    co_await reapply_to_unknown(before.get(), platform);
    co_return reject(errors, platform);
  }
  set_current(next);
  for (std::size_t index = 0; index < subscribers.size(); ++index) {
    auto rejection = co_await notify(*subscribers[index], next.get(), platform);
    const bool cancelled = subscribers[index]->state_unknown;
    if (!rejection && !cancelled) continue;
    set_current(before);
    co_await roll_back(std::span(subscribers).first(index), before.get(), platform);
    if (cancelled) co_return std::nullopt;
    errors.add({file.path, field_name_of(*subscribers[index]), std::move(*rejection)});
    co_await reapply_to_unknown(before.get(), platform);
    co_return reject(errors, platform);
  }
  co_return ReloadResult::changed;
}

void ReloadableBase::set_current(std::shared_ptr<const void> value) {
  const std::lock_guard lock(mutex_);
  current_ = std::move(value);
}

/// Gives a subscriber its part of `whole`.
/// Returns: the reason why the subscriber rejects the part, or nullopt.
Task<Rejection> ReloadableBase::notify(Subscriber& subscriber, const void* whole,
                                       loop::PlatformLog& platform) {
  if (!*subscriber.active) {
    subscriber.state_unknown = false;
    co_return std::nullopt;
  }
  Rejection rejection;
  std::exception_ptr thrown;
  try {
    rejection = co_await subscriber.apply(whole);
  } catch (...) {
    thrown = std::current_exception();
  }
  const Context context = co_await this_context();
  subscriber.state_unknown = subscriber.is_async && context.cancelled();
  if (thrown == nullptr) co_return rejection;
  log(subscriber, ": " + describe({}, thrown), platform);
  co_return std::nullopt;
}

/// Gives the current value again to subscribers that were cancelled, after a file was rejected.
Task<> ReloadableBase::reapply_to_unknown(const void* whole, loop::PlatformLog& platform) {
  const auto subscribers = subscribers_;
  for (const auto& subscriber : subscribers) {
    if (subscriber->state_unknown) std::ignore = co_await notify(*subscriber, whole, platform);
  }
}

/// Gives the old value again to subscribers that have taken a value which a later one rejected.
Task<> ReloadableBase::roll_back(std::span<const std::shared_ptr<Subscriber>> subscribers,
                                 const void* before, loop::PlatformLog& platform) {
  for (std::size_t left = subscribers.size(); left-- > 0;) {
    const auto rejection = co_await notify(*subscribers[left], before, platform);
    if (!rejection) continue;
    log(*subscribers[left], " cannot be rolled back: " + *rejection, platform);
  }
}

Task<> ReloadableBase::watch() {
  const Context outside = co_await this_context();
  inject::CancelOnDrain until(outside);
  for (;;) {
    const auto slept = co_await in_context(until.context(), as_task(sleep(options_.poll_interval)));
    if (!slept) co_return;
    std::ignore = co_await reload();
  }
}

}  // namespace weir::config::detail
