// The reading of a compressed body, for the responses of a client and the requests of a server.
#pragma once

#include <optional>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/compression/detail/turn_work.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/task/task.hpp"

namespace weir::http::detail {

/// Decompresses a body while it is read, one buffer at a time. It waits for the next turn of the
/// loop when the work of one turn is done, see compression::TurnWork.
/// Threads: one at a time.
class DecompressingReader {
 public:
  explicit DecompressingReader(compression::Decompressor decompressor) noexcept
      : decompressor_(std::move(decompressor)) {}

  /// Returns the next decompressed bytes of a body; empty at its end and in all later calls. The
  /// task of `source.read()` returns a Result<Bytes> that is empty at the end.
  /// Errors: those of the source; a DecompressError, which ends the body.
  /// Cancel: that of the source; no data is lost.
  /// Lifetime: the bytes are valid until the next call. The source outlives the call.
  template <class Source>
  Task<Result<Bytes>> read(Source& source) {
    if (!buffer_.owns_memory()) buffer_ = Buffer::with_capacity();
    const Context own = co_await this_context();
    while (decompressor_) {
      if (pending_.empty() && complete_) {
        const Result<Bytes> piece = co_await source.read();
        if (!piece) co_return fail(piece.error());
        if (piece->empty()) co_return end();
        pending_ = *piece;
      }
      work_.enter(own.loop->counters().turns.value());
      if (work_.is_used()) {
        co_await weir::detail::NextTurn(*own.loop);
        continue;
      }
      buffer_.clear();
      const MutableBytes room = buffer_.room();
      const auto progress =
          decompressor_->decompress(work_.input(pending_), room.first(work_.output(room.size())));
      if (!progress) {
        decompressor_.reset();
        co_return fail(progress.error());
      }
      work_.count(*progress);
      pending_ = pending_.subspan(progress->consumed);
      complete_ = progress->complete;
      buffer_.commit(progress->produced);
      if (progress->produced > 0) co_return buffer_.bytes();
    }
    co_return Bytes();
  }
  /// Returns true after the end of the body or a DecompressError. The memory of the decompressor is
  /// then free.
  bool ended() const noexcept { return !decompressor_; }

 private:
  Result<Bytes> end() {
    const auto finished = decompressor_->finish();
    decompressor_.reset();
    if (!finished) return fail(finished.error());
    return Bytes();
  }

  std::optional<compression::Decompressor> decompressor_;  // until the end of the body
  compression::TurnWork work_;
  Buffer buffer_;
  Bytes pending_;         // compressed bytes of the last read
  bool complete_ = true;  // the decompressor has no more output without input
};

}  // namespace weir::http::detail
