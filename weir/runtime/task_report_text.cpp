// The text of a report of tasks: a tree in which equal branches are one.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/base/text/detail/grouped_number.hpp"
#include "weir/runtime/task_report.hpp"

namespace weir {
namespace {

std::string to_text(Duration age) {
  const double seconds = std::chrono::duration<double>(age).count();
  const auto [value, unit] = seconds < 1      ? std::pair(seconds * 1000, "ms")
                             : seconds < 120  ? std::pair(seconds, "s")
                             : seconds < 7200 ? std::pair(seconds / 60, "min")
                                              : std::pair(seconds / 3600, "h");
  std::array<char, 32> text;
  const int size =
      std::snprintf(text.data(), text.size(),
                    unit[0] == 'm' && unit[1] == 's' ? "%.0f %s" : "%.1f %s", value, unit);
  return {text.data(), static_cast<std::size_t>(size)};
}

/// The entries of all cores as trees of groups: a group has equal branches of one core.
class Trees {
 public:
  explicit Trees(const TaskReport& report) : entries_(report.entries) {
    nodes_.resize(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const std::size_t parent = entries_[i].parent;
      (parent == TaskEntry::none ? roots_[entries_[i].core] : nodes_[parent].children).push_back(i);
    }
    // A parent comes before its children.
    for (std::size_t i = entries_.size(); i-- > 0;) classify(i);
    for (auto& [core, roots] : roots_) roots = merged(roots);
  }

  void write(std::string& out, unsigned core) const {
    const auto roots = roots_.find(core);
    if (roots == roots_.end()) return;
    for (const std::size_t root : roots->second) write(out, root, 1, false);
  }

 private:
  struct Node {
    std::vector<std::size_t> children;  // then one of each class
    std::size_t sort = 0;               // equal for equal branches
    std::uint64_t count = 0;            // with the equal branches beside it
    bool several_traces = false;
  };
  using Class = std::tuple<std::string, std::string, std::string, std::string, bool,
                           std::vector<std::pair<std::size_t, std::uint64_t>>>;

  void classify(std::size_t index) {
    const TaskEntry& entry = entries_[index];
    Node& node = nodes_[index];
    node.count = entry.count;
    node.children = merged(node.children);
    std::vector<std::pair<std::size_t, std::uint64_t>> below;
    for (const std::size_t child : node.children) {
      below.emplace_back(nodes_[child].sort, nodes_[child].count);
    }
    std::ranges::sort(below);
    // The key holds copies, since the number of different branches is small as a rule.
    const auto [place, fresh] =
        classes_.emplace(Class(entry.function, entry.awaits, entry.run_by, entry.trace_name,
                               entry.collected, std::move(below)),
                         classes_.size());
    node.sort = place->second;
  }

  /// Keeps one branch of each class: the one whose first task is the oldest.
  std::vector<std::size_t> merged(const std::vector<std::size_t>& branches) {
    std::vector<std::size_t> kept;
    std::map<std::size_t, std::size_t> by_class;  // position in `kept`
    for (const std::size_t branch : branches) {
      const auto [place, fresh] = by_class.emplace(nodes_[branch].sort, kept.size());
      if (fresh) {
        kept.push_back(branch);
        continue;
      }
      std::size_t& other = kept[place->second];
      const std::uint64_t count = nodes_[other].count + nodes_[branch].count;
      const bool several =
          nodes_[other].several_traces || entries_[other].trace_id != entries_[branch].trace_id;
      if (entries_[branch].age > entries_[other].age) other = branch;
      nodes_[other].count = count;
      nodes_[other].several_traces = several;
    }
    return kept;
  }

  /// `joined` is true if the branch stands for several ones.
  void write(std::string& out, std::size_t index, std::size_t level, bool joined) const {
    constexpr std::size_t levels_max = 40;  // deeper ones are not indented further
    const TaskEntry& entry = entries_[index];
    const Node& node = nodes_[index];
    out.append(2 * std::min(level, levels_max), ' ');
    if (node.count > 1) out += detail::grouped(node.count) + " x ";
    out += entry.function;
    if (!entry.run_by.empty()) out += " [" + entry.run_by + "]";
    if (!entry.awaits.empty()) out += " awaits " + entry.awaits;
    if (entry.age >= Duration::zero()) {
      out += node.count > 1 ? ", oldest " : ", ";
      out += to_text(entry.age);
    }
    if (entry.collected) out += " (collected: too many tasks)";
    const bool inherited =
        entry.parent != TaskEntry::none && entries_[entry.parent].trace_id == entry.trace_id;
    if (!entry.trace_id.empty() && !inherited) {
      out += ", for " + entry.trace_kind + " " + entry.trace_id;
      if (!entry.trace_name.empty()) out += " (" + entry.trace_name + ")";
      if (node.several_traces || joined) out += " and others";
    }
    out += '\n';
    joined |= node.count > entry.count;
    for (const std::size_t child : node.children) write(out, child, level + 1, joined);
  }

  const std::vector<TaskEntry>& entries_;
  std::vector<Node> nodes_;
  std::map<unsigned, std::vector<std::size_t>> roots_;  // by core
  std::map<Class, std::size_t> classes_;
};

}  // namespace

std::string TaskReport::to_text() const {
  std::string out;
  const Trees trees(*this);
  for (const TaskCore& each : cores) {
    out += "core " + std::to_string(each.core) + ": ";
    if (!each.answered) {
      out += "no answer in time";
      if (!each.runs.empty()) out += ": it runs " + each.runs;
      out += '\n';
      continue;
    }
    out += detail::grouped(each.waits) + (each.waits == 1 ? " wait" : " waits");
    if (!each.complete) out += " (incomplete)";
    if (each.left_out > 0) out += ", " + detail::grouped(each.left_out) + " left out";
    out += '\n';
    trees.write(out, each.core);
  }
  return out;
}

}  // namespace weir
