// The awaitables of mailboxes and subscriptions that a select() also takes.
#pragma once

namespace weir::detail {

/// A Selectable waits for `Source`, either alone as an `Awaiter` or as a `Case` of a select().
template <class Source, class Awaiter, class Case>
class [[nodiscard]] Selectable {
 public:
  explicit Selectable(Source& source) noexcept : source_(&source) {}
  Awaiter operator co_await() && noexcept { return Awaiter(*source_); }
  Case as_wait() const noexcept { return Case(*source_); }

 private:
  Source* source_;
};

}  // namespace weir::detail
