// Runs the checks and prints the report. The checks that wait are in examination_*.cpp.
#include "weir/doctor/doctor.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/doctor/detail/examination.hpp"
#include "weir/json/write.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::doctor {
namespace {

std::size_t count_of(const std::vector<checks::Finding>& findings, checks::Severity severity) {
  return static_cast<std::size_t>(
      std::ranges::count(findings, severity, &checks::Finding::severity));
}

// The form of the report in JSON.
struct FindingRow {
  std::string_view check;
  std::string_view severity;
  std::string found;
  std::string wanted;
  std::string consequence;
  std::string remedy;
};
struct ReportObject {
  std::string_view status;
  std::size_t checks;
  std::vector<FindingRow> findings;
};

checks::MachineFacts facts_for(const DoctorOptions& options) {
  checks::MachineFacts facts = checks::read_machine_facts(options.root);
  checks::add_interrupt_facts(facts, options.root);
  if (options.root.empty()) checks::add_io_uring_facts(facts);
  return facts;
}

}  // namespace

int DoctorReport::exit_status() const noexcept {
  if (count_of(findings, checks::Severity::fatal) > 0) return 2;
  return count_of(findings, checks::Severity::limits) > 0 ? 1 : 0;
}

std::string DoctorReport::to_text(Notes notes) const {
  std::string text;
  for (const checks::Finding& each : findings) {
    if (each.severity == checks::Severity::note && notes == Notes::hidden) continue;
    text += each.to_line() + "\n";
  }
  const std::size_t fatal = count_of(findings, checks::Severity::fatal);
  const std::size_t limits = count_of(findings, checks::Severity::limits);
  text += "doctor: " + std::to_string(checks) + " checks: ";
  if (fatal + limits == 0) return text + "well\n";
  if (fatal > 0) text += std::to_string(fatal) + (fatal == 1 ? " prevents" : " prevent");
  if (fatal > 0 && limits > 0) text += ", ";
  if (limits > 0) text += std::to_string(limits) + (limits == 1 ? " limits" : " limit");
  return text + " the service\n";
}

std::string DoctorReport::to_json() const {
  constexpr std::string_view states[] = {"well", "limits", "fatal"};
  ReportObject report{states[exit_status()], checks, {}};
  for (const checks::Finding& each : findings) {
    report.findings.push_back({each.check, name_of(each.severity), each.found, each.wanted,
                               each.consequence, each.remedy});
  }
  return to_printable_json(json::write(report));
}

DoctorReport examine(const DoctorOptions& options) {
  const checks::MachineFacts facts = facts_for(options);
  Examination examination(options, facts);
  RuntimeOptions runtime_options;
  runtime_options.cores = 1;
  runtime_options.pin = false;
  runtime_options.announce = false;
  // No finding depends on the backend of this loop, and poll is allowed everywhere.
  runtime_options.backend = BackendChoice::poll;
  OsPlatform platform;
  const auto body = [](Scope&, Examination& all) { return all.run(); };
  Runtime(platform, runtime_options).run_on_each_core(body, std::ref(examination));
  DoctorReport report = examination.take_report();
  auto machine = checks::check_machine(facts, options.demands);
  report.findings.insert(report.findings.begin(), std::make_move_iterator(machine.begin()),
                         std::make_move_iterator(machine.end()));
  checks::sort_by_severity(report.findings);
  report.checks += checks::machine_check_count();
  return report;
}

}  // namespace weir::doctor
