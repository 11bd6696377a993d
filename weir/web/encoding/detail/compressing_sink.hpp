// Bodies that are compressed while they are sent.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/buffer.hpp"
#include "weir/compression/compressor_pool.hpp"
#include "weir/compression/detail/turn_work.hpp"
#include "weir/http/message/body.hpp"
#include "weir/task/sync/detail/fair_slots.hpp"
#include "weir/task/task.hpp"

namespace weir::http::detail {

/// Compresses the pieces of a body into another sink. Each write() is flushed. A turn of the loop
/// compresses 32 KiB, in one write() or in many: a compressor may have no output for them.
class CompressingSink final : public BodySink {
 public:
  static constexpr std::size_t slice = 32 * 1024;

  /// `length` is the number of bytes of the body, if it is known.
  CompressingSink(BodySink& to, compression::Compressor& compressor,
                  std::optional<std::uint64_t> length) noexcept
      : to_(to), compressor_(compressor), left_(length) {}

  using BodySink::write;
  Task<Result<>> write(Bytes piece) override;
  /// Sends the last piece, the end of the compressed data, and the trailers.
  /// Errors: those of write(), and Errc::bad_input if bytes of a known length are missing.
  /// Cancel: that of write().
  Task<Result<>> finish(Bytes piece);

 private:
  Result<> count(Bytes piece) noexcept;
  Task<Result<>> send(Bytes piece, compression::Flush flush);

  BodySink& to_;
  compression::Compressor& compressor_;
  std::optional<std::uint64_t> left_;
  compression::TurnWork work_{slice};
  Buffer buffer_;
};

/// The function of a compressed body, which was streamed or too large for one step.
class CompressedBody {
 public:
  /// `slot` is that of the client.
  CompressedBody(Body body, compression::PooledCompressor compressor,
                 weir::detail::FairSlots::Slot slot = {}) noexcept
      : body_(std::move(body)), slot_(std::move(slot)), compressor_(std::move(compressor)) {}
  /// Cancel: passed on to the sink and to the function of the body.
  Task<Result<>> operator()(BodySink& sink);

 private:
  Body body_;
  weir::detail::FairSlots::Slot slot_;
  compression::PooledCompressor compressor_;
};

}  // namespace weir::http::detail
