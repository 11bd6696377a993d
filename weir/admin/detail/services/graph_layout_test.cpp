// Tests of the layered layout of the service graph.
#include "weir/admin/detail/services/service_svg.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace weir::drawing::graph_layout_test {
namespace {

using Edges = std::vector<GraphEdge>;

TEST(GraphLayout, LaysOutEmptyAndSingleNodeGraphs) {
  EXPECT_EQ(layout_graph(0, {}).columns, 0U);
  const GraphLayout one = layout_graph(1, {});
  EXPECT_EQ(one.columns, 1U);
  EXPECT_EQ(one.rows, 1);
}

TEST(GraphLayout, EachNodeIsToTheRightOfItsDependants) {
  const Edges edges{{0, 1}, {1, 2}, {0, 2}};
  const GraphLayout layers = layout_graph(3, edges);
  EXPECT_EQ(layers.columns, 3U);
  for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(layers.nodes[node].column, node);
  ASSERT_EQ(layers.edges[2].size(), 3U) << "the edge passes the column between";
  EXPECT_EQ(layers.edges[2][1].column, 1U);
  EXPECT_NE(layers.edges[2][1].row, layers.nodes[1].row) << "not through the box there";
}

TEST(GraphLayout, LaysOutCycles) {
  const Edges edges{{0, 1}, {1, 2}, {2, 0}, {1, 1}};
  const GraphLayout layers = layout_graph(3, edges);
  EXPECT_EQ(layers.columns, 3U);
  EXPECT_EQ(layers.edges[2].front().column, layers.nodes[2].column);
  EXPECT_EQ(layers.edges[2].back().column, layers.nodes[0].column);
}

TEST(GraphLayout, AvoidsUnnecessaryCrossings) {
  // Two parallel edges, given in the order that makes them cross.
  const Edges edges{{0, 3}, {1, 2}};
  const GraphLayout layers = layout_graph(4, edges);
  EXPECT_EQ(layers.nodes[0].row < layers.nodes[1].row, layers.nodes[3].row < layers.nodes[2].row);
}

/// Returns the number of pairs of edges that cross between two columns.
std::size_t count_crossings(const GraphLayout& layout) {
  struct Line {
    std::size_t column;
    double left;
    double right;
  };
  std::vector<Line> lines;
  for (const std::vector<GridPosition>& path : layout.edges) {
    for (std::size_t i = 1; i < path.size(); ++i) {
      const bool rightwards = path[i - 1].column < path[i].column;
      const GridPosition& left = path[rightwards ? i - 1 : i];
      const GridPosition& right = path[rightwards ? i : i - 1];
      lines.push_back({left.column, left.row, right.row});
    }
  }
  std::size_t crossings = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool crossed = (lines[i].left - lines[j].left) * (lines[i].right - lines[j].right) < 0;
      crossings += crossed && lines[i].column == lines[j].column;
    }
  }
  return crossings;
}

TEST(GraphLayout, EdgesDoNotCrossIfAnOrderOfRowsPreventsIt) {
  const Edges first{{1, 4}, {3, 5}, {6, 0}, {6, 2}, {0, 2}, {6, 4}, {3, 0}};
  EXPECT_EQ(count_crossings(layout_graph(7, first)), 0U);
  const Edges second{{5, 6}, {3, 2}, {4, 1}, {7, 5}, {3, 0}, {1, 5}, {4, 6}, {4, 2}};
  EXPECT_EQ(count_crossings(layout_graph(8, second)), 0U);
  const Edges third{{4, 5}, {0, 6}, {4, 3}};
  EXPECT_EQ(count_crossings(layout_graph(7, third, 2)), 0U) << "with columns that are split";
}

TEST(GraphLayout, OnlyOneEdgeOfACycleGoesBack) {
  const Edges whole{{0, 1}, {1, 2}, {2, 0}};
  const Edges inner{{0, 1}, {1, 2}, {2, 1}};
  for (const Edges& edges : {whole, inner}) {
    const GraphLayout layers = layout_graph(3, edges);
    EXPECT_EQ(layers.columns, 3U);
    for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(layers.nodes[node].column, node);
  }
}

