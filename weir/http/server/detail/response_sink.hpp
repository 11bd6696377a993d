// The sink of a streamed response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/http/message/body.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ResponseBody;

/// The sink of a streamed response. A body with a length accepts no piece that exceeds it.
/// Threads: its loop's.
/// Lifetime: the ResponseBody outlives it.
class ResponseSink final : public BodySink {
 public:
  ResponseSink(ResponseBody& response, std::optional<std::uint64_t> length) noexcept
      : response_(response), left_(length) {}

  using BodySink::write;
  Task<Result<>> write(Bytes piece) override;
  Result<std::size_t> try_write_file(const os::FilePart& part) override;

  /// Returns true if the function wrote more bytes than the length of the body.
  bool too_long() const noexcept { return too_long_; }
  /// Returns true if bytes of a body with a length are missing.
  bool incomplete() const noexcept { return left_.value_or(0) != 0; }
  /// Returns the number of bytes that were written.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  ResponseBody& response_;
  std::optional<std::uint64_t> left_;  // bytes that the length of the body still allows
  std::uint64_t bytes_ = 0;
  bool too_long_ = false;
  bool writing_ = false;
};

}  // namespace weir::http
