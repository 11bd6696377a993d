// The server that is checked, and how one connection to it went.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/response_parser.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir::check {

/// What a right request gets.
struct Baseline {
  int status = 0;
  std::string body;
};

struct Site {
  Endpoint endpoint;
  std::string authority;  ///< for the Host field
  std::string path = "/";
  std::string post_path = "/";
  Duration timeout = std::chrono::seconds(5);         ///< for an answer
  Duration slow_deadline = std::chrono::seconds(20);  ///< until who is slow must be cut off
  Duration idle_deadline = std::chrono::seconds(20);  ///< until who is silent must be
  bool idle_must_end = false;                         ///< one who is silent for longer is a failure
  bool lenient = false;                               ///< what the RFC lets a server do is right

  Baseline get;   ///< of GET path
  Baseline post;  ///< of POST post_path with five bytes
};

/// A GET of the site's path, or of `target`; `fields` with their line ends.
std::string get_request(const Site& site, std::string_view fields = {},
                        std::string_view target = {});

/// How a connection went.
struct Outcome {
  std::vector<Answer> answers;  ///< interim ones too
  std::size_t finals = 0;       ///< whole ones that are not interim
  bool interim = false;
  bool ended = false;  ///< by the server, before this side had ended its sending
  bool reset = false;
  std::string fault;    ///< see AnswerReader
  std::string failure;  ///< why there was no connection

  /// The first final answer; nullptr: none came.
  const Answer* first() const noexcept;
};

/// In words: "200, kept open", "100, 200 × 3, closed", "closed without an answer", "nothing".
std::string describe(const Outcome& outcome);

enum class VerdictKind : std::uint8_t { passed, failed, not_applicable };

struct Verdict {
  VerdictKind kind = VerdictKind::passed;
  std::string sent;    ///< as sent, not escaped; empty: the case's bytes
  std::string wanted;  ///< in words
  std::string came;    ///< in words
};

Verdict passed(std::string wanted, std::string came);
Verdict failed(std::string wanted, std::string came);
Verdict not_applicable(std::string wanted, std::string came);

}  // namespace weir::check
