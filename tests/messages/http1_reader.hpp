// Reads messages of HTTP/1 from a stream, without Weir's parser.
#pragma once

#include <cstddef>
#include <string>
#include <system_error>

#include "tests/messages/message.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// An Http1Reader reads the parts of messages, and knows how the stream has ended. Each function
/// that returns false has met the end of the stream.
/// Cancel: each function returns as if the stream had failed.
/// Lifetime: the stream and the arguments outlive the tasks.
class Http1Reader {
 public:
  explicit Http1Reader(Stream& stream) noexcept : stream_(stream) {}

  /// Reads up to the end of a line.
  Task<bool> read_line(std::string& line);
  /// Reads fields up to an empty line. Returns false also for a line that is no field.
  Task<bool> read_fields(Fields& fields);
  /// Reads `size` bytes, and appends them to `into`.
  Task<bool> read_exactly(std::size_t size, std::string& into);
  /// Reads a chunked body and its trailers.
  /// Returns: `complete` or `cut`.
  Task<End> read_chunks(std::string& body, Fields& trailers);
  /// Reads all bytes up to the end of the stream.
  /// Returns: `complete` after an orderly end, `cut` after a failure.
  Task<End> read_all(std::string& into);

 private:
  Task<bool> fill();

  Stream& stream_;
  std::string input_;
  std::error_code end_;
};

}  // namespace weir::tests::messages
