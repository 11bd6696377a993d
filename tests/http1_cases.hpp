// Reads the wire cases of tests/data/http1-*.json: the bytes of a client and the allowed answers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

/// An Http1Case is one wire case. `bytes` also contains the file's "repeat": [text, count] and
/// "rest", which follow "bytes" in this order.
struct Http1Case {
  std::string id;
  std::string bytes;                ///< bytes that the client sends, one character each
  std::vector<std::string> expect;  ///< allowed first answers, see matches_expectation()
  std::string why;
  std::optional<std::size_t> answers;  ///< number of all final answers, if it matters
};

/// An Http1Outcome is the first answer on a connection that sent a case.
struct Http1Outcome {
  bool interim = false;  ///< True if a 100 came before the final answer
  int status = 0;        ///< status of the first final answer, or 0 if none has come
  bool closes = false;   ///< True if the connection ends after the answer
};

/// Returns true if the outcome meets one of the case's expectations. A status means itself, "400"
/// means any 4xx or 5xx, and "200" means any success, 404 or 405. "100" means an interim answer,
/// "wait" means no answer, and "closeok" means any answer after which the connection closes.
bool matches_expectation(const Http1Case& test_case, const Http1Outcome& outcome);

/// Returns the cases of a file in WEIR_TEST_DATA_DIR. Throws std::runtime_error if the file
/// cannot be read.
std::vector<Http1Case> read_http1_cases(std::string_view file_name);

}  // namespace weir::tests
