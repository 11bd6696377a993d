// Layered layout of the service graph for its SVG picture.
#include "weir/admin/detail/services/service_svg.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace weir::drawing {
namespace {

constexpr int sweeps = 8;

/// A node, or the point at which an edge passes a column.
struct Point {
  explicit Point(std::size_t its_column = 0) : column(its_column) {}
  std::size_t column;
  double row = 0;
  std::vector<std::size_t> left_neighbours{};   ///< points in the column to the left
  std::vector<std::size_t> right_neighbours{};  ///< points in the column to the right
};

class LayoutBuilder {
 public:
  LayoutBuilder(std::size_t nodes, std::span<const GraphEdge> edges, std::size_t column_max)
      : nodes_(nodes),
        edges_(edges),
        reversed_(edges.size()),
        points_(nodes),
        paths_(edges.size()) {
    reverse_cycles();
    assign_columns();
    split_columns(column_max);
    connect_columns();
    order_rows();
    assign_rows();
  }

  GraphLayout result() const {
    GraphLayout layout;
    layout.columns = columns_.size();
    for (std::size_t node = 0; node < nodes_; ++node) layout.nodes.push_back(position_of(node));
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      std::vector<GridPosition> path;
      for (const std::size_t point : paths_[edge]) path.push_back(position_of(point));
      if (reversed_[edge]) std::ranges::reverse(path);
      layout.edges.push_back(std::move(path));
    }
    for (const Point& point : points_) layout.rows = std::max(layout.rows, point.row + 1);
    return layout;
  }

 private:
  GridPosition position_of(std::size_t point) const {
    return {points_[point].column, points_[point].row};
  }
  std::size_t from(std::size_t edge) const {
    return reversed_[edge] ? edges_[edge].to : edges_[edge].from;
  }
  std::size_t to(std::size_t edge) const {
    return reversed_[edge] ? edges_[edge].from : edges_[edge].to;
  }
  std::vector<std::vector<std::size_t>> edges_by_start() const {
    std::vector<std::vector<std::size_t>> by_start(nodes_);
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) by_start[from(edge)].push_back(edge);
    return by_start;
  }

  /// Reverses the edges that would close a cycle, found by a depth-first search.
  void reverse_cycles() {
    enum : std::uint8_t { unvisited, in_progress, done };
    struct Step {
      std::size_t node;
      std::size_t next;
    };
    const auto by_start = edges_by_start();
    std::vector<std::uint8_t> marks(nodes_, unvisited);
    std::vector<Step> path;
    for (std::size_t root = 0; root < nodes_; ++root) {
      if (marks[root] != unvisited) continue;
      marks[root] = in_progress;
      path.push_back({root, 0});
      while (!path.empty()) {
        Step& step = path.back();
        if (step.next == by_start[step.node].size()) {
          marks[step.node] = done;
          path.pop_back();
          continue;
        }
        const std::size_t edge = by_start[step.node][step.next++];
        const std::size_t end = edges_[edge].to;
        if (marks[end] == in_progress) reversed_[edge] = true;
        if (marks[end] != unvisited) continue;
        marks[end] = in_progress;
        path.push_back({end, 0});
      }
    }
  }

  /// Puts each node into the column that is the length of the longest path to it.
  void assign_columns() {
    const auto by_start = edges_by_start();
    std::vector<std::size_t> before(nodes_);
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      if (from(edge) != to(edge)) ++before[to(edge)];
    }
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < nodes_; ++node) {
      if (before[node] == 0) ready.push_back(node);
    }
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const std::size_t node = ready[i];
      for (const std::size_t edge : by_start[node]) {
        const std::size_t end = to(edge);
        if (end == node) continue;
        points_[end].column = std::max(points_[end].column, points_[node].column + 1);
        if (--before[end] == 0) ready.push_back(end);
      }
    }
  }

  /// Splits columns that are too full into several.
  void split_columns(std::size_t column_max) {
    std::vector<std::size_t> by_column(nodes_);
    std::iota(by_column.begin(), by_column.end(), std::size_t{0});
    std::ranges::sort(by_column, {},
                      [&](std::size_t node) { return std::pair(points_[node].column, node); });
    std::size_t column = 0;
    std::size_t inside = 0;
    std::size_t wanted = 0;
    for (const std::size_t node : by_column) {
      const bool next = points_[node].column != wanted || inside == column_max;
      if (next && inside != 0) {
        ++column;
        inside = 0;
      }
      wanted = points_[node].column;
      points_[node].column = column;
      ++inside;
    }
    columns_.resize(nodes_ == 0 ? 0 : column + 1);
  }

  /// Creates points for edges that pass columns, and records the neighbours of each point.
  void connect_columns() {
    for (std::size_t node = 0; node < nodes_; ++node) {
      columns_[points_[node].column].push_back(node);
    }
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      std::size_t last = from(edge);
      paths_[edge].push_back(last);
      for (std::size_t at = points_[last].column + 1; at < points_[to(edge)].column; ++at) {
        const std::size_t point = points_.size();
        points_.emplace_back(at);
        columns_[at].push_back(point);
        connect(last, point);
        last = point;
        paths_[edge].push_back(point);
      }
      connect(last, to(edge));
      paths_[edge].push_back(to(edge));
    }
  }
  void connect(std::size_t left, std::size_t right) {
    points_[left].right_neighbours.push_back(right);
    points_[right].left_neighbours.push_back(left);
  }

  /// Sorts each column by the mean row of its neighbours, column by column, to and fro.
  void order_rows() {
    for (auto& column : columns_) number(column);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const bool rightwards = sweep % 2 == 0;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        auto& column = columns_[rightwards ? i : columns_.size() - 1 - i];
        std::vector<std::pair<double, std::size_t>> barycentres;  // with the row of each point
        for (std::size_t row = 0; row < column.size(); ++row) {
          const Point& point = points_[column[row]];
          barycentres.emplace_back(
              middle(point, rightwards ? point.left_neighbours : point.right_neighbours), row);
        }
        std::ranges::sort(barycentres);
        const std::vector<std::size_t> old = column;
        for (std::size_t row = 0; row < column.size(); ++row)
          column[row] = old[barycentres[row].second];
        number(column);
      }
    }
  }
  void number(const std::vector<std::size_t>& column) {
    double row = 0;
    for (const std::size_t point : column) points_[point].row = row++;
  }
  double middle(const Point& point, const std::vector<std::size_t>& beside) const {
    if (beside.empty()) return point.row;
    double sum = 0;
    for (const std::size_t each : beside) sum += points_[each].row;
    return sum / static_cast<double>(beside.size());
  }

  /// Centres the columns; a point of an edge takes half the height of a node.
  void assign_rows() {
    double highest = 0;
    std::vector<double> heights;
    for (const auto& column : columns_) {
      double row = 0;
      for (const std::size_t point : column) {
        points_[point].row = row;
        row += point < nodes_ ? 1 : 0.5;
      }
      heights.push_back(row);
      highest = std::max(highest, row);
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      for (const std::size_t point : columns_[i]) points_[point].row += (highest - heights[i]) / 2;
    }
  }

  std::size_t nodes_;
  std::span<const GraphEdge> edges_;
  std::vector<bool> reversed_;
  std::vector<Point> points_;  // nodes first
  std::vector<std::vector<std::size_t>> paths_;
  std::vector<std::vector<std::size_t>> columns_;
};

}  // namespace

GraphLayout layout_graph(std::size_t nodes, std::span<const GraphEdge> edges,
                         std::size_t column_max) {
  return LayoutBuilder(nodes, edges, column_max).result();
}

}  // namespace weir::drawing
