#include "weir/app/config_live.hpp"

#include <cassert>
#include <exception>

#include "weir/task/drain.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::config::detail {
namespace {

std::string text_of(const Type& type, const void* value) {
  std::string text;
  type.write(text, value);
  return text;
}

bool is_unsure(const std::shared_ptr<Taker>& taker) noexcept {
  return taker->unsure && *taker->active;
}

bool same(const FileText& left, const FileText& right) noexcept {
  return left.text == right.text && left.error == right.error;
}

}  // namespace

Task<Refusal> taken(Refusal refusal) {
  co_return refusal;
}

Task<Refusal> taken_by(Task<> taking) {
  co_await std::move(taking);
  co_return std::nullopt;
}

LiveCore::LiveCore(const SectionType& type, Make make, std::shared_ptr<const void> first,
                   Sources sources, LiveOptions options)
    : type_(type),
      make_(make),
      sources_(std::move(sources)),
      choice_(choose_file(sources_)),
      options_(std::move(options)),
      now_(std::move(first)) {}

std::shared_ptr<const void> LiveCore::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::size_t LiveCore::field_at(const void* address) const {
  const auto whole = now();
  for (std::size_t index = 0; index < type_.fields().size(); ++index) {
    if (type_.member(whole.get(), index) == address) return index;
  }
  assert(false && "not a field of this struct");
  return Taker::everything;
}

Subscription LiveCore::add(Taker taker) {
  std::erase_if(takers_, [](const auto& each) { return !*each->active; });
  takers_.push_back(std::make_shared<Taker>(std::move(taker)));
  return Subscription(takers_.back()->active);
}

std::string LiveCore::name_of(const Taker& taker) const {
  if (taker.field == Taker::everything) return {};
  return std::string(type_.fields()[taker.field].name);
}

Task<Result<FileText>> LiveCore::read() {
  FileText file;
  file.path = choice_.path;
  auto text = co_await files::read_file(choice_.path, sources_.file_bytes_max);
  if (text) {
    file.text = std::move(*text);
  } else if (text.error() == Errc::cancelled) {
    co_return fail(Errc::cancelled);
  } else {
    file.error = text.error();
  }
  co_return file;
}

bool LiveCore::is_known(const FileText& file) const noexcept {
  if (std::ranges::any_of(takers_, &is_unsure)) return false;
  if (seen_) return same(file, seen_->file);
  // One that was never there, nor had to be.
  return !choice_.named && file.error == std::errc::no_such_file_or_directory;
}

/// What is in the file for as long as it must be, unless that is known already.
Task<Result<FileText>> LiveCore::read_settled() {
  auto file = co_await read();
  while (file && !is_known(*file)) {
    if (auto slept = co_await sleep(options_.settling); !slept) co_return fail(slept.error());
    auto again = co_await read();
    if (!again || same(*file, *again)) co_return again;
    file = std::move(again);
  }
  co_return file;
}

Task<Reload> LiveCore::reload() {
  if (choice_.path.empty()) co_return Reload::unchanged;
  Host& host = (co_await this_context()).loop->host();
  const auto alone = co_await reloading_.lock();
  if (!alone) co_return Reload::unchanged;
  const auto file = co_await read_settled();
  if (!file) co_return Reload::unchanged;
  if (is_known(*file)) {
    const bool was_refused = seen_ && seen_->became == Reload::refused;
    co_return was_refused ? Reload::refused : Reload::unchanged;
  }
  const std::optional<Reload> became = co_await take_over(*file, host);
  if (!became) co_return Reload::unchanged;
  seen_ = Seen{*file, *became};
  co_return *became;
}

Reload LiveCore::refuse(const Errors& errors, Host& host) const {
  if (options_.on_refused) {
    options_.on_refused(errors);
  } else {
    for (const Error& each : errors.all) host.log("weir: not taken: " + each.message());
  }
  return Reload::refused;
}

