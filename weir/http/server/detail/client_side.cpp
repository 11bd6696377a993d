#include "weir/http/server/detail/client_side.hpp"

#include <cstdint>
#include <utility>

#include "weir/http/syntax/parse_error.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"

namespace weir::http {

/// A wait for the client. It is cancelled if the slot is revoked.
class ClientSide::Wait : weir::detail::FairSlots::Stall {
 public:
  Wait(ClientSide& side, const Context& own)
      : Stall(side.slot_, after(own.loop->now(), side.tracker_.time_left()), &revoke),
        side_(side),
        loop_(*own.loop),
        begun_(own.loop->now()),
        cancel_(own.cancel) {}

  Context context() noexcept { return {&loop_, &cancel_}; }
  /// Ends the wait, in which `bytes` were moved. Returns false if the slot was lost.
  bool end(std::uint64_t bytes) noexcept {
    unlink();
    side_.tracker_.record(loop_.now() - begun_, bytes);
    return !side_.slot_.revoked();
  }

 private:
  static void revoke(Stall& stall) noexcept { static_cast<Wait&>(stall).cancel_.cancel(); }

  ClientSide& side_;
  Loop& loop_;
  Instant begun_;
  CancelSource cancel_;
};

Task<Result<Bytes>> ClientSide::read(BodySource& body) {
  const Context own = co_await this_context();
  Wait wait(*this, own);
  auto reading = in_context(wait.context(), body.read());
  const Result<Bytes> piece = co_await std::move(reading);
  if (!wait.end(piece ? piece->size() : 0)) co_return fail(ParseError::body_timed_out);
  co_return piece;
}

Task<Result<>> ClientSide::write(BodySink& sink, Bytes piece) {
  const Context own = co_await this_context();
  Wait wait(*this, own);
  auto writing = in_context(wait.context(), sink.write(piece));
  const Result<> sent = co_await std::move(writing);
  if (!wait.end(sent ? piece.size() : 0)) co_return fail(Errc::timed_out);
  co_return sent;
}

}  // namespace weir::http
