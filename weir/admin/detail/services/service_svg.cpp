// Draws the services of an app as SVG.
#include "weir/admin/detail/services/service_svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/detail/services/service_groups.hpp"
#include "weir/base/text/detail/html_escape.hpp"

namespace weir::drawing {
namespace {

// Sizes in pixels.
constexpr long box_width = 208;
constexpr long box_height = 54;
constexpr long gap = 76;  // between columns
constexpr long row_height = 68;
constexpr long margin = 12;
constexpr long inset = 12;  // between a box's border and its content
constexpr long cell_height = 5;
constexpr std::size_t cells_max = 48;
constexpr std::size_t name_max = 20;  // characters
constexpr std::size_t summary_max = 32;

std::string number(long value) {
  return std::to_string(value);
}

/// The upper left corner of a box.
struct Corner {
  long x;
  long y;
};
Corner corner_of(const GridPosition& position) {
  return {margin + static_cast<long>(position.column) * (box_width + gap),
          margin + std::lround(position.row * static_cast<double>(row_height))};
}
long middle_of(const GridPosition& position) {
  return corner_of(position).y + box_height / 2;
}

class SvgRenderer {
 public:
  explicit SvgRenderer(const Explanation& explanation)
      : explanation_(explanation), groups_(group_instances(explanation)) {
    std::vector<GraphEdge> edges;
    for (const GroupEdge& each : groups_.edges) edges.push_back({each.from, each.to});
    layout_ = layout_graph(groups_.all.size(), edges);
  }

  std::string draw() {
    const long width = 2 * margin + static_cast<long>(layout_.columns) * (box_width + gap) - gap;
    const long height = 2 * margin + std::lround(layout_.rows * static_cast<double>(row_height)) -
                        (row_height - box_height);
    const std::string size = number(std::max(width, 1L)) + " " + number(std::max(height, 1L));
    out_ =
        "<svg class=\"graph\" role=\"img\" aria-label=\"services and their dependencies\" "
        "viewBox=\"0 "
        "0 " +
        size + "\" width=\"" + number(std::max(width, 1L)) + "\" height=\"" +
        number(std::max(height, 1L)) + "\">\n" +
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto-start-reverse\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/>"
        "</marker></defs>\n";
    for (std::size_t i = 0; i < groups_.edges.size(); ++i) draw_edge(i);
    for (std::size_t i = 0; i < groups_.all.size(); ++i) draw_box(i);
    return std::move(out_) + "</svg>\n";
  }

 private:
  /// Draws an edge from side to side, and straight through the columns that it passes.
  void draw_edge(std::size_t index) {
    const GroupEdge& edge = groups_.edges[index];
    if (edge.from == edge.to) return;
    const auto& way = layout_.edges[index];
    const bool rightwards = way.back().column > way.front().column;
    const long bend = rightwards ? gap / 2 : -gap / 2;
    const auto leaves = [&](const GridPosition& at) {
      return corner_of(at).x + (rightwards ? box_width : 0);
    };
    const auto enters = [&](const GridPosition& at) {
      return corner_of(at).x + (rightwards ? 0 : box_width);
    };
    std::string path = "M" + number(leaves(way.front())) + " " + number(middle_of(way.front()));
    for (std::size_t i = 1; i < way.size(); ++i) {
      const long y = middle_of(way[i]);
      const long x = enters(way[i]);
      path += "C" + number(leaves(way[i - 1]) + bend) + " " + number(middle_of(way[i - 1])) + " " +
              number(x - bend) + " " + number(y) + " " + number(x) + " " + number(y);
      if (i + 1 < way.size()) path += "H" + number(leaves(way[i]));
    }
    out_ += "<path class=\"" + std::string(edge.required ? "takes" : "may") + "\" d=\"" + path +
            "\" marker-end=\"url(#tip)\"><title>" + escape_html(groups_.all[edge.from].name) +
            (edge.required ? " takes " : " may take ") + escape_html(groups_.all[edge.to].name) +
            "</title></path>\n";
  }

