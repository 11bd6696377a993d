// A model of routes and targets that is independent of the router and the parser.
#include "tools/simulate/target_requests.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/simulate/decoding_routes.hpp"

namespace weir::simulate {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";
// Bytes of a segment that need no escape (RFC 3986 §3.3), without '%'.
constexpr std::string_view plain_bytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@";

void append_escaped(std::string& out, char byte, sim::Random& random) {
  const auto value = static_cast<unsigned char>(byte);
  const auto digit = [&random](unsigned nibble) {
    const bool upper = nibble > 9 && random.bernoulli(0.5);
    return hex_digits[upper ? nibble + 6 : nibble];
  };
  out += '%';
  out += digit(value >> 4);
  out += digit(value & 15U);
}

/// Returns `text` with all bytes escaped that are not in `plain`, and with some others.
std::string encode(std::string_view text, std::string_view plain, sim::Random& random) {
  const double rate = random.bernoulli(0.5) ? 0 : 0.3;
  std::string encoded;
  for (const char each : text) {
    if (plain.find(each) == std::string_view::npos || random.bernoulli(rate)) {
      append_escaped(encoded, each, random);
    } else {
      encoded += each;
    }
  }
  return encoded;
}

std::string draw_bytes(sim::Random& random, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(1 + random.below(255));
  return bytes;
}

std::string draw_segment(sim::Random& random) {
  constexpr std::array<std::string_view, 16> usual{"a",     "b",  "c",       "a",  "b",   "ab-12",
                                                   "beef",  "-1", "abc-",    ".a", "...", "a.",
                                                   "sp ce", "",   "one/two", "%41"};
  if (random.bernoulli(0.02)) return std::string(random.bernoulli(0.5) ? "." : "..");
  if (random.bernoulli(0.8)) return std::string(random.one_of(usual));
  return draw_bytes(random, 1 + random.below(20));
}

enum class SegmentKind : std::uint8_t { literal, code, hex, param, wildcard };

struct SegmentModel {
  SegmentKind kind;
  std::string_view text = {};
};

struct RouteModel {
  std::string_view method;
  std::string_view label;
  std::vector<SegmentModel> segments;
};

const std::vector<RouteModel>& route_models() {
  using enum SegmentKind;
  static const std::vector<RouteModel> models{
      {"GET", "/a/b", {{literal, "a"}, {literal, "b"}}},
      {"GET", "/a/", {{literal, "a"}, {literal, ""}}},
      {"GET", "/sp ce/one|two", {{literal, "sp ce"}, {literal, "one/two"}}},
      {"GET", "/a/{x}", {{literal, "a"}, {param}}},
      {"GET", "/{code}/b", {{code}, {literal, "b"}}},
      {"GET", "/{hex}/{y}", {{hex}, {param}}},
      {"GET", "/{x}/b", {{param}, {literal, "b"}}},
      {"GET", "/{x}/{y}", {{param}, {param}}},
      {"GET", "/{x}/{y}/c", {{param}, {param}, {literal, "c"}}},
      {"GET", "/a/{rest...}", {{literal, "a"}, {wildcard}}},
      {"GET", "/{rest...}", {{wildcard}}},
      {"POST", "post /a/{x}", {{literal, "a"}, {param}}},
      {"PUT", "put /{x}/b", {{param}, {literal, "b"}}},
      {"DELETE", "delete /a/{rest...}", {{literal, "a"}, {wildcard}}},
  };
  return models;
}

/// Splits "abc-12" into its letters and its digits.
std::optional<std::pair<std::string, std::string>> split_code(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] >= 'a' && text[at] <= 'z') ++at;
  const std::size_t letters = at;
  if (letters == 0 || at == text.size() || text[at++] != '-') return std::nullopt;
  const std::size_t digits = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  if (at == digits || at != text.size()) return std::nullopt;
  return std::pair(text.substr(0, letters), text.substr(digits));
}

