// Compares the router with a naive matcher on any routes and any path: the same route, captures,
// 405, 501 and Allow. Any text as a pattern is either accepted or rejected.
// The input is a list of choices: the number of routes, the method and segments of each, and then
// requests. The rest of the input is parsed as a pattern.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"

namespace {

using namespace weir::http;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "routing_fuzz: %s\n", what);
  std::abort();
}

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::size_t below(std::size_t end) {
    if (size_ == 0) return 0;
    --size_;
    return *data_++ % end;
  }
  std::string_view rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// ---- The naive matcher
// ---------------------------------------------------------------------------

using Texts = std::vector<std::string>;

std::optional<Texts> digits(const std::string& text) {
  const bool all = text.find_first_not_of("0123456789") == std::string::npos;
  return all && !text.empty() ? std::optional(Texts{text}) : std::nullopt;
}
std::optional<Texts> as_and_bs(const std::string& text) {
  return text.find_first_not_of("ab") == std::string::npos ? std::optional(Texts{text})
                                                           : std::nullopt;
}
std::optional<Texts> a_or_ab(const std::string& text) {
  if (text == "a") return Texts{text, "a", ""};
  if (text == "ab") return Texts{text, "a", "b"};
  return std::nullopt;
}
std::optional<Texts> two(const std::string& text) {
  return text.size() == 2 ? std::optional(Texts{text}) : std::nullopt;
}
std::optional<Texts> anything(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(Texts{text});
}

/// A Token is a segment of a pattern: its text and its meaning.
struct Token {
  const char* text;
  int rank;             // 0 literal, 1 expression, 2 capture, 3 rest
  const char* meaning;  // a decoded literal, or the name of an expression
  std::optional<Texts> (*match)(const std::string&);
};

constexpr std::array tokens = {
    Token{"a", 0, "a", nullptr},
    Token{"b", 0, "b", nullptr},
    Token{"ab", 0, "ab", nullptr},
    Token{"%61b", 0, "ab", nullptr},
    Token{"12", 0, "12", nullptr},
    Token{"", 0, "", nullptr},
    Token{"a%2fb", 0, "a/b", nullptr},
    Token{"{x:[0-9]+}", 1, "digits", digits},
    Token{"{y:[ab]*}", 1, "as and bs", as_and_bs},
    Token{"{x:(a)(b)?}", 1, "a or ab", a_or_ab},
    Token{"{x:[\\x01-\\x7f]{2}}", 1, "two", two},
    Token{"{x}", 2, "", anything},
    Token{"{name}", 2, "", anything},
    Token{"{rest...}", 3, "", nullptr},
};

constexpr std::array pieces = {"a",    "b", "ab", "%61",   "a%62", "12",
                               "1%32", "7", "",   "a%2Fb", "%20x", "a%25"};
constexpr std::array methods = {"GET", "HEAD", "POST", "OPTIONS", "PURGE", "DELETE"};
constexpr std::size_t routes_max = 12;
constexpr std::size_t segments_max = 5;

struct NaiveRoute {
  std::string method;
  std::vector<Token> tokens;

  std::string text() const {
    std::string all;
    for (const Token& token : tokens) all.append("/").append(token.text);
    return all;
  }
  bool shares(const NaiveRoute& other, std::size_t count) const {
    if (tokens.size() < count || other.tokens.size() < count) return false;
    return std::equal(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count),
                      other.tokens.begin(), [](const Token& a, const Token& b) {
                        return a.rank == b.rank && std::string_view(a.meaning) == b.meaning;
                      });
  }
};

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> segments;
  for (std::size_t start = 1;;) {
    const std::size_t slash = path.find('/', start);
    segments.emplace_back(path.substr(start, slash - start));
    if (slash == std::string_view::npos) return segments;
    start = slash + 1;
  }
}

class Naive {
 public:
  /// Adds a route. Returns false if the same route exists.
  bool add(const NaiveRoute& route) {
    for (const NaiveRoute& other : routes_) {
      if (other.method == route.method && other.tokens.size() == route.tokens.size() &&
          other.shares(route, route.tokens.size())) {
        return false;
      }
    }
    routes_.push_back(route);
    return true;
  }

  /// Returns the captures that the handler of this route gets, or nullopt if the route does not
  /// match.
  static std::optional<Texts> captures(const NaiveRoute& route, const std::string& path) {
    const std::vector<std::string> segments = split(path);
    Texts all;
    for (std::size_t index = 0; index < route.tokens.size(); ++index) {
      if (index == segments.size()) return std::nullopt;
      const Token& token = route.tokens[index];
      if (token.rank == 3) {
        std::string rest = segments[index];
        for (std::size_t next = index + 1; next < segments.size(); ++next) {
          rest.append("/").append(segments[next]);
        }
        all.push_back(rest);
        return all;
      }
      const std::string segment = percent_decode(segments[index]).value();
      if (token.rank == 0 && segment != token.meaning) return std::nullopt;
      if (token.rank == 0) continue;
      const auto caught = token.match(segment);
      if (!caught) return std::nullopt;
      all.insert(all.end(), caught->begin(), caught->end());
    }
    if (route.tokens.size() != segments.size()) return std::nullopt;
    return all;
  }

