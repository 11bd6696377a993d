// The tree search of the routing table.
#include "weir/http/matching/detail/route_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/detail/radix_tree.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/websocket.hpp"

namespace weir::http {
namespace {

constexpr MethodIndex no_method = methods_max;  // no route has it

}  // namespace

/// A node of the tree: the routes and children after some segments.
struct RouteTable::Node {
  struct RegexChild;

  RadixTree<std::unique_ptr<Node>> literals;
  std::vector<std::unique_ptr<RegexChild>> regex_children;  // in the order of registration
  std::unique_ptr<Node> param;
  RouteSet here;
  RouteSet wildcard;
};

/// A child for a path parameter with a regular expression.
struct RouteTable::Node::RegexChild {
  RegexChild(std::string_view regex_text, const PathRegex* compiled)
      : text(regex_text), regex(compiled) {}

  std::string text;
  const PathRegex* regex;  // that of the first route with this text
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

/// One look-up. The depth in the tree is the index of the segment, so each node is visited at
/// most once. Backtracking takes at most time proportional to the size of the tree, for any path.
/// The recursion is as deep as the longest pattern, at most pattern_segments_max.
class RouteTable::Search {
 public:
  Search(std::string_view path, std::size_t segments_max) noexcept : path_(path) {
    split(segments_max + 1);
  }

  void decode(RouteMatch& match);
  const Route* visit(const Node& node, std::size_t index) noexcept;
  void extract_params(const Route& route, PathParams& params) const noexcept;

  MethodIndex method = 0;
  MethodSet allowed = 0;  ///< methods of the routes that matched the path but not the method

 private:
  void split(std::size_t count_max) noexcept;
  const Route* accept(const RouteSet& set) noexcept;

  std::string_view path_;
  std::size_t count_ = 0;
  std::array<std::string_view, pattern_segments_max + 1> segments_;
};

/// Splits the path into at most `count_max` segments. The remainder needs no splitting, because
/// only a wildcard can match more segments than any pattern has.
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
  if (const Route* route = set.find_with_get_fallback(method)) return route;
  allowed |= set.methods();
  return nullptr;
}

const Route* RouteTable::Search::visit(const Node& node, std::size_t index) noexcept {
  if (index == count_) return accept(node.here);
  const std::string_view segment = segments_[index];
  if (const auto* literal = node.literals.find(segment)) {
    if (const Route* route = visit(**literal, index + 1)) return route;
  }
  for (const auto& each : node.regex_children) {
    if (!each->regex->matches(segment)) continue;
    if (const Route* route = visit(each->node, index + 1)) return route;
  }
  if (node.param != nullptr && !segment.empty()) {
    if (const Route* route = visit(*node.param, index + 1)) return route;
  }
  return accept(node.wildcard);
}

void RouteTable::Search::extract_params(const Route& route, PathParams& params) const noexcept {
  for (const Route::PathParam& each : route.params) {
    if (each.kind == SegmentText::Kind::wildcard) {
      std::string_view rest = path_;
      for (std::size_t index = 0; index <= each.segment; ++index) {
        rest.remove_prefix(rest.find('/', index == 0 ? 0 : 1));
      }
      params.add(rest.substr(1));
      continue;
    }
    const std::string_view segment = segments_[each.segment];
    params.add(segment);
    if (each.regex != nullptr) each.regex->add_groups(segment, params);
  }
}

RouteTable::RouteTable() : root_(std::make_unique<Node>()) {}
RouteTable::~RouteTable() = default;

void RouteTable::find(const LookupKey& query, RouteMatch& match) const {
  match.clear();
  match.methods_ = &names_;
  // A method that no route has is looked up too, because the methods of a resource are an answer.
  const std::optional<MethodIndex> method = names_.find(query.method, query.method_text);
  if (!query.path.starts_with('/')) return set_miss_status(query, methods_, match);
  if (!query.has_escapes) {
    match.route_ = find_literal(query.method, query.path);
    if (match.found()) return;
  }
  Search search(query.path, segments_max_);
  search.method = method.value_or(no_method);
  if (query.has_escapes) search.decode(match);
  match.route_ = search.visit(*root_, 0);
  if (match.found()) return search.extract_params(*match.route_, match.params_);
  set_miss_status(query, search.allowed, match);
  if (match.status_ != Status::not_found) return;
  if (rules_ != nullptr) match.route_ = rules_->fallback(query.path);
  if (!match.found() && !method) match.status_ = Status::not_implemented;
}

void RouteTable::set_miss_status(const LookupKey& query, MethodSet allowed,
                                 RouteMatch& match) const noexcept {
  // A request without a path ("*" or CONNECT) is about the whole server (RFC 9110 §9.3.7).
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
  match.middleware_waits_ = middleware_waits_;
}

RouteTable::Node& RouteTable::child(Node& node, const Pattern::Segment& segment,
                                    const PathRegex* regex) {
  using Kind = SegmentText::Kind;
  if (segment.kind == Kind::literal) {
    const auto inserted = node.literals.insert(segment.text);
    if (inserted.added) *inserted.value = std::make_unique<Node>();
    return **inserted.value;
  }
  if (segment.kind == Kind::param) {
    if (node.param == nullptr) node.param = std::make_unique<Node>();
    return *node.param;
  }
  for (const auto& each : node.regex_children) {
    if (each->text == segment.text) return each->node;
  }
  node.regex_children.push_back(std::make_unique<Node::RegexChild>(segment.text, regex));
  return node.regex_children.back()->node;
}

/// Returns the set of the routes that end where the pattern of `route` ends.
RouteSet& RouteTable::route_set_for(const Route& route) {
  Node* node = root_.get();
  auto param = route.params.begin();
  for (const Pattern::Segment& segment : route.pattern.segments()) {
    if (segment.kind == SegmentText::Kind::wildcard) return node->wildcard;
    const PathRegex* regex = nullptr;
    if (segment.kind != SegmentText::Kind::literal) regex = (param++)->regex.get();
    node = &child(*node, segment, regex);
  }
  return node->here;
}

namespace {

/// Returns the only raw path without escapes that a literal pattern matches, if there is one.
std::optional<std::string> plain_path(const Pattern& pattern) {
  if (!pattern.is_literal()) return std::nullopt;
  std::string path;
  for (const Pattern::Segment& segment : pattern.segments()) {
    const bool plain = all_in(segment.text, CharClass::target) &&
                       segment.text.find_first_of("/?%") == std::string::npos;
    if (!plain) return std::nullopt;
    path.append("/").append(segment.text);
  }
  return path;
}

}  // namespace

Result<const Route*> RouteTable::add(const Route& route) {
  // Fail before any node exists: a node would refer to the regexes of a route that is not added.
  const std::optional<MethodIndex> method = names_.add(route.method);
  if (!method) return fail(Errc::limit_reached);
  RouteSet& set = route_set_for(route);
  if (const Route* const before = set.find(*method)) return before;
  set.add(*method, route);
  if (const auto path = plain_path(route.pattern)) literal_routes_.insert(*path, &set);
  segments_max_ = std::max(segments_max_, route.pattern.segments().size());
  methods_ |= set_of(*method);
  demands_.add(route);
  routes_.push_back(&route);
  return &route;
}

namespace {

/// The CoreDemands of a core, by owner.
class CoreDemandSum {
 public:
  explicit CoreDemandSum(Loop& loop) noexcept : loop_(loop) {}