TEST(GraphLayout, SplitsFullColumns) {
  const GraphLayout layers = layout_graph(60, {}, 24);
  EXPECT_EQ(layers.columns, 3U);
  EXPECT_LE(layers.rows, 24);
}

TEST(GraphLayout, BoxesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = random() % 40 + 1;
    Edges edges;
    for (std::size_t i = random() % 120; i > 0; --i) {
      edges.push_back({random() % nodes, random() % nodes});
    }
    const GraphLayout layers = layout_graph(nodes, edges, 8);
    std::vector<std::set<double>> rows(layers.columns);
    for (const GridPosition& each : layers.nodes) {
      for (const double other : rows.at(each.column)) {
        ASSERT_GE(std::abs(other - each.row), 1) << "in round " << round;
      }
      rows[each.column].insert(each.row);
      ASSERT_GE(each.row, 0);
      ASSERT_LE(each.row + 1, layers.rows);
    }
    for (std::size_t edge = 0; edge < edges.size(); ++edge) {
      const auto& way = layers.edges[edge];
      ASSERT_EQ(way.front().column, layers.nodes[edges[edge].from].column);
      ASSERT_EQ(way.back().column, layers.nodes[edges[edge].to].column);
      const bool itself = edges[edge].from == edges[edge].to;
      for (std::size_t i = 1; i < way.size() && !itself; ++i) {
        const auto step = static_cast<long>(way[i].column) - static_cast<long>(way[i - 1].column);
        ASSERT_EQ(std::abs(step), 1) << "in round " << round;
      }
    }
  }
}

TEST(GraphLayout, AColumnHasAtMostTheGivenNumberOfNodes) {
  EXPECT_EQ(layout_graph(24, {}).columns, 1U);
  EXPECT_EQ(layout_graph(25, {}).columns, 2U) << "24 by default";
  EXPECT_EQ(layout_graph(3, {}, 3).columns, 1U);
  const GraphLayout layers = layout_graph(8, {}, 3);
  EXPECT_EQ(layers.columns, 3U);
  EXPECT_EQ(layers.rows, 3);
  for (std::size_t node = 0; node < 8; ++node) EXPECT_EQ(layers.nodes[node].column, node / 3);
}

TEST(GraphLayout, ColumnsAreCentred) {
  const Edges edges{{0, 1}, {0, 2}, {0, 3}};
  const GraphLayout layers = layout_graph(4, edges);
  EXPECT_EQ(layers.columns, 2U);
  EXPECT_EQ(layers.rows, 3);
  EXPECT_EQ(layers.nodes[0].row, 1);
  for (std::size_t node = 1; node < 4; ++node) {
    EXPECT_EQ(layers.nodes[node].row, static_cast<double>(node - 1));
  }
}

TEST(GraphLayout, AnEdgeThatPassesAColumnTakesHalfARow) {
  const Edges edges{{0, 1}, {1, 2}, {0, 2}};
  const GraphLayout layers = layout_graph(3, edges);
  EXPECT_EQ(layers.rows, 2);
  EXPECT_EQ(layers.nodes[0].row, 0.25);
  EXPECT_EQ(layers.nodes[1].row, 0);
  EXPECT_EQ(layers.edges[2][1].row, 1);
  EXPECT_EQ(layers.nodes[2].row, 0.25);
}

TEST(GraphLayout, ANodeStandsBehindTheLongestPathToIt) {
  const Edges edges{{0, 3}, {0, 1}, {1, 2}, {2, 3}, {4, 3}};
  const GraphLayout layers = layout_graph(5, edges);
  EXPECT_EQ(layers.columns, 4U);
  EXPECT_EQ(layers.nodes[3].column, 3U);
  EXPECT_EQ(layers.nodes[4].column, 0U);
  ASSERT_EQ(layers.edges[0].size(), 4U);
  ASSERT_EQ(layers.edges[4].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(layers.edges[4][i].column, i);
}

}  // namespace
}  // namespace weir::drawing::graph_layout_test
