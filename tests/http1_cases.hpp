// The wire cases of tests/data/http1-*.json: bytes that a client sends and the answers allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

/// One case. The file's "repeat": [text, count] and "rest", where they are, stand behind "bytes".
struct Http1Case {
  std::string id;
  std::string bytes;                ///< what the client sends, each character one byte
  std::vector<std::string> expect;  ///< allowed first answers, see allows()
  std::string why;
  std::optional<std::size_t> answers;  ///< how many final answers come in all, if it matters
};

/// What came first on a connection that was sent a case.
struct Http1Outcome {
  bool interim = false;  ///< a 100 came before it
  int status = 0;        ///< of the first final answer, 0 if there is none yet
  bool closes = false;   ///< the connection ends behind it
};

/// True if one of the case's expectations is met: a status is itself; "400" is any 4xx or 5xx;
/// "200" any success, 404 or 405; "100" an interim answer; "wait" no answer at all; "closeok" any
/// answer behind which the connection closes.
bool allows(const Http1Case& the_case, const Http1Outcome& outcome);

/// The cases of a file in WEIR_TEST_DATA_DIR. Throws std::runtime_error if it cannot be read.
std::vector<Http1Case> read_http1_cases(std::string_view file_name);

}  // namespace weir::tests