  void add(const Route& route) {
    add(route.handler.demands(loop_));
    for (std::size_t index = 0; index < route.middleware.size(); ++index) {
      add(route.middleware[index].demands(loop_));
    }
  }
  void add(const CoreDemands& demands) {
    if (demands.owner == nullptr) return;
    const auto known = std::ranges::find(all_, demands.owner, &CoreDemands::owner);
    if (known == all_.end()) return all_.push_back(demands);
    known->request_bytes = std::max(known->request_bytes, demands.request_bytes);
    known->body_max = std::max(known->body_max, demands.body_max);
    known->core_bytes = std::max(known->core_bytes, demands.core_bytes);
    known->descriptors = std::max(known->descriptors, demands.descriptors);
  }
  void add_to(RouteDemands& out) const noexcept {
    for (const CoreDemands& each : all_) {
      out.request_bytes = std::max(out.request_bytes, each.request_bytes);
      out.body_max = std::max(out.body_max, each.body_max);
      out.core_bytes = weir::detail::sum({out.core_bytes, each.core_bytes});
      out.descriptors += each.descriptors;
    }
  }

 private:
  Loop& loop_;
  std::vector<CoreDemands> all_;
};

}  // namespace

RouteDemands RouteTable::demands(Loop& loop) const {
  RouteDemands all = demands_;
  CoreDemandSum of_core(loop);
  for (const Middleware& each : middleware_) of_core.add(each.demands(loop));
  for (const Route* each : routes_) of_core.add(*each);
  if (rules_ != nullptr) {
    for (const PrefixRule& each : rules_->all()) {
      if (each.fallback == nullptr) continue;
      all.add(*each.fallback);
      of_core.add(*each.fallback);
    }
  }
  of_core.add_to(all);
  return all;
}

void RouteDemands::add(const Route& route) noexcept {
  body_max = std::max(body_max, route.options.body_max.value_or(0));
  if (route.options.websocket == nullptr) return;
  websockets = true;
  const std::optional<WebSocketCompression>& wanted = route.options.websocket->compression;
  if (!wanted) return;
  // Without a window of its own, a connection holds the largest one while a message arrives.
  const auto receive = [](int bits) { return bits == 0 ? deflate_window_max : bits; };
  if (!compression) compression = *wanted;
  compression->send_window_bits = std::max(compression->send_window_bits, wanted->send_window_bits);
  compression->receive_window_bits =
      std::max(receive(compression->receive_window_bits), receive(wanted->receive_window_bits));
}

}  // namespace weir::http
