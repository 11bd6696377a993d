// Verifies the responses of one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/number_placeholder.hpp"
#include "weir/http/detail/h1/response_parser.hpp"

namespace weir::bench {

/// The error of a response.
enum class ResponseError : std::uint8_t {
  none,
  malformed,   ///< bytes that the parser of the HTTP client rejects
  no_length,   ///< no Content-Length and not chunked, on a connection that stays open
  status,      ///< unexpected status
  length,      ///< unexpected length of the body
  body,        ///< body that differs from the first response
  number,      ///< number of another request in the body
  unexpected,  ///< bytes after the last response that was requested
};

struct ResponseRules {
  unsigned status = 200;
  /// Size of each body. nullopt: the size of the first body.
  std::optional<std::uint64_t> body_bytes;
  /// True if bodies may differ from each other, also in length.
  bool bodies_vary = false;
  /// True for responses to HEAD, which announce a length and have no body.
  bool to_head = false;
  /// True if the end of the connection may be the end of a body.
  bool closing = false;
  /// The number in the requests, which the bodies of their responses repeat. Such bodies have at
  /// most ResponseReference::body_bytes_max bytes.
  NumberPlaceholder number_placeholder;
};

/// The reference that all responses of one run are compared with. The first response sets it.
/// Threads: one at a time.
/// Lifetime: outlives its readers.
struct ResponseReference {
  /// Largest part of a body that is compared byte by byte. Only the length of the rest is
  /// compared.
  static constexpr std::size_t body_bytes_max = 64 * 1024;

  ResponseRules rules;
  bool known = false;
  std::string body;
  std::uint64_t body_bytes = 0;
  std::size_t number_at = 0;  ///< position of the number in `body`
  /// Last response that was verified, including its head. An equal response needs no parsing.
  std::string last_verified;
  bool last_verified_closes = false;
};

/// Verifies the responses of one connection, which arrive in pieces of any size. It uses no
/// sockets. Threads: one at a time.
class ResponseReader {
 public:
  explicit ResponseReader(ResponseReference& reference) noexcept : reference_(&reference) {}

  /// Sets the number that the next response must have, if ResponseRules has a placeholder. Later
  /// responses have the numbers that follow.
  void expect(std::uint64_t number) noexcept { number_ = number; }
  /// Reads `input`. It is an error if more than `wanted` responses arrive. The reader ignores all
  /// input after an error.
  /// Returns: the number of responses that end in `input`.
  unsigned read(std::string_view input, unsigned wanted);
  /// Handles the end of the connection.
  /// Returns: 1 if the end completed a response, else 0.
  unsigned end();

  ResponseError error() const noexcept { return error_; }
  /// Returns true if the last response announced that the connection closes after it.
  bool closes() const noexcept { return closes_; }
  /// Returns true if the reader is between two responses.
  bool idle() const noexcept { return state_ == State::idle; }
  /// Returns the expected and the actual value, if they are known, and the head that was read
  /// last.
  std::string describe_error() const;

 private:
  enum class State : std::uint8_t { idle, head, body };

  /// Each step consumes what it can from the front of `input`. It returns true when a response is
  /// complete.
  bool step(std::string_view& input);
  void begin();
  bool read_head(std::string_view& input);
  bool read_body(std::string_view& input);

  bool check_interim();
  bool check_head();
  void append_body(std::string_view piece);
  bool finish();
  bool check_number();
  bool check_length(std::uint64_t expected);
  /// Records that byte `at` of the body differs from the expected one. Only the first such byte
  /// is kept.
  void record_difference(std::uint64_t at, char expected, char found);
  void compare(std::uint64_t at, std::string_view expected, std::string_view found);
  bool fail(ResponseError fault) noexcept {
    error_ = fault;
    return false;
  }

  ResponseReference* reference_;
  State state_ = State::idle;
  ResponseError error_ = ResponseError::none;
  bool closes_ = false;
  bool first_ = false;            // true: no reference existed when this response began
  std::uint64_t body_bytes_ = 0;  // bytes of the body that were read
  std::string head_;              // part of the head that was read
  std::string difference_;        // description of the first different byte of the body
  std::string mismatch_;          // description of the expected and the actual value
  std::string first_body_;        // body of a response that is `first_` or has a number
  std::uint64_t number_ = 0;      // number that the present response must have
  http::ResponseParser parser_;
};

/// Returns the name of an error for reports and JSON, for example "wrong status".
std::string_view name_of(ResponseError fault) noexcept;

}  // namespace weir::bench
