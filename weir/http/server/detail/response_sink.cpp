#include "weir/http/server/detail/response_sink.hpp"

#include <cassert>

#include "weir/http/server/detail/response_body.hpp"
#include "weir/os/detail/io/file.hpp"

namespace weir::http {
namespace {

/// Marks a call of write(), also if it ends with an exception.
struct Writing {
  explicit Writing(bool& set) noexcept : flag(set) { flag = true; }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() { flag = false; }
  bool& flag;
};

}  // namespace

Task<Result<>> ResponseSink::write(Bytes piece) {
  if (piece.empty()) co_return {};
  assert(!writing_ && "calls of BodySink::write() must not overlap");
  if (left_ && piece.size() > *left_) {
    too_long_ = true;
    co_return fail(Errc::bad_input);
  }
  if (left_) *left_ -= piece.size();
  bytes_ += piece.size();
  const Writing writing(writing_);
  co_return co_await response_.send_piece(piece);
}

Result<std::size_t> ResponseSink::try_write_file(const os::FilePart& part) {
  assert(!writing_ && "calls of BodySink::write() must not overlap");
  if (left_ && part.size > *left_) {
    too_long_ = true;
    return fail(Errc::bad_input);
  }
  const auto sent = response_.try_send_file(part);
  if (!sent || *sent == 0) return sent;
  if (left_) *left_ -= *sent;
  bytes_ += *sent;
  return sent;
}

}  // namespace weir::http
