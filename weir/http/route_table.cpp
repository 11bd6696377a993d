#include "weir/http/route_table.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "weir/base/radix_tree.hpp"
#include "weir/http/characters.hpp"
#include "weir/http/uri.hpp"

namespace weir::http {

/// What follows after some segments.
struct RouteTable::Node {
  struct Matching;

  RadixTree<std::unique_ptr<Node>> literals;
  std::vector<std::unique_ptr<Matching>> matching;  // in the order of registration
  std::unique_ptr<Node> capture;
  RouteSet here;
  RouteSet rest;
};

/// A capture with an expression.
struct RouteTable::Node::Matching {
  Matching(std::string_view expression_text, Expression compiled)
      : text(expression_text), expression(std::move(compiled)) {}

  std::string text;
  Expression expression;
  Node node;
};

const Route* RouteSet::add(MethodIndex method, const Route& route) {
  if (const Route* before = find(method)) return before;
  const Entry entry{method, &route};
  if (first_.route == nullptr) {
    first_ = entry;
  } else {
    more_.push_back(entry);
  }
  methods_ |= set_of(method);
  return nullptr;
}

/// One look-up. The tree's depth is the index of the segment, so each node is visited at most once:
/// backtracking cannot take longer than the tree is large, whatever the path. The recursion is as
/// deep as the longest pattern, at most pattern_segments_max.
class RouteTable::Search {
 public:
  Search(std::string_view path, std::size_t segments_max) noexcept : path_(path) {
    split(segments_max + 1);
  }

  void decode(RouteMatch& match);
  const Route* visit(const Node& node, std::size_t index) noexcept;
  void capture(const Route& route, Captures& captures) const noexcept;

  MethodIndex method = 0;
  MethodSet allowed = 0;  ///< methods of the routes that matched but for theirs

 private:
  void split(std::size_t count_max) noexcept;
  const Route* accept(const RouteSet& set) noexcept;