/// Returns the parameters with which the route matches the decoded segments; nullopt if it does
/// not match.
std::optional<Texts> match(const RouteModel& route, const Texts& segments) {
  Texts params;
  for (std::size_t at = 0; at < route.segments.size(); ++at) {
    const SegmentModel& model = route.segments[at];
    if (at >= segments.size()) return std::nullopt;
    const std::string& segment = segments[at];
    switch (model.kind) {
      case SegmentKind::literal:
        if (segment != model.text) return std::nullopt;
        break;
      case SegmentKind::code: {
        const auto parts = split_code(segment);
        if (!parts) return std::nullopt;
        params.insert(params.end(), {segment, parts->first, parts->second});
        break;
      }
      case SegmentKind::hex:
        if (segment.empty() ||
            segment.find_first_not_of(hex_digits.substr(0, 16)) != std::string::npos) {
          return std::nullopt;
        }
        params.push_back(segment);
        break;
      case SegmentKind::param:
        if (segment.empty()) return std::nullopt;
        params.push_back(segment);
        break;
      case SegmentKind::wildcard:
        params.insert(params.end(), segments.begin() + static_cast<std::ptrdiff_t>(at),
                      segments.end());
        return params;
    }
  }
  if (segments.size() != route.segments.size()) return std::nullopt;
  return params;
}

std::string describe(const sim::HttpResponse& response) {
  return std::to_string(response.status) + " " + response.body.substr(0, 200);
}

/// Returns a check of the response to HEAD: it has the headers of the response to GET.
CheckedRequest::Check expect_head(int status, std::size_t body_size) {
  return [status, size = std::to_string(body_size)](const sim::HttpResponse& response) {
    const bool right = response.status == status && response.body.empty() &&
                       response.header("Content-Length") == size;
    return right ? std::string() : describe(response) + " instead of the head of a body of " + size;
  };
}

/// Returns a check of the status and the body.
CheckedRequest::Check expect(int status, std::string body) {
  return [status, body = std::move(body)](const sim::HttpResponse& response) -> std::string {
    if (response.status == status && response.body == body) return {};
    return describe(response) + " instead of " + std::to_string(status) + " " + body;
  };
}

CheckedRequest::Check expect_allow(int status, std::string allow) {
  return [status, allow = std::move(allow)](const sim::HttpResponse& response) -> std::string {
    if (response.status == status && response.header("Allow") == allow) return {};
    return describe(response) + ", Allow: " + response.header("Allow") + " instead of " + allow;
  };
}

std::string allow_line(std::vector<std::string_view> methods) {
  if (std::ranges::count(methods, "GET") > 0) methods.emplace_back("HEAD");
  methods.emplace_back("OPTIONS");
  std::ranges::sort(methods);
  methods.erase(std::unique(methods.begin(), methods.end()), methods.end());
  std::string line;
  for (const std::string_view each : methods) line.append(line.empty() ? "" : ", ").append(each);
  return line;
}

/// Chooses the best route for these segments, segment by segment, and returns the check of its
/// answer.
CheckedRequest::Check check_of_route(std::string_view method, const Texts& segments) {
  const auto kinds = [](const RouteModel* route) {
    std::vector<SegmentKind> all;
    for (const SegmentModel& each : route->segments) all.push_back(each.kind);
    return all;
  };
  const bool is_head = method == "HEAD";
  const RouteModel* best = nullptr;
  std::vector<std::string_view> methods;
  for (const RouteModel& route : route_models()) {
    if (!match(route, segments)) continue;
    methods.push_back(route.method);
    if (route.method != (is_head ? "GET" : method)) continue;
    if (best == nullptr || kinds(&route) < kinds(best)) best = &route;
  }
  if (method == "BREW" && methods.empty())
    return expect(501, R"({"title":"Not Implemented","status":501})");
  if (best == nullptr && !methods.empty()) {
    return expect_allow(method == "OPTIONS" ? 204 : 405, allow_line(methods));
  }
  const int status = best == nullptr ? 404 : 200;
  const std::string body = best == nullptr ? R"({"title":"Not Found","status":404})"
                                           : decoded_text(best->label, *match(*best, segments));
  return is_head ? expect_head(status, body.size()) : expect(status, body);
}

