// What `weir check` asks of a server: cases, and the rule behind each.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/task/task.hpp"

namespace weir::check {

struct Site;
struct Verdict;

struct Rule {
  unsigned number = 0;
  std::string name;    ///< also the category that --only and --skip take
  std::string source;  ///< where it is written
  std::string text;
};

struct Case;
/// Plays a case that is more than bytes and an answer.
using Script = Task<Verdict> (*)(const Site& site, const Case& of);

/// One case. What is expected is any of: a status; "400" a refusal, any 4xx or 5xx; "200" an answer
/// as a right request gets it; "100" an interim answer first; "wait" no answer yet; "closeok" any
/// answer behind which the connection closes.
struct Case {
  std::string name;
  const Rule* rule = nullptr;          ///< of its CaseBook
  std::string why;                     ///< what is special about it, or what a script wants
  std::string bytes;                   ///< to be sent; of a script maybe nothing
  std::vector<std::string> expect;     ///< what the rule asks for
  std::optional<std::size_t> answers;  ///< how many final ones, where that matters
  std::vector<std::string> also;       ///< as good, whatever the number of answers
  std::vector<std::string> lenient;    ///< what the RFC lets a server do that is not strict
  std::string note;                    ///< why, of those two
  Script script = nullptr;
};

/// All cases, from the files of tests/data that are built in, in a fixed order. Lifetime: the cases
/// refer to its rules.
class CaseBook {
 public:
  CaseBook();
  CaseBook(const CaseBook&) = delete;
  CaseBook& operator=(const CaseBook&) = delete;

  const std::vector<Case>& cases() const noexcept { return cases_; }
  /// A rule by its name; nullptr: there is none.
  const Rule* rule(std::string_view name) const noexcept;
  /// For those who write scripts.
  void add(std::string_view rule, std::string_view name, std::string_view why, Script script);

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

/// Whether `selector` names the case: by its name, a beginning of it that ends before a '-', or its
/// rule's name.
bool is_selected(const Case& each, std::string_view selector);

}  // namespace weir::check
