// files: stores uploaded files and serves them piece by piece. A cut upload leaves no file behind.
// Try: files [FOLDER] [OPTIONS], and then: curl -T movie.mkv localhost:8080/files/
#include <weir/http.hpp>
#include <weir/net/files.hpp>
#include <weir/tls.hpp>

using namespace weir;

http::Response answer_for(std::error_code error) {
  using enum std::errc;
  if (error == no_such_file_or_directory || error == is_a_directory)
    return http::Response(http::Status::not_found);
  if (error == filename_too_long) return http::Response(http::Status::bad_request);
  if (error == no_space_on_device) return http::Response(http::Status::insufficient_storage);
  return http::to_status(error);  // 413, 400, 408 … for a body that fails to arrive
}

constexpr auto copy = [](auto& to, auto from) -> Task<Result<>> {
  for (;;) {
    WEIR_CO_TRY(const auto piece, co_await from->read());
    if (piece.empty()) co_return {};
    if (auto written = co_await to.write(piece); !written) co_return written;
  }
};

Task<http::Response> upload(http::Request& request, std::string path) {
  if (request.header("Content-Range")) co_return http::Status::bad_request;
  const bool is_there = (co_await files::status(path)).has_value();
  const std::string match(request.header("If-Match").value_or(is_there ? "*" : ""));
  const bool unwanted = is_there && request.header("If-None-Match") == "*";
  if (unwanted || match != (is_there ? "*" : "")) co_return http::Status::precondition_failed;
  const auto stored = co_await files::replace(std::move(path), copy, &request);
  if (!stored) co_return answer_for(stored.error());
  co_return is_there ? http::Status::no_content : http::Status::created;
}

Task<http::Response> download(std::string path) {
  auto file = co_await files::open(std::move(path));
  if (!file) co_return answer_for(file.error());
  co_return http::stream("application/octet-stream", std::move(*file));
}

int main(int argc, char** argv) {
  const int named = argc > 1 && argv[1][0] != '-' ? 1 : 0;
  const auto folder = named == 1 ? std::string(std::exchange(argv[1], argv[0])) + "/" : "./";
  auto options = http::ProgramOptions::from_args(argc - named, argv + named);
  const auto put = [&](http::Request& body, std::string name) {
    return upload(body, folder + name);
  };
  // A name has no slash, no zero byte and no leading dot, so it cannot leave the folder.
  static constexpr char pattern[] = "/files/{name:[A-Za-z0-9_-][A-Za-z0-9._-]*}";
  http::Router routes;
  routes.put(pattern, put, {.body_max = 16 * 1024 * 1024});
  routes.post(pattern, put, {.body_max = 16 * 1024 * 1024});
  routes.get(pattern, [&](std::string name) { return download(folder + name); });
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.serve_options());
}
