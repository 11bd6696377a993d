// Reloadable<T> is a configuration that follows its file and notifies the subscribers of changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/config/config.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::config {

/// The reason why a subscriber rejects a value; nullopt if it accepts the value.
using Rejection = std::optional<std::string>;

/// The outcome of one reload.
enum class ReloadResult : std::uint8_t {
  /// The configuration is the same, whether or not the file has changed, or reload() was
  /// cancelled.
  unchanged,
  /// All affected subscribers have been notified. The configuration can still be the same: then
  /// only subscribers whose last call was cancelled have been called again.
  changed,
  /// The file is wrong or a subscriber has rejected it; the configuration is as it was before.
  rejected,
};

/// ReloadOptions sets when Reloadable::watch() applies a new file, and where its errors go.
struct ReloadOptions {
  /// The time between two reads of the file by watch().
  Duration poll_interval = std::chrono::seconds(2);
  /// The time for which a new file must stay unchanged before it is applied; an editor may be
  /// writing.
  Duration debounce_time = std::chrono::milliseconds(100);
  /// The callback for the errors of a rejected file, called once for each new file. The default
  /// writes each error to the platform's log.
  std::function<void(const Errors&)> on_rejected = {};
};

/// Keeps a subscription that on_change() has made; the subscription ends when this object is
/// destroyed.
/// Threads: the Reloadable's.
/// Lifetime: may outlive its Reloadable.
class [[nodiscard]] Subscription {
 public:
  Subscription() noexcept = default;
  explicit Subscription(std::shared_ptr<bool> active) noexcept : active_(std::move(active)) {}
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    std::swap(active_, other.active_);
    return *this;
  }
  ~Subscription() {
    if (active_ != nullptr) *active_ = false;
  }

 private:
  std::shared_ptr<bool> active_;
};

namespace detail {

/// A Subscriber receives one field of a configuration, or the whole configuration.
struct Subscriber {
  static constexpr std::size_t all_fields = static_cast<std::size_t>(-1);

  std::size_t field = all_fields;
  /// Both functions take the address of the whole configuration.
  std::function<Task<Rejection>(const void*)> apply;
  std::function<Rejection(const void*)> check;
  bool is_async = false;  ///< True if `apply` was made from a function that returns a task.
  /// True if `apply` was cancelled, so that the value that it has taken is not known.
  bool state_unknown = false;
  std::shared_ptr<bool> active = std::make_shared<bool>(true);
};

/// ReloadableBase is the part of Reloadable that does not depend on the type.
class ReloadableBase {
 public:
  using Make = std::shared_ptr<void> (*)();
  ReloadableBase(const SectionType& type, Make make, std::shared_ptr<const void> first,
                 Sources sources, ReloadOptions options);

  std::shared_ptr<const void> current() const;
  /// Returns the index of the field at `address`, which points into current().
  std::size_t field_at(const void* address) const;
  Subscription add(Subscriber subscriber);
  Task<ReloadResult> reload();
  Task<> watch();

 private:
  struct LastReload {
    FileText file;
    ReloadResult result;
  };

  Task<Result<FileText>> read();
  Task<Result<FileText>> read_until_stable();
  bool is_already_applied(const FileText& file) const noexcept;
  /// Returns nullopt if a subscriber was cancelled while it took its part.
  Task<std::optional<ReloadResult>> apply_file(const FileText& file, loop::PlatformLog& platform);
  std::vector<std::shared_ptr<Subscriber>> affected_subscribers(const void* before,
                                                                const void* next);
  Task<Rejection> notify(Subscriber& subscriber, const void* whole, loop::PlatformLog& platform);
  Task<> reapply_to_unknown(const void* whole, loop::PlatformLog& platform);
  Task<> roll_back(std::span<const std::shared_ptr<Subscriber>> subscribers, const void* before,
                   loop::PlatformLog& platform);
  void set_current(std::shared_ptr<const void> value);
  ReloadResult reject(const Errors& errors, loop::PlatformLog& platform) const;
  std::string field_name_of(const Subscriber& subscriber) const;
  void log(const Subscriber& subscriber, std::string_view what, loop::PlatformLog& platform) const;

  const SectionType& type_;
  Make make_;
  Sources sources_;
  FileChoice file_choice_;
  ReloadOptions options_;
  Mutex reload_mutex_;
  std::optional<LastReload> last_reload_;
  std::vector<std::shared_ptr<Subscriber>> subscribers_;
  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<const void> current_;
};

Task<Rejection> ready_result(Rejection rejection);
Task<Rejection> accept_after(Task<> applying);

}  // namespace detail