/// Returns the check of a request that the server rejects; it closes the connection then.
CheckedRequest::Check expect_rejection() {
  return [](const sim::HttpResponse& response) -> std::string {
    return response.status == 400 ? "" : describe(response) + " instead of 400";
  };
}

/// A request in parts.
struct Draft {
  std::string method = "GET";
  std::string target;
  std::string host = "a";
  CheckedRequest::Check check;
  bool closes = false;  // true if the server rejects the request
};

Draft draw_path(sim::Random& random) {
  constexpr std::array<std::string_view, 12> methods{
      "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW"};
  Draft draft;
  draft.method = random.bernoulli(0.1) ? "POST" : random.one_of(methods);
  draft.target = "/m";
  Texts segments;
  for (std::size_t left = random.below(5); left > 0; --left) {
    segments.push_back(draw_segment(random));
    draft.target += "/" + encode(segments.back(), plain_bytes, random);
  }
  const bool has_dots = std::ranges::any_of(
      segments, [](const std::string& each) { return each == "." || each == ".."; });
  draft.check = has_dots ? expect_rejection() : check_of_route(draft.method, segments);
  draft.closes = has_dots;
  if (random.bernoulli(0.2)) draft.target += "?a=%2e/..";
  return draft;
}

struct NumberText {
  std::string_view text;
  std::string_view value;  // empty: the text is no such number
};

Draft draw_numbers(sim::Random& random) {
  constexpr std::array<NumberText, 9> small{{{"0", "0"},
                                             {"127", "127"},
                                             {"-128", "-128"},
                                             {"007", "7"},
                                             {"128", ""},
                                             {"-129", ""},
                                             {"+1", ""},
                                             {"1x", ""},
                                             {"-", ""}}};
  constexpr std::array<NumberText, 6> large{{{"18446744073709551615", "18446744073709551615"},
                                             {"0", "0"},
                                             {"18446744073709551616", ""},
                                             {"-1", ""},
                                             {" 1", ""},
                                             {"1.", ""}}};
  constexpr std::array<NumberText, 9> real{{{"1.5", "1.5"},
                                            {"-25e-2", "-0.25"},
                                            {"3", "3.0"},
                                            {".5", "0.5"},
                                            {"inf", ""},
                                            {"nan", ""},
                                            {"1e999", ""},
                                            {"0x1", ""},
                                            {"1,5", ""}}};
  // Most numbers are right, so that a whole request often is.
  const auto pick = [&random](const auto& texts, std::size_t right) {
    return texts[random.below(random.bernoulli(0.8) ? right : texts.size())];
  };
  const std::array<NumberText, 3> values{pick(small, 4), pick(large, 2), pick(real, 4)};
  Draft draft;
  draft.target = "/n";
  Texts shown;
  bool right = true;
  for (const NumberText& each : values) {
    draft.target += "/" + encode(each.text, plain_bytes, random);
    shown.emplace_back(each.value);
    right = right && !each.value.empty();
  }
  draft.check = right ? expect(200, decoded_text("numbers", shown))
                      : expect(404, R"({"title":"Not Found","status":404})");
  return draft;
}

/// Returns the text of a form: '+' is a space, and '&', '=' and '+' are escaped.
std::string encode_form(const std::string& text, bool escapes_equals, sim::Random& random) {
  constexpr std::string_view in_values =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$'()*,;:@/?=";
  std::string encoded;
  const std::string_view plain = in_values.substr(0, in_values.size() - (escapes_equals ? 1 : 0));
  for (const char each : text) {
    if (each == ' ' && random.bernoulli(0.7)) {
      encoded += '+';
    } else {
      encoded += encode(std::string_view(&each, 1), plain, random);
    }
  }
  return encoded;
}

