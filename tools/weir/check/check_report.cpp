// The reports of `weir check`: text, JSON and the list of cases.
#include "tools/weir/check/check_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "tools/weir/check/wire_check.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/json/write.hpp"

namespace weir::check {

// The structure of the JSON report.
struct JsonCase {
  std::string name;
  std::string verdict;
  std::string category;
  unsigned rule;
  std::string source;
  std::string about;
  std::string sent;
  std::string expected;
  std::string actual;
};
struct JsonReport {
  std::string url;
  std::optional<std::string> tls;
  std::optional<bool> certificate_verified;
  int get_status;
  int post_status;
  std::size_t passed;
  std::size_t failed;
  std::size_t not_applicable;
  double seconds;
  std::vector<JsonCase> cases;
};

namespace {

constexpr std::size_t sent_bytes_max = 160;
constexpr std::size_t sent_bytes_max_in_json = 2000;

std::string_view name_of(VerdictKind kind) {
  constexpr std::array<std::string_view, 3> names{"passed", "failed", "not applicable"};
  return names[static_cast<std::size_t>(kind)];
}

void append_escaped(std::string& text, char each) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(each);
  constexpr std::string_view special = "\r\n\t\\";
  if (const std::size_t at = special.find(each); at != special.npos) {
    (text += '\\') += std::string_view("rnt\\")[at];
  } else if (byte >= 0x20 && byte < 0x7f) {
    text += each;
  } else {
    ((text += "\\x") += digits[byte >> 4U]) += digits[byte & 15U];
  }
}

std::string sent_of(const CheckReport& report, const CaseResult& result, std::size_t size_max) {
  const std::string& own = result.verdict.sent;
  return shortened(own.empty() ? bytes_for(*result.test_case, report.target) : own, size_max);
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}
std::string right_aligned(std::size_t number, std::size_t width) {
  std::string text = std::to_string(number);
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

std::string seconds_of(Duration length) {
  std::array<char, 32> text;
  const double seconds = std::chrono::duration<double>(length).count();
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

struct Row {
  const Rule* rule;
  std::array<std::size_t, 3> counts{};
};

/// Returns one row for each rule, in the order of the rules.
std::vector<Row> rows_of(const CheckReport& report) {
  std::vector<Row> rows;
  for (const CaseResult& each : report.results) {
    auto row = std::ranges::find(rows, each.test_case->rule, &Row::rule);
    if (row == rows.end()) {
      rows.push_back({each.test_case->rule, {}});
      row = rows.end() - 1;
    }
    ++row->counts[static_cast<std::size_t>(each.verdict.kind)];
  }
  // All rules are elements of one vector, so their addresses have its order.
  std::ranges::sort(rows, {}, &Row::rule);
  return rows;
}

void append_table(std::string& text, const CheckReport& report) {
  text += padded("", 20) + "passed  failed  not applicable\n";
  for (const Row& row : rows_of(report)) {
    text += padded(row.rule->name, 20) + right_aligned(row.counts[0], 6) +
            right_aligned(row.counts[1], 8) + right_aligned(row.counts[2], 16) + "\n";
  }
}

void append_case(std::string& text, const CheckReport& report, const CaseResult& result) {
  const Case& test_case = *result.test_case;
  text += "\n" + test_case.name + ": " + test_case.why + "\n";
  text += "  rule      " + std::to_string(test_case.rule->number) + " " + test_case.rule->name +
          ": " + test_case.rule->text + " (" + test_case.rule->source + ")\n";
  const std::string sent = sent_of(report, result, sent_bytes_max);
  if (!sent.empty()) text += "  sent      " + sent + "\n";
  text += "  expected  " + to_printable(result.verdict.expected) + "\n";
  text += "  actual    " + to_printable(result.verdict.actual) + "\n";
}

void append_cases(std::string& text, const CheckReport& report, VerdictKind kind) {
  if (report.count(kind) == 0) return;
  text += "\n---- " + std::string(name_of(kind)) + " ----\n";
  for (const CaseResult& each : report.results) {
    if (each.verdict.kind == kind) append_case(text, report, each);
  }
}

}  // namespace

std::string shortened(std::string_view bytes, std::size_t size_max) {
  std::string text;
  const bool cut = bytes.size() > size_max;
  const std::size_t kept = cut ? size_max / 2 : bytes.size();
  for (const char each : bytes.substr(0, kept)) append_escaped(text, each);
  if (!cut) return text;
  text += " ... " + std::to_string(bytes.size() - 2 * kept) + " bytes ... ";
  for (const char each : bytes.substr(bytes.size() - kept)) append_escaped(text, each);
  return text;
}

std::string to_text(const CheckReport& report, const ReportOptions& options) {
  const CheckTarget& target = report.target;
  std::string text = options.url + ": " + std::to_string(report.results.size()) + " cases\n";
  text += "  GET " + target.path + " answers " + std::to_string(target.get.status) + ", POST " +
          target.post_path + " answers " +
          (target.post.status == 0 ? std::string("nothing") : std::to_string(target.post.status));
  if (target.post.status < 200 || target.post.status > 299) text += " (--post-path)";
  if (!target.connection.empty()) {
    text += "\n  " + to_printable(target.connection) +
            (options.verified ? ", certificate verified" : ", certificate not verified (--cacert)");
  }
  text += "\n\n";
  append_table(text, report);
  append_cases(text, report, VerdictKind::failed);
  append_cases(text, report, VerdictKind::not_applicable);
  if (options.all) append_cases(text, report, VerdictKind::passed);
  text += "\n" + std::to_string(report.count(VerdictKind::passed)) + " passed, " +
          std::to_string(report.count(VerdictKind::failed)) + " failed, " +
          std::to_string(report.count(VerdictKind::not_applicable)) + " not applicable, in " +
          seconds_of(report.elapsed) + "\n";
  return text;
}

std::string to_json(const CheckReport& report, const ReportOptions& options) {
  JsonReport json;
  json.url = options.url;
  if (!report.target.connection.empty()) {
    json.tls = report.target.connection;
    json.certificate_verified = options.verified;
  }
  json.get_status = report.target.get.status;
  json.post_status = report.target.post.status;
  json.passed = report.count(VerdictKind::passed);
  json.failed = report.count(VerdictKind::failed);
  json.not_applicable = report.count(VerdictKind::not_applicable);
  json.seconds = std::chrono::duration<double>(report.elapsed).count();
  for (const CaseResult& each : report.results) {
    JsonCase& test_case = json.cases.emplace_back();
    test_case.name = each.test_case->name;
    test_case.verdict = name_of(each.verdict.kind);
    test_case.category = each.test_case->rule->name;
    test_case.rule = each.test_case->rule->number;
    test_case.source = each.test_case->rule->source;
    test_case.about = each.test_case->why;
    test_case.sent = sent_of(report, each, sent_bytes_max_in_json);
    test_case.expected = each.verdict.expected;
    test_case.actual = each.verdict.actual;
  }
  return to_printable_json(json::write(json)) + "\n";
}

std::string to_list(const std::vector<const Case*>& cases) {
  std::string text;
  for (const Case* each : cases) {
    text += padded(each->name, 26) + " " + padded(each->rule->name, 18) + " " + each->why + "\n";
  }
  return text;
}

}  // namespace weir::check
