// Reads the cases and their rules from the data that is built in.
#include "tools/weir/check/case_registry.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>
#include <utility>

#include "tools/weir/check/data.hpp"
#include "tools/weir/check/scripts.hpp"
#include "weir/json/read.hpp"

namespace weir::check {

// The entries of the JSON files.
struct CaseEntry {
  std::string id;
  std::string bytes;
  std::optional<std::pair<std::string, std::size_t>> repeat;
  std::optional<std::string> rest;
  std::vector<std::string> expect;
  std::string why;
  std::optional<std::size_t> answers;
};
struct NoteEntry {
  std::vector<std::string> cases;
  std::optional<std::vector<std::string>> also;
  std::optional<std::vector<std::string>> lenient;
  std::optional<bool> skip;
  std::string why;
};
struct RulesFile {
  std::vector<Rule> rules;
  std::map<std::string, unsigned> prefixes;
  std::vector<NoteEntry> notes;
};

namespace {

/// Reads data that is built in. An error in that data is a bug of this program.
template <class T>
T read(std::string_view json) {
  auto value = json::read<T>(json);
  if (!value) throw std::logic_error("weir check: its own data: " + value.error().message());
  return std::move(*value);
}

/// Converts UTF-8 from JSON to bytes. Each character of the files stands for one byte.
std::string latin1(std::string_view utf8) {
  std::string bytes;
  bytes.reserve(utf8.size());
  for (std::size_t index = 0; index < utf8.size(); ++index) {
    const auto lead = static_cast<unsigned char>(utf8[index]);
    if (lead < 0x80) {
      bytes += utf8[index];
    } else {
      const auto next = static_cast<unsigned char>(utf8[++index]);
      bytes += static_cast<char>((lead & 0x03U) << 6U | (next & 0x3fU));
    }
  }
  return bytes;
}

Case case_of(CaseEntry& entry) {
  Case made;
  made.name = std::move(entry.id);
  made.why = std::move(entry.why);
  made.expect = std::move(entry.expect);
  made.answers = entry.answers;
  made.bytes = latin1(entry.bytes);
  if (entry.repeat) {
    const std::string piece = latin1(entry.repeat->first);
    for (std::size_t left = entry.repeat->second; left > 0; --left) made.bytes += piece;
  }
  if (entry.rest) made.bytes += latin1(*entry.rest);
  return made;
}

}  // namespace

CaseRegistry::CaseRegistry() {
  read_rules(data::http1_rules);
  for (const std::string_view file : {data::http1_cases, data::http1_more, data::http1_smuggling}) {
    read_cases(file);
  }
  read_notes(data::http1_rules);
  add_answer_scripts(*this);
  add_validator_scripts(*this);
  add_forward_scripts(*this);
  add_method_scripts(*this);
  add_body_scripts(*this);
  add_limit_scripts(*this);
  add_work_scripts(*this);
  add_content_scripts(*this);
  add_slow_scripts(*this);
  add_share_scripts(*this);
  add_websocket_scripts(*this);
  add_h2_scripts(*this);
  add_h2_upload_scripts(*this);
  add_tls_scripts(*this);
  add_tls_ticket_scripts(*this);
  add_tls_record_scripts(*this);
}

void CaseRegistry::read_rules(std::string_view json) {
  RulesFile file = read<RulesFile>(json);
  rules_ = std::move(file.rules);
  for (const auto& [text, number] : file.prefixes) prefixes_.push_back({text, number});
}

void CaseRegistry::read_cases(std::string_view json) {
  for (CaseEntry& entry : read<std::vector<CaseEntry>>(json)) {
    Case& made = cases_.emplace_back(case_of(entry));
    made.rule = rule_of(made.name);
  }
}

void CaseRegistry::read_notes(std::string_view json) {
  for (const NoteEntry& note : read<RulesFile>(json).notes) {
    for (const std::string& name : note.cases) {
      const auto found = std::ranges::find(cases_, name, &Case::name);
      if (found == cases_.end()) throw std::logic_error("weir check: no case " + name);
      if (note.skip.value_or(false)) {
        cases_.erase(found);
        continue;
      }
      found->note = note.why;
      if (note.also) found->also = *note.also;
      if (note.lenient) found->lenient = *note.lenient;
    }
  }
}

const Rule* CaseRegistry::rule_of(std::string_view case_name) const {
  unsigned number = 0;
  for (const std::string_view counted : {"rule-", "found-"}) {
    if (!case_name.starts_with(counted)) continue;
    const char* const digits = case_name.data() + counted.size();
    std::from_chars(digits, case_name.data() + case_name.size(), number);
  }
  for (const Prefix& each : prefixes_) {
    if (case_name.starts_with(each.text)) number = each.rule;
  }
  const auto found = std::ranges::find(rules_, number, &Rule::number);
  if (found == rules_.end()) {
    throw std::logic_error("weir check: no rule for " + std::string(case_name));
  }
  return &*found;
}

const Rule* CaseRegistry::rule(std::string_view name) const noexcept {
  const auto found = std::ranges::find(rules_, name, &Rule::name);
  return found == rules_.end() ? nullptr : &*found;
}

Case& CaseRegistry::add(std::string_view rule, std::string_view name, std::string_view why,
                        Script script, std::string bytes) {
  Case& made = cases_.emplace_back();
  made.name = std::string(rule) + "/" + std::string(name);
  made.rule = this->rule(rule);
  made.why = why;
  made.bytes = std::move(bytes);
  made.script = script;
  if (rule == "slow") made.pace = CasePace::slow;
  return made;
}

bool is_selected(const Case& each, std::string_view selector) {
  if (each.rule->name == selector || each.name == selector) return true;
  return each.name.size() > selector.size() && each.name.starts_with(selector) &&
         each.name[selector.size()] == '-';
}

}  // namespace weir::check