std::vector<std::shared_ptr<Taker>> LiveCore::concerned(const void* before, const void* next) {
  const bool anything = text_of(type_, before) != text_of(type_, next);
  const auto differs = [&](std::size_t field) {
    if (field == Taker::everything || !anything) return anything;
    const Type& type = type_.fields()[field].type();
    return text_of(type, type_.member(before, field)) != text_of(type, type_.member(next, field));
  };
  std::vector<std::shared_ptr<Taker>> found;
  for (const auto& taker : takers_) {
    if (!*taker->active) continue;
    if (taker->unsure || differs(taker->field)) found.push_back(taker);
  }
  return found;
}

Task<std::optional<Reload>> LiveCore::take_over(const FileText& file, Host& host) {
  const auto before = now();
  const std::shared_ptr<void> next = make_();
  Errors errors = fill(type_, next.get(), file, sources_);
  if (!errors.empty()) {
    co_await settle_unsure(before.get(), host);
    co_return refuse(errors, host);
  }
  const auto takers = concerned(before.get(), next.get());
  if (takers.empty() && text_of(type_, before.get()) == text_of(type_, next.get())) {
    co_return Reload::unchanged;
  }
  for (const auto& taker : takers) {
    if (!taker->check) continue;
    if (auto refusal = taker->check(next.get())) {
      errors.add({file.path, name_of(*taker), std::move(*refusal)});
    }
  }
  if (!errors.empty()) {
    co_await settle_unsure(before.get(), host);
    co_return refuse(errors, host);
  }
  set_now(next);
  for (std::size_t taken = 0; taken < takers.size(); ++taken) {
    auto refusal = co_await tell(*takers[taken], next.get(), host);
    const bool cancelled = takers[taken]->unsure;
    if (!refusal && !cancelled) continue;
    set_now(before);
    co_await take_back(std::span(takers).first(taken), before.get(), host);
    if (cancelled) co_return std::nullopt;
    errors.add({file.path, name_of(*takers[taken]), std::move(*refusal)});
    co_await settle_unsure(before.get(), host);
    co_return refuse(errors, host);
  }
  co_return Reload::changed;
}

void LiveCore::set_now(std::shared_ptr<const void> now) {
  const std::lock_guard lock(mutex_);
  now_ = std::move(now);
}

/// Gives a taker its part; why it cannot take it.
Task<Refusal> LiveCore::tell(Taker& taker, const void* whole, Host& host) {
  if (!*taker.active) {
    taker.unsure = false;
    co_return std::nullopt;
  }
  Refusal refusal;
  std::exception_ptr thrown;
  try {
    refusal = co_await taker.take(whole);
  } catch (...) {
    thrown = std::current_exception();
  }
  const Context context = co_await this_context();
  taker.unsure = taker.waits && context.cancelled();
  if (thrown == nullptr) co_return refusal;
  host.log("weir: configuration: who takes " + name_of(taker) + ": " + describe({}, thrown));
  co_return std::nullopt;
}

/// Where the file does not count: who was cut short before is given what does.
Task<> LiveCore::settle_unsure(const void* whole, Host& host) {
  const auto takers = takers_;
  for (const auto& taker : takers) {
    if (taker->unsure) static_cast<void>(co_await tell(*taker, whole, host));
  }
}

/// Those who have taken what another then could not take are given what they had before.
Task<> LiveCore::take_back(std::span<const std::shared_ptr<Taker>> takers, const void* before,
                           Host& host) {
  for (std::size_t left = takers.size(); left-- > 0;) {
    const auto refusal = co_await tell(*takers[left], before, host);
    if (!refusal) continue;
    host.log("weir: configuration: who takes " + name_of(*takers[left]) +
             " cannot go back: " + *refusal);
  }
}

Task<> LiveCore::watch() {
  const Context outside = co_await this_context();
  wiring::UntilDrain until(outside);
  for (;;) {
    const auto slept = co_await in_context(until.context(), as_task(sleep(options_.period)));
    if (!slept) co_return;
    static_cast<void>(co_await reload());
  }
}

}  // namespace weir::config::detail
