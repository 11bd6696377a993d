// bench: what the benchmarks ask for. GET / answers 128 bytes in all, head included, and GET /190
// as many as it says; POST /ping takes {"sequence": n} and gives it back.
#include <charconv>
#include <weir/http.hpp>

using namespace weir;

/// The n of {"sequence": n}, white space allowed where JSON allows it; nothing else.
std::optional<int> sequence_of(std::string_view text) {
  const auto skip = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  };
  const auto take = [&](std::string_view token) {
    skip();
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
  };
  if (!take("{") || !take("\"sequence\"") || !take(":")) return std::nullopt;
  skip();
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!take("}")) return std::nullopt;
  skip();
  return text.empty() ? std::optional(value) : std::nullopt;
}

Task<http::Response> ping(http::Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return http::status_for(body.error());
  const auto sequence = sequence_of(*body);
  if (!sequence) co_return http::Status::bad_request;
  std::array<char, 40> text;
  const int size = std::snprintf(text.data(), text.size(), "{\"sequence\": %d}", *sequence);
  co_return http::Response(
      http::Status::ok, http::json_type,
      http::Body(std::string_view(text.data(), static_cast<std::size_t>(size))));
}

http::Response poem() {
  constexpr http::Literal text(
      "Eighty-seven bytes of body, and a head of a hundred and three: one of a hundred ninety.");
  return {http::Status::ok, "text/x-poem", http::Body(text)};
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  routes.get("/", [] { return http::text("Hello Weir\n"); });
  routes.get("/190", poem);
  routes.post("/ping", ping);
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}
