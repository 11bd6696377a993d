#include "weir/http/server/detail/interim_sender.hpp"

#include <utility>

namespace weir::http {

/// Counts one that is being sent, also if an exception ends it.
class InterimSender::Pending {
 public:
  explicit Pending(InterimSender& sender) noexcept : sender_(sender) { ++sender.pending_; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (--sender_.pending_ != 0 || sender_.waiting_ == nullptr) return;
    sender_.loop_.ready(*std::exchange(sender_.waiting_, nullptr));
  }

 private:
  InterimSender& sender_;
};

Task<Result<>> InterimSender::send(const ResponseHead& head) {
  if (!open_) co_return fail(Errc::closed);
  const Pending pending(*this);
  auto sending = carrier_.send_interim(head);
  co_return co_await std::move(sending);
}

}  // namespace weir::http