Draft draw_query(sim::Random& random) {
  constexpr std::array<std::string_view, 8> names{"a", "b c", "a", "A", "", "a&b", "x=y", "\xff+"};
  constexpr std::array<std::string_view, 8> authorities{"a",  "a.b:80", "[::1]:8080", "127.0.0.1",
                                                        "a:", "x_y",    "%61",        "[v1.a:b]"};
  Draft draft;
  draft.target = "/q";
  Texts first{"none", "none"};
  Texts pairs;
  Texts seen;  // names of the pairs
  const std::size_t count = random.below(5);
  if (count > 0) draft.target += "?";
  for (std::size_t each = 0; each < count; ++each) {
    const std::string name(random.one_of(names));
    const std::string value = random.bernoulli(0.3) ? "" : draw_segment(random);
    if (each > 0) draft.target += random.bernoulli(0.1) ? "&&" : "&";
    const bool bare = value.empty() && !name.empty() && random.bernoulli(0.5);
    draft.target += encode_form(name, true, random) + (bare ? "" : "=");
    if (!bare) draft.target += encode_form(value, false, random);
    const bool asked = name == "a" || name == "b c";
    std::string& known = first[name == "a" ? 0 : 1];
    if (asked && std::ranges::count(seen, name) == 0) known = value;
    seen.push_back(name);
    pairs.insert(pairs.end(), {name, value});
  }
  draft.host = random.one_of(authorities);
  std::string authority = draft.host;
  if (random.bernoulli(0.3)) {
    constexpr std::array<std::string_view, 4> schemes{"http://", "HTTP://", "https://", "hTTpS://"};
    authority = random.one_of(authorities);
    draft.target = std::string(random.one_of(schemes)) + authority + draft.target;
  }
  Texts values{authority};
  values.insert(values.end(), first.begin(), first.end());
  values.insert(values.end(), pairs.begin(), pairs.end());
  draft.check = expect(200, decoded_text("query", values));
  return draft;
}

Draft draw_rejected(sim::Random& random) {
  constexpr std::array<std::string_view, 8> wrong{"\"",   "<",    ">", "\x7f",
                                                  "\x80", "\xff", "#", "\x01"};
  constexpr std::array<std::string_view, 7> wrong_in_path{"%",   "%2",  "%zz", "%4g",
                                                          "%g4", "%00", "\\"};
  constexpr std::array<std::string_view, 22> authorities{
      "a:65536",     "u@h",       "[::1", "[::1]x", ":80",   "a,b",           "a:8x",
      "%zz",         "%00",       "%2f",  "%4",     "a b",   "a\\b",          "[1:2:3:4:5:6:7]",
      "[::1::]",     "[12345::]", "[:1]", "[v.a]",  "[v1.]", "[::256.1.1.1]", "[1:2:3:4:5:6:7:8:9]",
      "[::01.1.1.1]"};
  Draft draft;
  draft.check = expect_rejection();
  draft.closes = true;
  switch (random.below(4)) {
    case 0:
    case 1: {
      draft.target = "/m/";
      const std::size_t size = random.below(40);
      while (draft.target.size() < size) draft.target += plain_bytes[random.below(60)];
      const bool in_query = random.bernoulli(0.5);
      if (in_query) draft.target += "?a=";
      const bool anywhere = in_query || random.bernoulli(0.5);
      draft.target += anywhere ? random.one_of(wrong) : random.one_of(wrong_in_path);
      // A broken escape at the end must not take the next bytes.
      draft.target += std::string(random.below(20), 'x');
      break;
    }
    case 2: {
      constexpr std::array<std::string_view, 6> forms{"ftp://a/", "http:/a",    "a:80",
                                                      "*",        "httpx://a/", "q"};
      draft.target = random.one_of(forms);
      break;
    }
    default: {
      const std::string authority(random.one_of(authorities));
      draft.target = "/q";
      if (random.bernoulli(0.5) && authority.find(' ') == std::string::npos) {
        draft.target = "http://" + authority + "/q";
      } else {
        draft.host = authority;
      }
      break;
    }
  }
  return draft;
}

