// A configuration that follows its file: who takes a part of it is told when that has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/config/config.hpp"
#include "weir/base/time.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::config {

/// Why something cannot be taken; nullopt: it can.
using Refusal = std::optional<std::string>;

enum class Reload : std::uint8_t {
  unchanged,  ///< also where the file has changed and says the same, and where it was cancelled
  changed,    ///< and everybody concerned has been told; or who was cancelled before has been
  refused,    ///< the file is wrong, or somebody has refused: everything is as it was
};

struct LiveOptions {
  Duration period = std::chrono::seconds(2);  ///< how often the file is looked at
  /// For how long a new file must have stayed as it is: an editor may be writing it.
  Duration settling = std::chrono::milliseconds(100);
  /// Told what is wrong with a new file, once for each. Without it: a log line of the host's each.
  std::function<void(const Errors&)> on_refused = {};
};

/// What on_change() has asked for, which ends with it. May outlive its Live. Threads: the Live's.
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

/// Who takes one field of a configuration, or all of it.
struct Taker {
  static constexpr std::size_t everything = static_cast<std::size_t>(-1);

  std::size_t field = everything;
  /// Both are given the whole configuration.
  std::function<Task<Refusal>(const void*)> take;
  std::function<Refusal(const void*)> check;
  bool waits = false;   ///< `take` does
  bool unsure = false;  ///< it was cancelled while it took something: who knows what it has
  std::shared_ptr<bool> active = std::make_shared<bool>(true);
};

/// The part of Live that does not depend on the type.
class LiveCore {
 public:
  using Make = std::shared_ptr<void> (*)();
  LiveCore(const SectionType& type, Make make, std::shared_ptr<const void> first, Sources sources,
           LiveOptions options);

  std::shared_ptr<const void> now() const;
  /// The field that is at this address in now().
  std::size_t field_at(const void* address) const;
  Subscription add(Taker taker);
  Task<Reload> reload();
  Task<> watch();

 private:
  struct Seen {
    FileText file;
    Reload became;
  };

  Task<Result<FileText>> read();
  Task<Result<FileText>> read_settled();
  bool is_known(const FileText& file) const noexcept;
  /// Nothing where it was cancelled in between.
  Task<std::optional<Reload>> take_over(const FileText& file, Host& host);
  std::vector<std::shared_ptr<Taker>> concerned(const void* before, const void* next);
  Task<Refusal> tell(Taker& taker, const void* whole, Host& host);
  Task<> settle_unsure(const void* whole, Host& host);
  Task<> take_back(std::span<const std::shared_ptr<Taker>> takers, const void* before, Host& host);
  void set_now(std::shared_ptr<const void> now);
  Reload refuse(const Errors& errors, Host& host) const;
  std::string name_of(const Taker& taker) const;

  const SectionType& type_;
  Make make_;
  Sources sources_;
  FileChoice choice_;
  LiveOptions options_;
  CoreMutex reloading_;
  std::optional<Seen> seen_;
  std::vector<std::shared_ptr<Taker>> takers_;
  mutable std::mutex mutex_;  // guards now_
  std::shared_ptr<const void> now_;
};

Task<Refusal> taken(Refusal refusal);
Task<Refusal> taken_by(Task<> taking);

}  // namespace detail

/// A configuration, and whoever wants to be told of its changes. A new file counts as a whole: if
/// anything in it is wrong, or anybody concerned refuses it, everything stays as it is, and the
/// reasons are told. The environment and the command line go on to win over the file. A file that
/// vanishes changes nothing.
///
/// The file is read again every period, and not only looked at: then a change counts, however it
/// came to the file and to its name (also when another file was renamed to it), and no other does.
///
/// Threads: one loop's, but for now(). Lifetime: outlives its tasks.
template <class T>
class Live {
 public:
  /// `first` is what load() has made of these sources.
  explicit Live(T first, Sources sources, LiveOptions options = {})
      : core_(
            detail::root_type<T>(), [] { return std::shared_ptr<void>(std::make_shared<T>()); },
            std::make_shared<const T>(std::move(first)), std::move(sources), std::move(options)) {}

  /// What counts now. It does not change: a later one is another. Any thread.
  std::shared_ptr<const T> now() const { return std::static_pointer_cast<const T>(core_.now()); }

  /// As long as the subscription lives: when a new file changes `part`, `check(new part)`, if any,
  /// may refuse it, before anybody takes anything; then `take(new part)` is called, a function that
  /// returns nothing, a Refusal, or a Task<> or Task<Refusal>, which is awaited. Those concerned
  /// are called in the order in which they came, after now() has changed. Where one finds only then
  /// that it cannot take it, now() is what it was before, and those who have taken it are given the
  /// old part again, the last one first. What `take` throws is logged, and the others are told.
  template <class Part, class Take>
  Subscription on_change(Part T::* part, Take take,
                         std::function<Refusal(const std::type_identity_t<Part>&)> check = {}) {
    const auto part_of = [part](const void* whole) -> const Part& {
      return static_cast<const T*>(whole)->*part;
    };
    const auto first = now();
    return add(core_.field_at(std::addressof((*first).*part)), part_of, std::move(take),
               std::move(check));
  }
  /// The same with any change and all of it.
  template <class Take>
  Subscription on_change(Take take, std::function<Refusal(const T&)> check = {}) {
    const auto whole_of = [](const void* whole) -> const T& {
      return *static_cast<const T*>(whole);
    };
    return add(detail::Taker::everything, whole_of, std::move(take), std::move(check));
  }

  /// Looks at the file now; returns when everybody concerned has been told. Not from inside a
  /// `take`, which it would wait for.
  /// Cancel: passed on to who waits while it takes its part. Then the file does not count: now() is
  /// what it was, those who have taken it are given the old part again, and who was cancelled is
  /// told by the next reload(), whatever the file says then.
  Task<Reload> reload() { return core_.reload(); }

  /// Looks at the file every period, until the loop drains.
  /// Cancel: returns, after those have been told whom it was telling.
  Task<> watch() { return core_.watch(); }

 private:
  template <class PartOf, class Take, class Check>
  Subscription add(std::size_t field, PartOf part_of, Take take, Check check) {
    using Returned = decltype(take(part_of(nullptr)));
    detail::Taker taker;
    taker.field = field;
    taker.waits = is_task<Returned>;
    taker.take = [part_of, take = std::move(take)](const void* whole) mutable -> Task<Refusal> {
      if constexpr (std::is_same_v<Returned, Task<Refusal>>) {
        return take(part_of(whole));
      } else if constexpr (is_task<Returned>) {
        return detail::taken_by(take(part_of(whole)));
      } else if constexpr (std::is_same_v<Returned, Refusal>) {
        return detail::taken(take(part_of(whole)));
      } else {
        static_assert(std::is_void_v<Returned>);
        take(part_of(whole));
        return detail::taken({});
      }
    };
    if (check) {
      taker.check = [part_of, check = std::move(check)](const void* whole) {
        return check(part_of(whole));
      };
    }
    return core_.add(std::move(taker));
  }

  detail::LiveCore core_;
};

}  // namespace weir::config
