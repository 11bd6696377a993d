// H2Wire: a connection to a server of HTTP/2, for raw frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/wire.hpp"
#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// The content of the PING whose answer H2Answers counts.
inline constexpr std::string_view h2_last_ping = "8 bytes!";

/// The window of a connection and of a stream before SETTINGS and WINDOW_UPDATE (RFC 9113, 6.9.2).
inline constexpr std::uint32_t h2_window_default = 65'535;

/// Returns a frame of any type and with any payload (RFC 9113, 4.1).
std::string h2_frame(http::FrameType type, std::uint8_t flags, std::uint32_t stream,
                     std::string_view payload);

/// Returns the preface of a client, and empty SETTINGS.
std::string h2_begin();

struct H2Field {
  std::string name;
  std::string value;
};

/// Returns a field block of literals without indexing and without Huffman codes.
std::string h2_block(const std::vector<H2Field>& fields);

/// The answer on one stream.
struct H2Answer {
  int status = 0;
  bool ended = false;
  std::optional<http::H2Error> reset;
  std::vector<H2Field> fields;  ///< fields of all its field blocks, without :status
  std::string body;             ///< at most Response::stored_body_bytes_max

  /// Returns true if a field block has a field of this name.
  bool has(std::string_view name) const noexcept;
  bool complete() const noexcept { return (ended && status >= 200) || reset; }
};

/// Reads the frames of a server.
class H2Answers {
 public:
  void read(std::string_view bytes);

  /// Returns true if the first frame was SETTINGS.
  bool speaks_h2() const noexcept { return speaks_h2_; }
  /// Returns true if the first bytes were something else.
  bool speaks_other() const noexcept { return speaks_other_; }
  /// Returns the answer on a stream so far.
  /// Lifetime: until the next call of read().
  const H2Answer& on(std::uint32_t stream) const;
  /// Returns the error of the last GOAWAY.
  std::optional<http::H2Error> goaway() const noexcept { return goaway_; }
  /// Returns the number of answers to PING with `h2_last_ping`.
  std::size_t pings() const noexcept { return pings_; }
  std::size_t resets() const noexcept { return resets_; }
  /// Returns the bytes by which the server has enlarged the window of the connection, in addition
  /// to h2_window_default.
  std::uint64_t granted() const noexcept { return granted_; }
  /// Returns the window of a new stream.
  std::uint32_t initial_window() const noexcept { return initial_window_; }

 private:
  void take(const http::FrameHeader& header, std::string_view payload);
  void read_data(const http::FrameHeader& header, std::string_view payload);
  void read_settings(std::string_view payload);
  void read_block(std::string_view block);

  std::string input_;
  std::string block_;
  std::uint32_t block_stream_ = 0;
  bool block_ends_stream_ = false;
  http::HpackTable table_;
  std::map<std::uint32_t, H2Answer> answers_;
  std::optional<http::H2Error> goaway_;
  std::size_t pings_ = 0;
  std::size_t resets_ = 0;
  std::uint64_t granted_ = 0;
  std::uint32_t initial_window_ = h2_window_default;
  bool speaks_h2_ = false;
  bool speaks_other_ = false;
};

/// An H2Wire sends raw bytes to the target and reads the frames of the server.
class H2Wire final : public Wire {
 public:
  /// The state of the answers that ends an exchange. A close always ends it.
  using Done = std::function<bool(const H2Answers& answers)>;

  explicit H2Wire(const CheckTarget& target) noexcept : Wire(target) {}

  /// Connects to the target, and chooses HTTP/2 by ALPN if the target has TLS.
  /// Returns: true if connected; else describe() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> open();
  /// Sends and receives at the same time, until the answers are `done` or the server has closed.
  /// Cancel: ends early.
  Task<> exchange(std::string_view bytes, const Done& done, Duration wait_timeout);

  const H2Answers& answers() const noexcept { return answers_; }
  /// Returns true if the server has not chosen HTTP/2.
  bool speaks_other() const noexcept;
  /// Returns the verdict on a connection without HTTP/2; nullopt: the server speaks HTTP/2.
  std::optional<Verdict> verdict_without_h2(const std::string& expected) const;
  /// Describes what happened on a stream and on the connection: "200", "RST_STREAM 1, closed".
  std::string describe(std::uint32_t stream = 1) const;

 private:
  bool is_done() const noexcept override { return speaks_other() || (done_ && done_(answers_)); }
  void on_input(Buffer input) override { answers_.read(input.text()); }

  H2Answers answers_;
  Done done_;
};

}  // namespace weir::check
