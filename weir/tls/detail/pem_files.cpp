#include "weir/tls/detail/pem_files.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "weir/net/files.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::size_t file_bytes_max = 4 * 1024 * 1024;
constexpr std::array<std::string_view, 4> system_files{
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",    // Red Hat
    "/etc/ssl/ca-bundle.pem",              // SUSE
    "/etc/ssl/cert.pem",                   // Alpine, BSD
};

/// Returns the text of the system's trusted CAs.
Task<Outcome<std::string>> read_system() {
  for (const std::string_view each : system_files) {
    std::string path(each);
    Result<std::string> text = co_await files::read_file(std::move(path), file_bytes_max);
    if (text) co_return std::move(*text);
    if (text.error() == Errc::cancelled) co_return std::unexpected(Failure(Errc::cancelled));
  }
  co_return std::unexpected(Failure(
      Error::unreadable_file, "the system has no trusted CAs (Debian: install ca-certificates)"));
}

}  // namespace

Task<Outcome<std::string>> read_pem(std::string path) {
  Result<std::string> text = co_await files::read_file(path, file_bytes_max);
  if (text) co_return std::move(*text);
  if (text.error() == Errc::cancelled) co_return std::unexpected(Failure(Errc::cancelled));
  co_return std::unexpected(Failure(Error::unreadable_file, path + ": " + text.error().message()));
}

Task<Outcome<std::string>> read_trust(const Trust& trust) {
  std::string all = trust.pem;
  if (trust.system) {
    WEIR_CO_TRY(const std::string text, co_await read_system());
    all.append("\n").append(text);
  }
  for (const std::string& path : trust.files) {
    WEIR_CO_TRY(const std::string text, co_await read_pem(path));
    all.append("\n").append(text);
  }
  co_return all;
}

}  // namespace weir::tls::detail