  /// Returns true if `a` has precedence over `b`. Both routes match.
  bool before(const NaiveRoute& a, const NaiveRoute& b) const {
    std::size_t same = 0;
    while (a.shares(b, same + 1)) ++same;
    if (same == a.tokens.size()) return a.method == "HEAD" && b.method != "HEAD";
    if (a.tokens[same].rank != b.tokens[same].rank) {
      return a.tokens[same].rank < b.tokens[same].rank;
    }
    return first_with(a, same + 1) < first_with(b, same + 1);
  }

  /// Returns the answer of the whole router as text.
  std::string answer(const std::string& method, const std::string& path) const {
    const bool known = method != "PURGE" || has_method(method);
    const NaiveRoute* best = nullptr;
    std::set<std::string> allowed;
    for (const NaiveRoute& route : routes_) {
      if (!captures(route, path)) continue;
      allowed.insert(route.method);
      const bool answers = route.method == method || (method == "HEAD" && route.method == "GET");
      if (answers && (best == nullptr || before(route, *best))) best = &route;
    }
    if (best != nullptr) {
      std::string said = best->method + best->text();
      const Texts caught = captures(*best, path).value();
      for (const std::string& each : caught) said += "|" + each;
      return said;
    }
    if (allowed.empty()) return known ? "404 " : "501 ";
    if (allowed.contains("GET")) allowed.insert("HEAD");
    allowed.insert("OPTIONS");
    std::string said = method == "OPTIONS" ? "204 " : "405 ";
    for (const std::string& each : allowed) said += (said.back() == ' ' ? "" : ", ") + each;
    return said;
  }

 private:
  bool has_method(const std::string& method) const {
    return std::any_of(routes_.begin(), routes_.end(),
                       [&method](const NaiveRoute& route) { return route.method == method; });
  }
  std::size_t first_with(const NaiveRoute& like, std::size_t count) const {
    const auto first =
        std::find_if(routes_.begin(), routes_.end(),
                     [&like, count](const NaiveRoute& route) { return route.shares(like, count); });
    return static_cast<std::size_t>(first - routes_.begin());
  }

  std::vector<NaiveRoute> routes_;
};

// ---- The router
// ----------------------------------------------------------------------------------

template <std::size_t>
using View = std::string_view;

template <class Indices>
class Echo;
/// A handler with one parameter per capture. It answers with its name and its captures.
template <std::size_t... I>
class Echo<std::index_sequence<I...>> {
 public:
  explicit Echo(std::string name) : name_(std::move(name)) {}
  Response operator()(View<I>... captures) const {
    std::string said = name_;
    ((said += "|", said += captures), ...);
    return text(std::move(said));
  }

 private:
  std::string name_;
};

template <std::size_t N = 0>
weir::Result<RouteId> add(Router& router, const std::string& method, const Pattern& pattern) {
  if constexpr (N <= path_params_max) {
    if (pattern.shape().params != N) return add<N + 1>(router, method, pattern);
    return router.add(method, pattern, Echo<std::make_index_sequence<N>>(method + pattern.text()));
  } else {
    std::abort();
  }
}

std::string answer(const Router& router, const std::string& method, const std::string& path) {
  TextRequest request(method + " " + path);
  RouteMatch match;
  router.match(request.head(), match);
  const std::string moved(request.head().bytes());
  match.rebase(request.head().bytes(), moved.data());
  const Response response = match.respond(request.request());
  if (match.found()) return std::string(response.body().text());
  return std::to_string(code_of(response.status())) + " " +
         std::string(response.headers().get("Allow").value_or(""));
}

void compare(Choices& choices) {
  Naive naive;
  Router router;
  const std::size_t count = 1 + choices.below(routes_max);
  for (std::size_t index = 0; index < count; ++index) {
    NaiveRoute route{methods[choices.below(methods.size())], {}};
    const std::size_t segments = 1 + choices.below(segments_max);
    while (route.tokens.size() < segments) {
      route.tokens.push_back(tokens[choices.below(tokens.size())]);
      if (route.tokens.back().rank == 3) break;
    }
    const auto added = add(router, route.method, Pattern::parse(route.text()).value());
    require(added.has_value() == naive.add(route),
            "the router and the naive matcher disagree about a conflict");
    require(added || added.error() == weir::Errc::conflict, "a valid route is rejected");
  }
  for (std::size_t requests = 1 + choices.below(8); requests > 0; --requests) {
    const std::string method = methods[choices.below(methods.size())];
    std::string path;
    for (std::size_t segments = 1 + choices.below(segments_max + 1); segments > 0; --segments) {
      path.append("/").append(pieces[choices.below(pieces.size())]);
    }
    const std::string expected = naive.answer(method, path);
    const std::string found = answer(router, method, path);
    if (found != expected) {
      std::fprintf(stderr, "%s %s: found %s, expected %s\n", method.c_str(), path.c_str(),
                   found.c_str(), expected.c_str());
    }
    require(found == expected, "the answer differs from the naive matcher's");
  }
}

void parse_any(std::string_view text) {
  const auto pattern = Pattern::parse(text.substr(0, 256));
  if (!pattern) return;
  Router router;
  const auto added = add(router, "GET", *pattern);
  if (!added || !pattern->is_literal()) return;
  const std::string expected = "GET" + pattern->text();
  require(answer(router, "GET", pattern->text()) == expected, "a literal does not match itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  compare(choices);
  parse_any(choices.rest());
  return 0;
}
