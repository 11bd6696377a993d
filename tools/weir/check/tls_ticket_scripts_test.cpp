// Tests of the tickets for other names, against servers that bind sessions to names or do not.
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/test/script_fixture.hpp"
#include "weir/tls/certificate/identity.hpp"

namespace weir::check::tls_ticket_scripts_test {
namespace {

/// What a session is bound to.
enum class Binding : std::uint8_t {
  nothing,  ///< OpenSSL's default: a ticket is good for each name
  name,     ///< a ticket for another name is ignored
  refused,  ///< another name gets an alert
  none,     ///< there are no tickets
};

struct ContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// Returns the extension server_name of a ClientHello.
std::string_view asked_name(SSL& ssl) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(&ssl, TLSEXT_TYPE_server_name, &bytes, &size) != 1) return {};
  return {reinterpret_cast<const char*>(bytes), size};
}

/// Binds the session to the name, which OpenSSL does not do.
int bind_to_name(SSL* ssl, int*, void*) {
  std::string id(asked_name(*ssl).substr(0, SSL_MAX_SID_CTX_LENGTH));
  id.resize(SSL_MAX_SID_CTX_LENGTH, '.');
  SSL_set_session_id_context(ssl, reinterpret_cast<const unsigned char*>(id.data()),
                             static_cast<unsigned>(id.size()));
  return SSL_CLIENT_HELLO_SUCCESS;
}

int refuse_other_names(SSL* ssl, int* alert, void*) {
  if (!asked_name(*ssl).contains("other")) return SSL_CLIENT_HELLO_SUCCESS;
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_CLIENT_HELLO_ERROR;
}

class TlsTicketScripts : public ScriptTest {
 protected:
  TlsTicketScripts() {
    target_.host = "a.example";
    tls::SelfSigned certificate;
    certificate.not_before = platform_.wall_time();
    identity_ = tls::Identity::self_signed(certificate).value();
  }

  std::string check_server(std::string_view name, Binding binding) {
    context_ = make_context(binding);
    return check(name, [this](tcp::Stream stream) { return serve(std::move(stream)); });
  }

 private:
  std::unique_ptr<SSL_CTX, ContextFree> make_context(Binding binding) const {
    std::unique_ptr<SSL_CTX, ContextFree> made(SSL_CTX_new(TLS_server_method()));
    SSL_CTX* const context = made.get();
    BIO* const chain = BIO_new_mem_buf(identity_->chain().data(), -1);
    BIO* const key = BIO_new_mem_buf(identity_->key().data(), -1);
    X509* const certificate = PEM_read_bio_X509(chain, nullptr, nullptr, nullptr);
    EVP_PKEY* const pair = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(context, certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context, pair), 1);
    X509_free(certificate);
    EVP_PKEY_free(pair);
    BIO_free(chain);
    BIO_free(key);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (binding == Binding::name) SSL_CTX_set_client_hello_cb(context, &bind_to_name, nullptr);
    if (binding == Binding::refused)
      SSL_CTX_set_client_hello_cb(context, &refuse_other_names, nullptr);
    if (binding == Binding::none) {
      SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
      SSL_CTX_set_num_tickets(context, 0);
    }
    return made;
  }

  /// Performs the handshake, and answers each piece of data.
  Task<> serve(tcp::Stream stream) {
    const std::unique_ptr<SSL, ContextFree> ssl(SSL_new(context_.get()));
    BIO* const input = BIO_new(BIO_s_mem());
    BIO* const output = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), input, output);
    SSL_set_accept_state(ssl.get());
    std::array<char, 4096> plain{};
    while (const auto bytes = co_await stream.read()) {
      BIO_write(input, bytes->text().data(), static_cast<int>(bytes->size()));
      const int size = SSL_read(ssl.get(), plain.data(), static_cast<int>(plain.size()));
      const bool failed = size <= 0 && SSL_get_error(ssl.get(), size) != SSL_ERROR_WANT_READ;
      if (size > 0) {
        const std::string answer = response(200);
        SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size()));
      }
      char* sealed = nullptr;
      const long sealed_size = BIO_get_mem_data(output, &sealed);
      const std::string sent(sealed, static_cast<std::size_t>(sealed_size));
      std::ignore = BIO_reset(output);
      const auto written = co_await stream.write(sent);
      if (!written || failed) co_return;
    }
  }

  std::optional<tls::Identity> identity_;
  std::unique_ptr<SSL_CTX, ContextFree> context_;
};

TEST_F(TlsTicketScripts, ASessionIsNotResumedForAnotherName) {
  const std::string older = "tls/ticket-name-in-1.2";
  EXPECT_EQ(check_server(older, Binding::nothing), "failed: resumed");
  EXPECT_EQ(check_server(older, Binding::name), "passed: a full handshake");
  EXPECT_TRUE(check_server(older, Binding::refused).starts_with("passed: no TLS connection"));
  EXPECT_EQ(check_server(older, Binding::none),
            "not applicable: the server does not resume for the same name");
  const std::string newer = "tls/ticket-name";
  EXPECT_EQ(check_server(newer, Binding::nothing), "failed: resumed (--lenient accepts it)");
  EXPECT_EQ(check_server(newer, Binding::name), "passed: a full handshake");
  EXPECT_TRUE(check_server(newer, Binding::refused).starts_with("passed: no TLS connection"));
  EXPECT_EQ(check_server(newer, Binding::none),
            "not applicable: the server does not resume for the same name");
}

TEST_F(TlsTicketScripts, ALenientCheckAcceptsItInTls13) {
  target_.lenient = true;
  EXPECT_EQ(check_server("tls/ticket-name-in-1.2", Binding::nothing), "failed: resumed");
  EXPECT_EQ(check_server("tls/ticket-name", Binding::nothing), "passed: resumed");
}

TEST_F(TlsTicketScripts, ASessionWithoutANameIsNotResumedForOne) {
  target_.host = "127.0.0.1";  // an address is no server name
  EXPECT_EQ(check_server("tls/ticket-name-in-1.2", Binding::nothing), "failed: resumed");
  EXPECT_EQ(check_server("tls/ticket-name-in-1.2", Binding::name), "passed: a full handshake");
}

}  // namespace
}  // namespace weir::check::tls_ticket_scripts_test