/// A Reloadable is a configuration that follows its file and notifies subscribers of changes. It
/// applies a new file as a whole. If the file has any error, or an affected subscriber rejects it,
/// the configuration stays as it was and the errors are reported. The environment and the command
/// line still override the file. A file that vanishes changes nothing.
///
/// Each poll reads the whole file instead of its time stamp or size. A change is thus found
/// however the content got there, also if another file was renamed to the file's name. Nothing
/// else counts as a change.
///
/// Threads: one loop's; current() may be called from any thread.
/// Lifetime: outlives the tasks of reload() and watch().
template <class T>
class Reloadable {
 public:
  /// Takes `first`, which load() has made from the same `sources`.
  explicit Reloadable(T first, Sources sources, ReloadOptions options = {})
      : base_(
            detail::root_type<T>(), [] { return std::shared_ptr<void>(std::make_shared<T>()); },
            std::make_shared<const T>(std::move(first)), std::move(sources), std::move(options)) {}

  /// Returns the current configuration, which is immutable; a reload replaces it by another
  /// object.
  /// Threads: any.
  std::shared_ptr<const T> current() const {
    return std::static_pointer_cast<const T>(base_.current());
  }

  /// Subscribes to changes of `part` for as long as the returned subscription lives. Later calls
  /// destroy the functions of subscriptions that have ended. A new file that changes `part` first
  /// causes a call of `check(new part)`, if it is given. A check may reject the file before any
  /// subscriber takes its part. An exception of a check rejects the file too. All checks of changed
  /// parts are called, and all their rejections are reported. Reloadable then changes current() and
  /// calls `apply(new part)`. The function `apply` returns void, a Rejection, a Task<> or a
  /// Task<Rejection>; a task is awaited.
  ///
  /// Affected subscribers are called in the order of their subscription. If an `apply` rejects its
  /// part, current() is set back. The subscribers that have already taken the new part then get the
  /// old part again, the last one first. An exception of `apply` is logged, and the other
  /// subscribers are still called.
  template <class Part, class Apply>
  Subscription on_change(Part T::* part, Apply apply,
                         std::function<Rejection(const std::type_identity_t<Part>&)> check = {}) {
    const auto part_of = [part](const void* whole) -> const Part& {
      return static_cast<const T*>(whole)->*part;
    };
    const auto first = current();
    return add(base_.field_at(std::addressof((*first).*part)), part_of, std::move(apply),
               std::move(check));
  }
  /// Subscribes to every change; `check` and `apply` get the whole configuration.
  template <class Apply>
  Subscription on_change(Apply apply, std::function<Rejection(const T&)> check = {}) {
    const auto whole_of = [](const void* whole) -> const T& {
      return *static_cast<const T*>(whole);
    };
    return add(detail::Subscriber::all_fields, whole_of, std::move(apply), std::move(check));
  }

  /// Reads the file now and applies it; returns when all affected subscribers have been notified.
  /// An `apply` must not call reload(), which would wait for that `apply`.
  /// Cancel: passed on to the `apply` that is running. The new file is then not applied: current()
  /// is set back, and the subscribers that have taken their part get the old part again. The next
  /// reload() calls the cancelled subscriber again, whatever the file then contains.
  Task<ReloadResult> reload() { return base_.reload(); }

  /// Calls reload() every poll_interval until the loop drains.
  /// Cancel: also cancels a reload() in progress; returns when that reload() has ended.
  Task<> watch() { return base_.watch(); }

 private:
  template <class PartOf, class Apply, class Check>
  Subscription add(std::size_t field, PartOf part_of, Apply apply, Check check) {
    using Returned = decltype(apply(part_of(nullptr)));
    detail::Subscriber subscriber;
    subscriber.field = field;
    subscriber.is_async = is_task<Returned>;
    subscriber.apply = [part_of,
                        apply = std::move(apply)](const void* whole) mutable -> Task<Rejection> {
      if constexpr (std::is_same_v<Returned, Task<Rejection>>) {
        return apply(part_of(whole));
      } else if constexpr (is_task<Returned>) {
        return detail::accept_after(apply(part_of(whole)));
      } else if constexpr (std::is_same_v<Returned, Rejection>) {
        return detail::ready_result(apply(part_of(whole)));
      } else {
        static_assert(std::is_void_v<Returned>);
        apply(part_of(whole));
        return detail::ready_result({});
      }
    };
    if (check) {
      subscriber.check = [part_of, check = std::move(check)](const void* whole) {
        return check(part_of(whole));
      };
    }
    return base_.add(std::move(subscriber));
  }

  detail::ReloadableBase base_;
};

}  // namespace weir::config
