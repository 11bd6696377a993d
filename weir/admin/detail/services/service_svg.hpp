// Picture of an app's services: a layered graph in SVG.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/lifecycle/app_status.hpp"

namespace weir::drawing {

// Layered graph layout: the column and row of each node, and the path of each edge.

struct GraphEdge {
  std::size_t from;
  std::size_t to;
};

/// A position in the drawing without a unit. Columns count from left to right, rows from the top.
struct GridPosition {
  std::size_t column = 0;
  double row = 0;
};

struct GraphLayout {
  std::vector<GridPosition> nodes;  ///< position of each node
  /// Path of each edge: its start, the columns that it passes, its end.
  std::vector<std::vector<GridPosition>> edges;
  std::size_t columns = 0;
  double rows = 0;  ///< at least 1 more than the largest row
};

/// Lays out a graph in columns. Edges go to the right, except for those that would close a cycle.
/// An edge that passes a column gets a position in that column. Rows are chosen so that few edges
/// cross (barycentres, a few sweeps; after Sugiyama, Tagawa and Toda, 1981). A column has at most
/// `column_max` nodes; a fuller column becomes several columns side by side. The time is in
/// proportion to nodes, edges and passed columns, times the logarithm of a column's size.
GraphLayout layout_graph(std::size_t nodes, std::span<const GraphEdge> edges,
                         std::size_t column_max = 24);

/// Returns an <svg> element for a page, with one box for each service. A service stands to the
/// left of the services that it takes. The element has no style and no script; see
/// service_stylesheet(). All texts are escaped.
std::string draw_services(const Explanation& explanation);

/// Returns the style sheet of the picture and of the page.
std::string_view service_stylesheet() noexcept;

}  // namespace weir::drawing
