// Reading what a server that may be wrong answers: framed answers, one after the other, and where
// it stops being HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/detail/h1/chunked.hpp"

namespace weir::check {

struct Answer {
  /// Of a body no more than this is kept.
  static constexpr std::size_t body_kept_max = 64 * 1024;

  int status = 0;
  bool whole = false;
  bool closes = false;     ///< says so, is of 1.0 without keep-alive, or ends by the close
  bool until_end = false;  ///< its body has no length: the connection's end ends it
  std::uint64_t body_bytes = 0;
  std::string body;  ///< without the chunks' framing
  std::vector<std::pair<std::string, std::string>> fields;

  bool is_final() const noexcept { return status >= 200; }
  /// The values of the fields of that name, in any letter case, joined by ", "; nullopt: none is.
  std::optional<std::string> field(std::string_view name) const;
};

/// Takes the answers of one connection apart, in whatever pieces they arrive. Lenient where clients
/// are (white space around values), strict where framing is at stake. Threads: one at a time.
class AnswerReader {
 public:
  static constexpr std::size_t head_bytes_max = 256 * 1024;
  /// More on one connection, interim ones included, are a fault, and are not kept.
  static constexpr std::size_t answers_max = 1000;

  /// The method of the next request; those that are not told are GET.
  void asked(std::string_view method) { methods_.emplace_back(method); }
  /// Takes more of what came. After a fault nothing more is read.
  void read(std::string_view input);
  /// The connection ended.
  void end();
  /// It was reset: that ends what has no length of its own, and is no fault of the answers.
  void reset();

  /// Those that have begun, the last one maybe not whole.
  const std::vector<Answer>& answers() const noexcept { return answers_; }
  std::size_t finals() const noexcept { return finals_; }  ///< whole ones
  bool interim() const noexcept;                           ///< a 1xx came
  /// What is no HTTP/1.1, in words; empty: nothing.
  const std::string& fault() const noexcept { return fault_; }

 private:
  enum class State : std::uint8_t { head, counted, chunks, until_end };

  bool step();
  bool read_head();
  bool parse_head(std::string_view head, Answer& answer);
  bool parse_field(std::string_view line, Answer& answer);
  bool start_body(Answer& answer);
  bool read_counted();
  bool read_chunks();
  bool finish();
  void take(std::string_view piece);
  bool wrong(std::string what);

  State state_ = State::head;
  std::string input_;
  std::vector<std::string> methods_;
  std::vector<Answer> answers_;
  std::size_t finals_ = 0;
  std::uint64_t left_ = 0;
  http::ChunkedDecoder decoder_;
  std::string fault_;
};

}  // namespace weir::check
