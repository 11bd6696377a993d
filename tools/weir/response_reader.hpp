// Reading responses as a client that verifies every one of them and cares for little else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/number_placeholder.hpp"
#include "weir/http/detail/h1/chunked.hpp"

namespace weir::bench {

/// What is wrong with a response.
enum class ResponseFault : std::uint8_t {
  none,
  malformed,   ///< not HTTP/1.1, or HTTP/1.0, as RFC 9112 has it
  no_length,   ///< neither Content-Length nor chunked, on a connection that goes on
  status,      ///< another than expected
  length,      ///< another length of the body than expected
  body,        ///< another body than the first response had
  number,      ///< not the number of its request: the response to another one, maybe
  unexpected,  ///< bytes behind the last response that was asked for
};

struct ResponseRules {
  unsigned status = 200;
  /// Of each body; nullopt: of the first one.
  std::optional<std::uint64_t> body_bytes;
  /// Bodies may differ from each other, also in length.
  bool bodies_vary = false;
  /// Responses to HEAD: the length is announced, and no body comes.
  bool to_head = false;
  /// The end of the connection may be the end of a body.
  bool closing = false;
  /// Of the requests, whose numbers their responses' bodies have too; then bodies have at most
  /// ResponseReference::body_bytes_max.
  Numbering numbering;
};

/// What all the responses of one run are compared with; the first one sets it.
/// Threads: one at a time. Lifetime: outlives its readers.
struct ResponseReference {
  /// No more of a body than this is compared byte by byte; of longer ones, the rest by its length.
  static constexpr std::size_t body_bytes_max = 64 * 1024;

  ResponseRules rules;
  bool known = false;
  std::string body;
  std::uint64_t body_bytes = 0;
  std::size_t number_at = 0;  ///< in `body`, with ResponseRules::numbering
  /// The last response that was verified, head included: one that is equal to it needs no parsing.
  std::string seen;
  bool seen_closes = false;
};

/// Takes the responses of one connection apart, in whatever pieces they arrive, and verifies each.
/// Knows no sockets. Threads: one at a time.
class ResponseReader {
 public:
  /// No head is longer; one that is, is malformed.
  static constexpr std::size_t head_bytes_max = 64 * 1024;

  explicit ResponseReader(ResponseReference& reference) noexcept : reference_(&reference) {}

  /// With ResponseRules::numbering: the number that the next response has, and from then on those
  /// that follow it.
  void expect(std::uint64_t number) noexcept { number_ = number; }
  /// Reads on; returns how many responses end in `input`. More than `wanted` is a fault. After a
  /// fault nothing more is read.
  unsigned read(std::string_view input, unsigned wanted);
  /// The connection ended: returns 1 when that was the end of a response, else 0.
  unsigned end();

  ResponseFault fault() const noexcept { return fault_; }
  /// Whether the last response said that the connection ends behind it.
  bool closes() const noexcept { return closes_; }
  /// Whether it stands between two responses.
  bool idle() const noexcept { return state_ == State::start; }
  /// What was expected and what came, where that is known, and the head that was read last.
  std::string describe_fault() const;

 private:
  enum class State : std::uint8_t { start, head, body, chunks, until_end };

  /// Each takes what it can from the front of `input`; true when a response is whole.
  bool step(std::string_view& input);
  bool read_head(std::string_view& input);
  bool read_body(std::string_view& input);
  bool read_chunks(std::string_view& input);

  bool parse_head(std::string_view head);
  bool parse_field(std::string_view line);
  bool start_body();
  void take_body(std::string_view piece);
  bool finish();
  bool check_number();
  bool check_length(std::uint64_t expected);
  /// That the body's byte `at` is not the expected one; only the first such byte is kept.
  void differs_at(std::uint64_t at, char expected, char found);
  void compare(std::uint64_t at, std::string_view expected, std::string_view found);
  bool fail(ResponseFault fault) noexcept {
    fault_ = fault;
    return false;
  }

  ResponseReference* reference_;
  State state_ = State::start;
  ResponseFault fault_ = ResponseFault::none;
  bool closes_ = false;
  bool chunked_ = false;
  bool first_ = false;  // there was no reference yet when this response began
  unsigned status_ = 0;
  std::optional<std::uint64_t> length_;
  std::uint64_t left_ = 0;        // of a body with a length
  std::uint64_t body_bytes_ = 0;  // that were read
  std::string head_;              // as far as it was read
  std::string difference_;        // of the body, in words
  std::string wrong_;             // of the response, in words: what was expected, what came
  std::string first_body_;        // of a response that is `first_`, or that has a number
  std::uint64_t number_ = 0;      // that the present response shall have
  http::ChunkedDecoder decoder_;
};

/// Fault names for people and for JSON ("wrong status").
std::string_view name_of(ResponseFault fault) noexcept;

}  // namespace weir::bench
