// Drawing a graph in layers: which column and row each node gets, and how edges go between them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::drawing {

struct GraphEdge {
  std::size_t from;
  std::size_t to;
};

/// A spot in the drawing: columns from left to right, rows from the top, in no unit.
struct Spot {
  std::size_t column = 0;
  double row = 0;
};

struct Layers {
  std::vector<Spot> nodes;               ///< of each node
  std::vector<std::vector<Spot>> edges;  ///< of each edge: from, what it passes between, to
  std::size_t columns = 0;
  double rows = 0;  ///< above every row by at least 1
};

/// Edges go to the right, but for those that would close a circle; an edge that passes columns gets
/// a place in each. Rows are chosen so that few edges cross (barycentres, a few sweeps; after
/// Sugiyama, Tagawa and Toda, 1981). No column has more than `column_max` nodes: where more belong
/// into one, they stand in several side by side. Takes time in proportion to nodes, edges and what
/// these pass, times the logarithm of a column.
Layers lay_out(std::size_t nodes, std::span<const GraphEdge> edges, std::size_t column_max = 24);

}  // namespace weir::drawing
