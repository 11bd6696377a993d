#include "weir/profile/profile.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/compression/compressor.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http/router/router.hpp"
#include "weir/json/checked.hpp"
#include "weir/profile/detail/flame_page.hpp"
#include "weir/profile/detail/pprof.hpp"
#include "weir/profile/detail/recording.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir::profile {
namespace {

enum class Format : std::uint8_t { pprof = 1, folded, html };  // not 0: it is a default

}  // namespace
}  // namespace weir::profile

template <>
inline constexpr std::array weir::json::enumerators<weir::profile::Format>{
    weir::json::Named{weir::profile::Format::pprof, "pprof"},
    weir::json::Named{weir::profile::Format::folded, "folded"},
    weir::json::Named{weir::profile::Format::html, "html"}};

namespace weir::profile {
namespace {

struct ProfileQuery {
  Checked<int, rule::Range<1, 60>> seconds = 10;
  Checked<int, rule::Range<1, 999>> hz = 99;
  Format format = Format::pprof;
  std::optional<Checked<std::string, rule::Length<1, 256>>> route = std::nullopt;
};

/// Returns the data in gzip, which pprof reads; unchanged in a build without zlib.
std::string compressed(std::string data) {
  auto gzip = compression::Compressor::make({compression::Coding::gzip, 1});
  if (!gzip) return data;
  Buffer out;
  gzip->append(to_bytes(data), compression::Flush::finish, out);
  return std::string(out.text());
}

http::Response to_response(const Profile& profile, Format format) {
  if (format == Format::folded) return http::text(to_folded(profile));
  if (format == Format::html) {
    auto page = http::html(to_flame_page(profile));
    page.add_header("Content-Security-Policy", flame_page_policy);
    return page;
  }
  http::Response file(http::Status::ok, "application/octet-stream",
                      http::Body(compressed(to_pprof(profile))));
  file.add_header("Content-Disposition", "attachment; filename=\"profile.pb.gz\"");
  return file;
}

http::Response to_response(const loop::ProfileError& error) {
  http::Status status = http::Status::service_unavailable;
  if (error.code == Errc::conflict) status = http::Status::conflict;
  if (error.code == Errc::unsupported) status = http::Status::not_implemented;
  return http::problem(status, "no CPU profile: " + error.reason);
}

http::Response write_profile(std::unique_ptr<Profile> profile, Format format) {
  auto response = to_response(*profile, format);
  response.add_header("Cache-Control", "no-store");
  response.add_header("X-Content-Type-Options", "nosniff");
  return response;
}

Task<http::Response> take_profile(http::Query<ProfileQuery> query) {
  RecordingOptions options;
  options.length = std::chrono::seconds(*query->seconds);
  options.hertz = static_cast<unsigned>(*query->hz);
  if (query->route) options.route = **query->route;
  auto recorded = co_await record(std::move(options));
  if (!recorded) co_return to_response(recorded.error());
  const Context context = co_await this_context();
  auto profile = std::make_unique<Profile>(std::move(*recorded));
  auto& pool = shared_pool(*context.loop).pool();
  auto response = co_await pool.run(&write_profile, std::move(profile), query->format);
  if (!response) co_return http::Response(response.error());
  co_return std::move(*response);
}

}  // namespace

void mount_profile(http::Router& router, std::string_view path) {
  http::Router routes;
  routes.get("/", &take_profile);
  router.mount(path, std::move(routes));
}

}  // namespace weir::profile