  void draw_box(std::size_t index) {
    const ServiceGroup& service = groups_.all[index];
    const Corner corner = corner_of(layout_.nodes[index]);
    const std::string state(to_string(service.state()));
    const std::string x = number(corner.x + inset);
    out_ += "<g class=\"box " + state + "\"><title>" + escape_html(tip_of(service)) +
            "</title><rect x=\"" + number(corner.x) + "\" y=\"" + number(corner.y) + "\" width=\"" +
            number(box_width) + "\" height=\"" + number(box_height) +
            "\" rx=\"6\"/><text class=\"name\" x=\"" + x + "\" y=\"" + number(corner.y + 21) +
            "\">" + escape_html(truncate_utf8(short_name(service.name), name_max)) +
            "</text><text class=\"note\" x=\"" + x + "\" y=\"" + number(corner.y + 38) + "\">" +
            escape_html(truncate_utf8(service.summary(explanation_), summary_max)) + "</text>";
    draw_cells(service, corner);
    out_ += "</g>\n";
  }

  /// Draws one cell for each instance if there are several.
  void draw_cells(const ServiceGroup& service, const Corner& corner) {
    const std::size_t shown = std::min(service.members.size(), cells_max);
    if (shown < 2) return;
    const double room = static_cast<double>(box_width - 2 * inset) / static_cast<double>(shown);
    const long width = std::max(2L, std::min(14L, std::lround(room) - 1));
    for (std::size_t i = 0; i < shown; ++i) {
      const ServiceReport& each = explanation_.services[service.members[i]];
      const long x =
          corner.x + inset +
          std::lround(static_cast<double>(i) * std::min(room, static_cast<double>(width + 2)));
      out_ += "<rect class=\"cell " + std::string(to_string(each.state)) + "\" x=\"" + number(x) +
              "\" y=\"" + number(corner.y + box_height - cell_height - 5) + "\" width=\"" +
              number(width) + "\" height=\"" + number(cell_height) + "\"/>";
    }
  }

  std::string tip_of(const ServiceGroup& service) const {
    std::string tip = service.name + "\n" + service.summary(explanation_);
    for (const std::size_t each : service.members) {
      const ServiceReport& report = explanation_.services[each];
      if (!report.failure.empty()) tip += "\n" + report.failure;
      for (const std::string& what : report.waits_for) tip += "\nwaits for " + what;
    }
    return truncate_utf8(tip, 600);
  }

  const Explanation& explanation_;
  ServiceGroups groups_;
  GraphLayout layout_;
  std::string out_;
};

}  // namespace

std::string draw_services(const Explanation& explanation) {
  return SvgRenderer(explanation).draw();
}

std::string_view service_stylesheet() noexcept {
  return R"(:root { color-scheme: light dark; --ground: #fff; --ink: #1d2125; --soft: #5f6b76;
  --line: #d5dade; --edge: #8c98a3; }
body { margin: 24px; font: 14px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
h1 { font-size: 20px; margin: 0 0 2px; }
h2 { font-size: 15px; margin: 28px 0 8px; }
p { margin: 0 0 14px; color: var(--soft); }
a { color: inherit; }
.picture { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
.graph { display: block; }
.graph text { font-family: system-ui, sans-serif; fill: var(--ink); }
.graph .name { font-size: 13px; font-weight: 600; }
.graph .note { font-size: 11px; fill: var(--soft); }
.takes, .may { fill: none; stroke: var(--edge); stroke-width: 1.2; }
.may { stroke-dasharray: 4 3; }
.tip { fill: var(--edge); }
.box > rect:first-of-type { stroke-width: 1.4; }
.running { --fill: #e7f5ec; --frame: #2f8f57; }
.starting { --fill: #e6f0fb; --frame: #2d74c4; }
.waiting { --fill: #f3f4f5; --frame: #8a949d; }
.stopping { --fill: #fdf1df; --frame: #c47b16; }
.failed { --fill: #fdeaea; --frame: #cc3b3b; }
.box > rect { fill: var(--fill); stroke: var(--frame); }
.box > rect.cell { fill: var(--frame); stroke: none; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 5px 14px 5px 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-size: 12px; font-weight: 600; color: var(--soft); white-space: nowrap; }
td.fixed { white-space: nowrap; }
td.count { font-variant-numeric: tabular-nums; white-space: nowrap; }
.state { display: inline-block; padding: 0 8px; border-radius: 9px; font-size: 12px;
  color: var(--ink); background: var(--fill); border: 1px solid var(--frame); }
@media (max-width: 700px) { table { min-width: 700px; } }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16191c; --ink: #e6e9ec; --soft: #98a4ae; --line: #343b42; --edge: #75818c; }
  .running { --fill: #14301f; } .starting { --fill: #12293f; } .waiting { --fill: #262b30; }
  .stopping { --fill: #3a2a10; } .failed { --fill: #401a1a; }
}
)";
}

}  // namespace weir::drawing