/// Returns a header in one of the forms that RFC 9112 §5 allows.
std::string header_line(std::string_view name, std::string_view value, sim::Random& random) {
  constexpr std::array<std::string_view, 6> before{" ", " ", " ", "", "\t", " \t "};
  constexpr std::array<std::string_view, 6> after{"", "", "", "", " ", "\t "};
  std::string line;
  const double rate = random.bernoulli(0.5) ? 0 : 0.3;
  for (const char each : name) {
    const bool letter = (each >= 'A' && each <= 'Z') || (each >= 'a' && each <= 'z');
    line += letter && random.bernoulli(rate) ? static_cast<char>(each ^ 0x20) : each;
  }
  line.append(":").append(random.one_of(before)).append(value).append(random.one_of(after));
  return line + "\r\n";
}

/// Returns a header that does not change the response.
std::string draw_other_line(sim::Random& random) {
  constexpr std::array<std::string_view, 4> names{"Accept", "X", "x-!#$%&'*+.^_`|~0", "Cookie"};
  std::string value;
  for (std::size_t left = random.below(80); left > 0; --left) {
    value += static_cast<char>(random.bernoulli(0.9) ? ' ' + random.below(95)
                                                     : 0x80 + random.below(128));
  }
  return header_line(random.one_of(names), value, random);
}

/// The version and the Connection header of a request, and the Connection header of its response.
struct Persistence {
  std::string version = "1.1";
  std::string line = {};
  std::string expected = {};
};

Persistence draw_persistence(sim::Random& random) {
  switch (random.below(20)) {
    case 0:
      return {"1.0", "", "close"};
    case 1:
      return {"1.0", header_line("Connection", "Keep-Alive", random), "keep-alive"};
    case 2:
      return {"1.1", header_line("Connection", "close", random), "close"};
    case 3:
      return {"1.1", header_line("Connection", "x, keep-alive", random), ""};
    default:
      return {};
  }
}

/// Returns the end of a head, and a small body that the server reads or drops.
std::string draw_body(sim::Random& random, bool may_be_chunked) {
  const std::string body(random.below(20), 'b');
  if (!may_be_chunked || random.bernoulli(0.5)) {
    return header_line("Content-Length", std::to_string(body.size()), random) + "\r\n" + body;
  }
  std::string text = header_line("Transfer-Encoding", "chunked", random) + "\r\n";
  for (const char each : body) text += std::string("01;a=\"b\";c\r\n") + each + "\r\n";
  return text + "00\r\n" + (random.bernoulli(0.5) ? "X: trailer\r\n\r\n" : "\r\n");
}

Draft draw_whole_server(sim::Random&) {
  return {.method = "OPTIONS",
          .target = "*",
          .host = "a",
          .check = expect_allow(204, allow_line({"GET", "POST", "PUT", "DELETE"}))};
}

}  // namespace

CheckedRequest draw_target_request(sim::Random& random, std::size_t) {
  const std::size_t kind = random.below(16);
  Draft draft = kind < 8    ? draw_path(random)
                : kind < 10 ? draw_numbers(random)
                : kind < 13 ? draw_query(random)
                : kind < 15 ? draw_rejected(random)
                            : draw_whole_server(random);
  CheckedRequest request;
  request.method = draft.method;
  const Persistence persistence = draw_persistence(random);
  if (random.bernoulli(0.05)) request.text += "\r\n";  // RFC 9112 §2.2
  request.text += draft.method + " " + draft.target + " HTTP/" + persistence.version + "\r\n";
  if (random.bernoulli(0.2)) request.text += draw_other_line(random);
  request.text += header_line("Host", draft.host, random) + persistence.line;
  if (random.bernoulli(0.2)) request.text += draw_other_line(random);
  const bool has_body = draft.method == "POST" || draft.method == "PUT";
  request.text += has_body ? draw_body(random, persistence.version == "1.1") : "\r\n";
  request.check = std::move(draft.check);
  request.connection = draft.closes ? "close" : persistence.expected;
  return request;
}

}  // namespace weir::simulate
