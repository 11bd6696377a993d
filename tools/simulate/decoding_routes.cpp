// The handlers of the routes that answer with what was decoded.
#include "tools/simulate/decoding_routes.hpp"

#include <chrono>

#include "weir/http/message/detail/urlencoded.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using http::Response;
using http::Wildcard;
using Text = std::string_view;

Response answer(std::string_view label, const std::vector<std::string>& values) {
  return http::text(decoded_text(label, values));
}

std::vector<std::string> segments_of(const Wildcard& rest) {
  std::vector<std::string> segments;
  for (auto segment = rest.begin(); segment != rest.end(); ++segment) {
    segments.push_back(segment.decoded());
  }
  return segments;
}

/// Returns a handler that answers with its label and its path parameters.
auto params_0(std::string_view label) {
  return [label] { return answer(label, {}); };
}
auto params_1(std::string_view label) {
  return [label](Text one) { return answer(label, {std::string(one)}); };
}
auto params_2(std::string_view label) {
  return
      [label](Text one, Text two) { return answer(label, {std::string(one), std::string(two)}); };
}
auto params_3(std::string_view label) {
  return [label](Text one, Text two, Text three) {
    return answer(label, {std::string(one), std::string(two), std::string(three)});
  };
}
auto wildcard(std::string_view label) {
  return [label](const Wildcard& rest) { return answer(label, segments_of(rest)); };
}

Response numbers(std::int8_t small, std::uint64_t large, double real) {
  std::string text;
  json::write_to(text, real);
  return answer("numbers", {std::to_string(small), std::to_string(large), text});
}

Response query(http::Request& request) {
  std::vector<std::string> values{std::string(request.authority())};
  for (const std::string_view name : {"a", "b c"}) {
    values.push_back(request.query(name).value_or("none"));
  }
  http::UrlencodedPairs pairs(request.query_text());
  while (const auto pair = pairs.next()) {
    values.push_back(pair->name);
    values.push_back(pair->value);
  }
  return answer("query", values);
}

Document document(int, Document received) {
  return received;
}

Task<Document> later_document(int milliseconds, Document received) {
  std::ignore = co_await sleep(std::chrono::milliseconds(milliseconds));
  co_return received;
}

}  // namespace

std::string decoded_text(std::string_view label, const std::vector<std::string>& values) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(label);
  for (const std::string& value : values) {
    text += " =";
    for (const char each : value) {
      const auto byte = static_cast<unsigned char>(each);
      text += digits[byte >> 4];
      text += digits[byte & 15U];
    }
  }
  return text + "\n";
}

void add_decoding_routes(http::Router& routes) {
  routes.get("/m/a/b", params_0("/a/b"));
  routes.get("/m/a/", params_0("/a/"));
  routes.get("/m/sp%20ce/one%2Ftwo", params_0("/sp ce/one|two"));
  routes.get("/m/a/{x}", params_1("/a/{x}"));
  routes.get("/m/{code:([a-z]+)-([0-9]+)}/b", params_3("/{code}/b"));
  routes.get("/m/{hex:[0-9a-f]+}/{y}", params_2("/{hex}/{y}"));
  routes.get("/m/{x}/b", params_1("/{x}/b"));
  routes.get("/m/{x}/{y}", params_2("/{x}/{y}"));
  routes.get("/m/{x}/{y}/c", params_2("/{x}/{y}/c"));
  routes.get("/m/a/{rest...}", wildcard("/a/{rest...}"));
  routes.get("/m/{rest...}", wildcard("/{rest...}"));
  routes.post("/m/a/{x}", params_1("post /a/{x}"));
  routes.put("/m/{x}/b", params_1("put /{x}/b"));
  routes.del("/m/a/{rest...}", wildcard("delete /a/{rest...}"));
  routes.get("/n/{a}/{b}/{c}", numbers);
  routes.get("/q", query);
  routes.post("/json/{id}", document);
  routes.post("/later/{id}", later_document);
}

}  // namespace weir::simulate
