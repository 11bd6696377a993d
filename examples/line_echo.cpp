// line_echo: answers each line of a request when it arrives, while the client still sends.
#include <weir/http.hpp>

using namespace weir;

/// Writes each complete line of the request back, in upper case.
Task<Result<>> answer_lines(http::Request& request, http::BodySink& body) {
  std::string text;
  for (;;) {
    auto piece = co_await request.read();  // waits for the client
    if (!piece) co_return fail(piece.error());
    const bool ended = piece->empty();
    for (const std::byte each : *piece) {
      const auto character = std::to_integer<char>(each);
      text += character >= 'a' && character <= 'z' ? static_cast<char>(character - 32) : character;
    }
    const std::size_t complete = ended ? text.size() : text.rfind('\n') + 1;
    if (auto written = co_await body.write(text.substr(0, complete)); !written) co_return written;
    if (ended) co_return {};
    text.erase(0, complete);
    if (text.size() > 4096) co_return fail(Errc::limit_reached);
  }
}

http::Response shout(http::Request& request) {
  return http::duplex(request, "text/plain", {.read_timeout = 10min}, answer_lines);
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.post("/shout", shout, {.body_max = std::uint64_t{1} << 40});
  return http::run(routes, argc, argv);
}
