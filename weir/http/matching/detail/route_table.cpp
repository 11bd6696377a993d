#include "weir/http/matching/detail/route_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string>

#include "weir/base/detail/radix_tree.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/uri.hpp"

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
  Matching(std::string_view expression_text, const Expression* compiled)
      : text(expression_text), expression(compiled) {}

  std::string text;
  const Expression* expression;  // of the first route that has it
  Node node;
};

void RouteSet::add(MethodIndex method, const Route& route) {
  assert(find(method) == nullptr);
  const Entry entry{method, &route};
  if (first_.route == nullptr) {
    first_ = entry;
  } else {
    more_.push_back(entry);
  }
  methods_ |= set_of(method);
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
    if (!each->expression->matches(segment)) continue;
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

void RouteTable::match(const RequestHead& head, RouteMatch& match) const {
  const std::string_view path = head.path();
  const Route* const literal =
      head.path_has_escapes() ? nullptr : find_literal(head.method(), path);
  if (literal != nullptr) {
    match.set_literal(literal);
  } else {
    find({head.method(), head.method_text(), path, head.path_has_escapes()}, match);
  }
  match.middleware_ = middleware_;
}

RouteTable::Node& RouteTable::child(Node& node, const Pattern::Segment& segment,
                                    const Expression* expression) {
  using Kind = SegmentText::Kind;
  if (segment.kind == Kind::literal) {
    const auto inserted = node.literals.insert(segment.text);
    if (inserted.added) *inserted.value = std::make_unique<Node>();
    return **inserted.value;
  }
  if (segment.kind == Kind::capture) {
    if (node.capture == nullptr) node.capture = std::make_unique<Node>();
    return *node.capture;
  }
  for (const auto& each : node.matching) {
    if (each->text == segment.text) return each->node;
  }
  node.matching.push_back(std::make_unique<Node::Matching>(segment.text, expression));
  return node.matching.back()->node;
}

/// Where routes of this pattern end.
RouteSet& RouteTable::place(const Route& route) {
  Node* node = root_.get();
  auto capture = route.captures.begin();
  for (const Pattern::Segment& segment : route.pattern.segments()) {
    if (segment.kind == SegmentText::Kind::rest) return node->rest;
    const Expression* expression = nullptr;
    if (segment.kind != SegmentText::Kind::literal) expression = (capture++)->expression.get();
    node = &child(*node, segment, expression);
  }
  return node->here;
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

Result<const Route*> RouteTable::add(const Route& route) {
  RouteSet& set = place(route);
  if (const auto known = names_.find(method_of(route.method), route.method)) {
    if (const Route* const before = set.find(*known)) return before;
  }
  const std::optional<MethodIndex> method = names_.add(route.method);
  if (!method) return fail(Errc::limit_reached);
  set.add(*method, route);
  if (const auto path = plain_path(route.pattern)) whole_.insert(*path, &set);
  segments_max_ = std::max(segments_max_, route.pattern.segments().size());
  methods_ |= set_of(*method);
  return &route;
}

}  // namespace weir::http
