#include "weir/web/encoding/detail/compressing_sink.hpp"

#include <algorithm>

#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/next_turn.hpp"

namespace weir::http::detail {

using compression::Flush;

/// Counts the bytes of a body whose length is known.
Result<> CompressingSink::count(Bytes piece) noexcept {
  if (!left_) return {};
  if (piece.size() > *left_) return fail(Errc::bad_input);
  *left_ -= piece.size();
  return {};
}

Task<Result<>> CompressingSink::write(Bytes piece) {
  if (piece.empty()) co_return {};
  WEIR_CO_TRY(count(piece));
  co_return co_await send(piece, Flush::sync);
}

Task<Result<>> CompressingSink::finish(Bytes piece) {
  WEIR_CO_TRY(count(piece));
  if (left_.value_or(0) != 0) co_return fail(Errc::bad_input);
  WEIR_CO_TRY(co_await send(piece, Flush::finish));
  for (const HeaderField each : trailers()) {
    if (is_coding_field(each.name)) continue;  // a digest of the other bytes
    WEIR_CO_TRY(to_.add_trailer(each.name, each.value));
  }
  co_return {};
}

Task<Result<>> CompressingSink::send(Bytes piece, Flush flush) {
  Loop& loop = *(co_await this_context()).loop;
  for (bool ends = false; !ends;) {
    work_.enter(loop.counters().turns.value());
    if (work_.is_used()) {
      co_await weir::detail::NextTurn(loop);
      continue;
    }
    const Bytes part = work_.input(piece);
    piece = piece.subspan(part.size());
    ends = piece.empty();
    buffer_.clear();
    compressor_.append(part, ends ? flush : Flush::none, buffer_);
    work_.count({.consumed = part.size()});
    if (!buffer_.empty()) {
      const Result<> sent = co_await to_.write(buffer_.bytes());
      if (!sent) co_return sent;
    }
  }
  co_return {};
}

Task<Result<>> CompressedBody::operator()(BodySink& sink) {
  CompressingSink coded(sink, *compressor_, body_.length());
  StreamFunction* const stream = body_.stream();
  if (stream == nullptr) co_return co_await coded.finish(to_bytes(body_.text()));
  const Result<> written = co_await (*stream)(coded);
  if (!written) co_return written;
  co_return co_await coded.finish({});
}

}  // namespace weir::http::detail
