#include "weir/app/layers.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace weir::drawing {
namespace {

constexpr int sweeps = 8;

/// A node, or a point at which an edge passes a column.
struct Point {
  explicit Point(std::size_t its_column = 0) : column(its_column) {}
  std::size_t column;
  double row = 0;
  std::vector<std::size_t> before{};  ///< in the column to the left
  std::vector<std::size_t> behind{};  ///< in the column to the right
};

class Layout {
 public:
  Layout(std::size_t nodes, std::span<const GraphEdge> edges, std::size_t column_max)
      : nodes_(nodes), edges_(edges), turned_(edges.size()), points_(nodes), ways_(edges.size()) {
    find_circles();
    find_columns();
    spread(column_max);
    join();
    order();
    place();
  }

  Layers take() const {
    Layers layers;
    layers.columns = columns_.size();
    for (std::size_t node = 0; node < nodes_; ++node) layers.nodes.push_back(spot_of(node));
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      std::vector<Spot> way;
      for (const std::size_t point : ways_[edge]) way.push_back(spot_of(point));
      if (turned_[edge]) std::ranges::reverse(way);
      layers.edges.push_back(std::move(way));
    }
    for (const Point& point : points_) layers.rows = std::max(layers.rows, point.row + 1);
    return layers;
  }

 private:
  Spot spot_of(std::size_t point) const { return {points_[point].column, points_[point].row}; }
  std::size_t from(std::size_t edge) const {
    return turned_[edge] ? edges_[edge].to : edges_[edge].from;
  }
  std::size_t to(std::size_t edge) const {
    return turned_[edge] ? edges_[edge].from : edges_[edge].to;
  }
  std::vector<std::vector<std::size_t>> edges_by_start() const {
    std::vector<std::vector<std::size_t>> by_start(nodes_);
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) by_start[from(edge)].push_back(edge);
    return by_start;
  }

  /// Turns the edges that lead back to where a search along the others came from.
  void find_circles() {
    enum : std::uint8_t { unseen, on_the_way, done };
    struct Step {
      std::size_t node;
      std::size_t next;
    };
    const auto by_start = edges_by_start();
    std::vector<std::uint8_t> marks(nodes_, unseen);
    std::vector<Step> way;
    for (std::size_t root = 0; root < nodes_; ++root) {
      if (marks[root] != unseen) continue;
      marks[root] = on_the_way;
      way.push_back({root, 0});
      while (!way.empty()) {
        Step& step = way.back();
        if (step.next == by_start[step.node].size()) {
          marks[step.node] = done;
          way.pop_back();
          continue;
        }
        const std::size_t edge = by_start[step.node][step.next++];
        const std::size_t end = edges_[edge].to;
        if (marks[end] == on_the_way) turned_[edge] = true;
        if (marks[end] != unseen) continue;
        marks[end] = on_the_way;
        way.push_back({end, 0});
      }
    }
  }

  /// As far to the right as the longest way to it.
  void find_columns() {
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

  /// Columns that are too full become several.
  void spread(std::size_t column_max) {
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

  /// Points for what passes columns, and who is beside whom.
  void join() {
    for (std::size_t node = 0; node < nodes_; ++node) {
      columns_[points_[node].column].push_back(node);
    }
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      std::size_t last = from(edge);
      ways_[edge].push_back(last);
      for (std::size_t at = points_[last].column + 1; at < points_[to(edge)].column; ++at) {
        const std::size_t point = points_.size();
        points_.emplace_back(at);
        columns_[at].push_back(point);
        connect(last, point);
        last = point;
        ways_[edge].push_back(point);
      }
      connect(last, to(edge));
      ways_[edge].push_back(to(edge));
    }
  }
  void connect(std::size_t left, std::size_t right) {
    points_[left].behind.push_back(right);
    points_[right].before.push_back(left);
  }

  /// Each point goes to where those beside it are, column by column, to and fro.
  void order() {
    for (auto& column : columns_) number(column);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const bool rightwards = sweep % 2 == 0;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        auto& column = columns_[rightwards ? i : columns_.size() - 1 - i];
        std::vector<std::pair<double, std::size_t>> wishes;  // and who has them, from the top
        for (std::size_t row = 0; row < column.size(); ++row) {
          const Point& point = points_[column[row]];
          wishes.emplace_back(middle(point, rightwards ? point.before : point.behind), row);
        }
        std::ranges::sort(wishes);
        const std::vector<std::size_t> old = column;
        for (std::size_t row = 0; row < column.size(); ++row) column[row] = old[wishes[row].second];
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

  /// Columns are centred; what only passes takes half the room.
  void place() {
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
  std::vector<bool> turned_;
  std::vector<Point> points_;  // the nodes first
  std::vector<std::vector<std::size_t>> ways_;
  std::vector<std::vector<std::size_t>> columns_;
};

}  // namespace

Layers lay_out(std::size_t nodes, std::span<const GraphEdge> edges, std::size_t column_max) {
  return Layout(nodes, edges, column_max).take();
}

}  // namespace weir::drawing
