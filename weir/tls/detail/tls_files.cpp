#include "weir/tls/detail/tls_files.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/net/files.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/context.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::size_t file_bytes_max = 4 * 1024 * 1024;
constexpr std::size_t secret_bytes_max = 64 * 1024;  // of a file with keys
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

void erase(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
}

/// The SHA-256 of texts, each after its size.
class Digester {
 public:
  Digester() : context_(EVP_MD_CTX_new()) {
    good_ = context_ != nullptr && EVP_DigestInit_ex(context_, sha_256(), nullptr) == 1;
  }
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;
  ~Digester() { EVP_MD_CTX_free(context_); }

  void add(std::string_view text) {
    const std::size_t size = text.size();
    good_ = good_ && EVP_DigestUpdate(context_, &size, sizeof size) == 1 &&
            EVP_DigestUpdate(context_, text.data(), text.size()) == 1;
  }
  Outcome<FilesDigest> take() {
    FilesDigest digest{};
    unsigned size = 0;
    if (!good_ || EVP_DigestFinal_ex(context_, digest.data(), &size) != 1) {
      return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
    }
    return digest;
  }

 private:
  EVP_MD_CTX* context_;
  bool good_ = false;
};

Outcome<std::vector<Identity>> make_identities(const ServerOptions& options,
                                               const ServerFiles& files, WallTime now) {
  std::vector<Identity> all = options.identities;
  for (std::size_t index = 0; index < options.files.size(); ++index) {
    auto identity = Identity::from_pem(files.chains.at(index), files.keys.at(index));
    if (!identity) {
      const IdentityFiles& paths = options.files.at(index);
      return std::unexpected(identity.error().at(paths.chain + ", " + paths.key));
    }
    all.push_back(std::move(*identity));
  }
  if (all.empty() && options.self_signed) {
    SelfSigned certificate = *options.self_signed;
    certificate.not_before = now;
    WEIR_TRY(Identity identity, Identity::self_signed(certificate));
    all.push_back(std::move(identity));
  }
  return all;
}

}  // namespace

Task<Outcome<std::string>> read_pem(std::string path) {
  Result<std::string> text = co_await files::read_file(path, file_bytes_max);
  if (text) co_return std::move(*text);
  if (text.error() == Errc::cancelled) co_return std::unexpected(Failure(Errc::cancelled));
  co_return std::unexpected(Failure(Error::unreadable_file, path + ": " + text.error().message()));
}

namespace {

/// Reads `file` to `text`, whose memory does not move, and erases all other copies.
Task<Result<>> read_and_erase(files::File& file, std::string& text) {
  text.reserve(secret_bytes_max);
  for (;;) {
    WEIR_CO_TRY(Buffer bytes, co_await file.read(secret_bytes_max));
    if (bytes.empty()) co_return {};
    const bool fits = bytes.size() <= secret_bytes_max - text.size();
    if (fits) text += bytes.text();
    OPENSSL_cleanse(bytes.data(), bytes.size());
    if (!fits) co_return fail(Errc::limit_reached);
  }
}

/// Returns the content of a file that has a secret.
/// Errors: Error::unreadable_file, Errc::cancelled.
Task<Outcome<std::string>> read_secret(std::string path) {
  std::string text;
  std::error_code error;
  Result<files::File> file = co_await files::open(path);
  if (file) {
    const Result<> read = co_await read_and_erase(*file, text);
    co_await file->close();
    if (read) co_return std::move(text);
    erase(text);
    error = read.error();
  } else {
    error = file.error();
  }
  if (error == Errc::cancelled) co_return std::unexpected(Failure(error));
  co_return std::unexpected(Failure(Error::unreadable_file, path + ": " + error.message()));
}

}  // namespace

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

ServerFiles::~ServerFiles() {
  for (std::string& key : keys) erase(key);
  erase(ticket_keys);
}

ServerFiles& ServerFiles::operator=(ServerFiles&& other) noexcept {
  std::swap(chains, other.chains);
  std::swap(keys, other.keys);
  std::swap(trust, other.trust);
  std::swap(ticket_keys, other.ticket_keys);
  std::swap(digest, other.digest);
  return *this;  // the destructor of `other` erases the old contents
}

bool FilesStatus::is_settled(WallTime now) const noexcept {
  constexpr Duration tick_max = std::chrono::seconds(1);
  return std::ranges::all_of(
      files, [&](const os::FileStatus& each) { return each.changed + tick_max <= now; });
}

Task<Outcome<FilesStatus>> files_status(const ServerOptions& options) {
  std::vector<std::string> paths = options.client_trust.files;
  for (const IdentityFiles& each : options.files) {
    paths.push_back(each.chain);
    paths.push_back(each.key);
  }
  if (!options.ticket_key_file.empty()) paths.push_back(options.ticket_key_file);
  if (options.client_trust.system)
    paths.insert(paths.end(), system_files.begin(), system_files.end());
  FilesStatus all;
  for (const std::string& path : paths) {
    const Result<os::FileStatus> status = co_await files::status(path);
    if (!status && status.error() == Errc::cancelled) {
      co_return std::unexpected(Failure(Errc::cancelled));
    }
    all.files.push_back(status.value_or(os::FileStatus()));
  }
  co_return all;
}

Task<Outcome<ServerFiles>> read_files(const ServerOptions& options) {
  ServerFiles files;
  Digester digester;
  for (const IdentityFiles& each : options.files) {
    WEIR_CO_TRY(std::string chain, co_await read_pem(each.chain));
    digester.add(chain);
    files.chains.push_back(std::move(chain));
    WEIR_CO_TRY(std::string key, co_await read_secret(each.key));
    digester.add(key);
    files.keys.push_back(std::move(key));
  }
  WEIR_CO_TRY(files.trust, co_await read_trust(options.client_trust));
  digester.add(files.trust);
  if (!options.ticket_key_file.empty()) {
    WEIR_CO_TRY(files.ticket_keys, co_await read_secret(options.ticket_key_file));
    digester.add(files.ticket_keys);
  }
  WEIR_CO_TRY(files.digest, digester.take());
  co_return files;
}

Outcome<std::shared_ptr<ServerSnapshot>> make_snapshot(const ServerOptions& options,
                                                       const ServerFiles& files, WallTime now) {
  auto fresh = std::make_shared<ServerSnapshot>();
  WEIR_TRY(fresh->identities, make_identities(options, files, now));
  for (const Identity& each : fresh->identities) {
    WEIR_TRY(check_dates(each, now));
  }
  fresh->trust = files.trust;
  WEIR_TRY(StorePtr store, make_store(fresh->trust));
  fresh->store = std::shared_ptr<x509_store_st>(std::move(store));
  if (!options.ticket_key_file.empty()) {
    auto keys = TicketKeys::from_bytes(to_bytes(files.ticket_keys));
    if (!keys) return std::unexpected(keys.error().at(options.ticket_key_file));
    fresh->ticket_keys = *keys;
  }
  fresh->digest = files.digest;
  // Every core makes contexts of its own later; this proves that it can.
  WEIR_TRY(ServerContexts::make(options, fresh));
  return fresh;
}

Task<Result<>> run_in_pool(std::function<void()> work) {
  const Context context = co_await this_context();
  const auto call = [&work] { work(); };
  const Result<> done = co_await shared_pool(*context.loop).pool().run(call);
  if (done || done.error() == Errc::cancelled) co_return done;
  work();
  co_return {};
}

}  // namespace weir::tls::detail