  std::string_view path_;
  std::size_t count_ = 0;
  std::array<std::string_view, pattern_segments_max + 1> segments_;
};

/// More segments than any pattern has need not be told apart: only a rest can match them.
void RouteTable::Search::split(std::size_t count_max) noexcept {
  std::string_view left = path_;
  while (!left.empty() && count_ < count_max) {
    left.remove_prefix(1);
    segments_[count_] = left.substr(0, left.find('/'));
    left.remove_prefix(segments_[count_].size());
    ++count_;
  }
}

void RouteTable::Search::decode(RouteMatch& match) {
  char* out = match.scratch(path_.size());
  for (std::size_t index = 0; index < count_; ++index) {
    std::string_view& segment = segments_[index];
    if (segment.find('%') == std::string_view::npos) continue;
    segment = {out, percent_decode(segment, out).value_or(0)};
    out += segment.size();
  }
}

const Route* RouteTable::Search::accept(const RouteSet& set) noexcept {
  if (const Route* route = set.answering(method)) return route;
  allowed |= set.methods();
  return nullptr;
}

const Route* RouteTable::Search::visit(const Node& node, std::size_t index) noexcept {
  if (index == count_) return accept(node.here);
  const std::string_view segment = segments_[index];
  if (const auto* literal = node.literals.find(segment)) {
    if (const Route* route = visit(**literal, index + 1)) return route;
  }
  for (const auto& each : node.matching) {
    if (!each->expression.matches(segment)) continue;
    if (const Route* route = visit(each->node, index + 1)) return route;
  }
  if (node.capture != nullptr && !segment.empty()) {
    if (const Route* route = visit(*node.capture, index + 1)) return route;
  }
  return accept(node.rest);
}

void RouteTable::Search::capture(const Route& route, Captures& captures) const noexcept {
  for (const Route::Capture& each : route.captures) {
    if (each.kind == SegmentText::Kind::rest) {
      std::string_view rest = path_;
      for (std::size_t index = 0; index <= each.segment; ++index) {
        rest.remove_prefix(rest.find('/', index == 0 ? 0 : 1));
      }
      captures.add(rest.substr(1));
      continue;
    }
    const std::string_view segment = segments_[each.segment];
    captures.add(segment);
    if (each.expression != nullptr) each.expression->add_groups(segment, captures);
  }
}

RouteTable::RouteTable() : root_(std::make_unique<Node>()) {}
RouteTable::~RouteTable() = default;

void RouteTable::find(const Query& query, RouteMatch& match) const {
  match.clear();
  match.methods_ = &names_;
  const std::optional<MethodIndex> method = names_.find(query.method, query.method_text);
  if (!method) {
    match.status_ = Status::not_implemented;
    return;
  }
  if (!query.path.starts_with('/')) return explain_miss(query, methods_, match);
  if (!query.has_escapes) {
    match.route_ = find_literal(query.method, query.path);
    if (match.found()) return;
  }
  Search search(query.path, segments_max_);
  search.method = *method;
  if (query.has_escapes) search.decode(match);
  match.route_ = search.visit(*root_, 0);
  if (match.found()) return search.capture(*match.route_, match.captures_);
  explain_miss(query, search.allowed, match);
}

void RouteTable::explain_miss(const Query& query, MethodSet allowed,
                              RouteMatch& match) const noexcept {
  // Without a path, "*" or CONNECT's, it is about the server as a whole (RFC 9110 §9.3.7).
  if (allowed == 0 && query.path.starts_with('/')) return;
  if ((allowed & set_of(Method::get)) != 0) allowed |= set_of(Method::head);
  match.allowed_ = allowed | set_of(Method::options);
  match.status_ = query.method == Method::options ? Status::no_content : Status::method_not_allowed;
}

Result<RouteTable::Node*> RouteTable::child(Node& node, const Pattern::Segment& segment) {
  using Kind = SegmentText::Kind;
  if (segment.kind == Kind::literal) {
    const auto inserted = node.literals.insert(segment.text);
    if (inserted.added) *inserted.value = std::make_unique<Node>();
    return inserted.value->get();
  }
  if (segment.kind == Kind::capture) {
    if (node.capture == nullptr) node.capture = std::make_unique<Node>();
    return node.capture.get();
  }
  for (const auto& each : node.matching) {
    if (each->text == segment.text) return &each->node;
  }
  auto expression = Expression::compile(segment.text, segment.groups);
  if (!expression) return fail(expression.error());
  node.matching.push_back(std::make_unique<Node::Matching>(segment.text, std::move(*expression)));
  return &node.matching.back()->node;
}

/// Where routes of this pattern end; says in `captures` what they catch on the way.
Result<RouteSet*> RouteTable::place(const Pattern& pattern, std::vector<Route::Capture>& captures) {
  Node* node = root_.get();
  std::size_t index = 0;
  for (const Pattern::Segment& segment : pattern.segments()) {
    Route::Capture capture{segment.kind, index++, nullptr};
    if (segment.kind == SegmentText::Kind::rest) {
      captures.push_back(capture);
      return &node->rest;
    }
    auto next = child(*node, segment);
    if (!next) return fail(next.error());
    if (segment.kind == SegmentText::Kind::expression) {
      // The node was found by this very text, or made for it.
      for (const auto& each : node->matching) {
        if (&each->node == *next) capture.expression = &each->expression;
      }
    }
    if (segment.kind != SegmentText::Kind::literal) captures.push_back(capture);
    node = *next;
  }
  return &node->here;
}

namespace {

/// The one raw path without escapes that a literal pattern matches, if there is one.
std::optional<std::string> plain_path(const Pattern& pattern) {
  if (!pattern.is_literal()) return std::nullopt;
  std::string path;
  for (const Pattern::Segment& segment : pattern.segments()) {
    const bool plain = all_in(segment.text, CharacterClass::target) &&
                       segment.text.find_first_of("/?%") == std::string::npos;
    if (!plain) return std::nullopt;
    path.append("/").append(segment.text);
  }
  return path;
}

}  // namespace

Result<RouteTable::Added> RouteTable::add(Route route) {
  const std::optional<MethodIndex> method = names_.add(route.method);
  if (!method) return fail(Errc::limit_reached);
  auto set = place(route.pattern, route.captures);
  if (!set) return fail(set.error());
  auto kept = std::make_unique<Route>(std::move(route));
  if (const Route* before = (*set)->add(*method, *kept)) return Added{.conflict = before};
  if (const auto path = plain_path(kept->pattern)) whole_.insert(*path, *set);
  segments_max_ = std::max(segments_max_, kept->pattern.segments().size());
  methods_ |= set_of(*method);
  routes_.push_back(std::move(kept));
  return Added{.id = {static_cast<std::uint32_t>(routes_.size() - 1)}};
}

}  // namespace weir::http
