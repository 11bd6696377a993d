// files: stores what is uploaded and serves it again, piece by piece; a cut upload leaves nothing.
// files [FOLDER] [OPTIONS], then: curl -T movie.mkv localhost:8080/files/ and open it from there.
#include <weir/http.hpp>
#include <weir/net/files.hpp>

using namespace weir;

http::Response answer_for(std::error_code error) {
  if (error == std::errc::no_such_file_or_directory) return http::Status::not_found;
  if (error == std::errc::filename_too_long) return http::Status::bad_request;
  if (error == std::errc::no_space_on_device) return http::status(507);
  return http::status_for(error);  // 413, 400, 408 … of a body that does not come as it should
}

Task<Result<>> receive(files::File& file, http::Request& request) {
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return {};
    if (auto written = co_await file.write(*piece); !written) co_return written;
  }
}

Task<http::Response> upload(http::Request& request, std::string path) {
  const auto stored = co_await files::replace(std::move(path), receive, std::ref(request));
  if (!stored) co_return answer_for(stored.error());
  co_return http::Status::created;
}

Task<Result<>> send(http::BodySink& body, std::shared_ptr<files::File> file) {
  for (;;) {
    const auto piece = co_await file->read(64 * 1024);
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return {};
    if (auto sent = co_await body.write(*piece); !sent) co_return sent;
  }
}

Task<http::Response> download(std::string path) {
  auto file = co_await files::open(std::move(path));
  if (!file) co_return answer_for(file.error());
  auto shared = std::make_shared<files::File>(std::move(*file));
  co_return http::stream("application/octet-stream", send, std::move(shared));
}

int main(int argc, char** argv) {
  const int named = argc > 1 && argv[1][0] != '-' ? 1 : 0;
  const auto folder = named == 1 ? std::string(std::exchange(argv[1], argv[0])) + "/" : "./";
  auto options = ServerOptions::from_args(argc - named, argv + named);
  const auto put = [&](http::Request& body, std::string name) {
    return upload(body, folder + name);
  };
  // Names without a slash, a zero byte, or a dot in front: none leads elsewhere.
  static constexpr char pattern[] = "/files/{name:[A-Za-z0-9_-][A-Za-z0-9._-]*}";
  http::Router routes;
  routes.put(pattern, put, {.body_max = 16 * 1024 * 1024});
  routes.post(pattern, put, {.body_max = 16 * 1024 * 1024});
  routes.get(pattern, [&](std::string name) { return download(folder + name); });
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}
