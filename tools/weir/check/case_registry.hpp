// Holds the cases of `weir check` and the rule behind each case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/task/task.hpp"

namespace weir::check {

struct CheckTarget;
struct Verdict;

struct Rule {
  unsigned number = 0;
  std::string name;    ///< name of the rule, and category for --only and --skip
  std::string source;  ///< document that states the rule
  std::string text;
};

/// The time and the company of a case.
enum class CasePace : std::uint8_t {
  usual,  ///< beside a limited number of other cases
  slow,   ///< mostly waits, and does not count against that limit
  alone,  ///< after all others, one at a time: it measures the server
};

struct Case;
/// Runs a case that is more than bytes and a response.
using Script = Task<Verdict> (*)(const CheckTarget& target, const Case& test_case);

/// A Case is one test of a server. `expect` lists alternatives, each of which is one of:
/// - a status code;
/// - "400": a refusal, any 4xx or 5xx;
/// - "200": a response as to a correct request;
/// - "100": an interim response first;
/// - "wait": no response yet;
/// - "closeok": any response after which the connection closes.
struct Case {
  std::string name;
  const Rule* rule = nullptr;          ///< rule in the CaseRegistry of this case
  std::string why;                     ///< description of the case, or the expectation of a script
  std::string bytes;                   ///< bytes to send; may be empty for a script
  std::vector<std::string> expect;     ///< alternatives that satisfy the rule
  std::optional<std::size_t> answers;  ///< required number of final responses; nullopt: any
  std::vector<std::string> also;       ///< alternatives that pass with any number of responses
  /// Alternatives that the RFC allows and a strict server avoids.
  std::vector<std::string> lenient;
  std::string note;  ///< reason for `also` and `lenient`
  Script script = nullptr;
  CasePace pace = CasePace::usual;
};

/// A CaseRegistry holds all cases in a fixed order. It reads them from the files of tests/data
/// that are built in.
/// Lifetime: the cases refer to the rules of the registry.
class CaseRegistry {
 public:
  CaseRegistry();
  CaseRegistry(const CaseRegistry&) = delete;
  CaseRegistry& operator=(const CaseRegistry&) = delete;

  const std::vector<Case>& cases() const noexcept { return cases_; }
  /// Returns the rule of that name, or nullptr if no rule has it.
  const Rule* rule(std::string_view name) const noexcept;
  /// Adds a script as the case "rule/name"; `rule` must exist. `bytes` is for the script.
  /// Returns: the case, until the next call.
  Case& add(std::string_view rule, std::string_view name, std::string_view why, Script script,
            std::string bytes = {});

 private:
  void read_rules(std::string_view json);
  void read_cases(std::string_view json);
  void read_notes(std::string_view json);
  const Rule* rule_of(std::string_view case_name) const;

  struct Prefix {
    std::string text;
    unsigned rule;
  };
  std::vector<Rule> rules_;
  std::vector<Prefix> prefixes_;
  std::vector<Case> cases_;
};

/// Returns true if `selector` selects the case. A selector is the name of the case, the name of
/// its rule, or a beginning of the case's name that ends before a '-'.
bool is_selected(const Case& each, std::string_view selector);

}  // namespace weir::check
