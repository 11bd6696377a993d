// Tests Weir's record layer. OpenSSL's layer is the judge: both get the same records, and must give
// the same data, the same answers and the same errors. The suites of AES-GCM run with each library.
#include "weir/tls/detail/records/aead_records.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weir/sim/test/seed_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/tls/test/engine_fixture.hpp"
#include "weir/tls/test/record_forge.hpp"

namespace weir::tls::detail::aead_records_test {
namespace {

struct SuiteCase {
  const char* name;
  TlsVersion version;
  const char* cipher;
  AesGcm aes_gcm;
};
constexpr auto tls_1_3 = TlsVersion::tls_1_3;
constexpr auto tls_1_2 = TlsVersion::tls_1_2;
const std::vector suite_cases{
    SuiteCase{"Tls13Aes128", tls_1_3, "TLS_AES_128_GCM_SHA256", AesGcm::fastest},
    SuiteCase{"Tls13Aes256", tls_1_3, "TLS_AES_256_GCM_SHA384", AesGcm::fastest},
    SuiteCase{"Tls13Chacha20", tls_1_3, "TLS_CHACHA20_POLY1305_SHA256", AesGcm::fastest},
    SuiteCase{"Tls12Aes128", tls_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", AesGcm::fastest},
    SuiteCase{"Tls12Aes256", tls_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", AesGcm::fastest},
    SuiteCase{"Tls12Chacha20", tls_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", AesGcm::fastest},
    SuiteCase{"Tls13Aes128OfOpenssl", tls_1_3, "TLS_AES_128_GCM_SHA256", AesGcm::openssl},
    SuiteCase{"Tls13Aes256OfOpenssl", tls_1_3, "TLS_AES_256_GCM_SHA384", AesGcm::openssl},
    SuiteCase{"Tls12Aes128OfOpenssl", tls_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", AesGcm::openssl},
    SuiteCase{"Tls12Aes256OfOpenssl", tls_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", AesGcm::openssl}};

/// The results of a layer.
struct Seen {
  std::string plain;
  std::string output;
  RecordLayer::Opened end = RecordLayer::Opened::none;
  std::error_code error;
};

/// Returns the records as one stream. A list evaluates its elements in their order, as `+` does
/// not.
std::string in_order(std::initializer_list<std::string> records) {
  std::string stream;
  for (const std::string& each : records) stream += each;
  return stream;
}

/// Opens `bytes`, which arrive in one buffer.
void open_all(RecordLayer& layer, std::string_view bytes, Seen& seen) {
  Buffer input = buffer_of(bytes);
  for (;;) {
    Buffer plain;
    Buffer output;
    seen.end = layer.open(input, plain, output);
    seen.output += output.text();
    if (seen.end != RecordLayer::Opened::data) break;
    ASSERT_FALSE(plain.empty());
    seen.plain += plain.text();
  }
  ASSERT_TRUE(seen.end != RecordLayer::Opened::none || input.empty());
  ASSERT_EQ(layer.has_input(), seen.end != RecordLayer::Opened::none);
  seen.error = layer.error();
}

class AeadRecordsTest : public EngineTest, public testing::WithParamInterface<SuiteCase> {
 protected:
  bool is_1_3() const { return GetParam().version == TlsVersion::tls_1_3; }

  /// Performs a handshake, and makes Weir's layer beside the judge.
  void connect() {
    if (contexts_ == nullptr) {
      make_contexts();
      SSL_CTX* const context = client_context_.get();
      ASSERT_EQ(is_1_3() ? SSL_CTX_set_ciphersuites(context, GetParam().cipher)
                         : SSL_CTX_set_cipher_list(context, GetParam().cipher),
                1);
    }
    make_engines();
    if (!is_1_3()) limit_to_1_2();
    shake();
    ASSERT_TRUE(connected());
    use(server_->keys());
    own_seen_ = judge_seen_ = {};
  }
  void use(std::optional<ConnectionKeys> keys) {
    ASSERT_TRUE(keys);
    own_ = std::make_unique<AeadRecords>(core_, *keys);
    forge_ = std::make_unique<RecordForge>(*keys);
  }

  /// Gives the bytes to both layers, in pieces of at most `piece` bytes, and compares them.
  void compare(std::string_view bytes, std::size_t piece = SIZE_MAX) {
    do {
      const std::string_view next = bytes.substr(0, piece);
      bytes.remove_prefix(next.size());
      open_all(*server_, next, judge_seen_);
      open_all(*own_, next, own_seen_);
      ASSERT_EQ(own_seen_.end, judge_seen_.end);
      ASSERT_EQ(own_seen_.error, judge_seen_.error);
      ASSERT_TRUE(own_seen_.plain == judge_seen_.plain)
          << testing::PrintToString(own_seen_.plain) << "\ninstead of\n"
          << testing::PrintToString(judge_seen_.plain);
      ASSERT_TRUE(own_seen_.output == judge_seen_.output)
          << testing::PrintToString(own_seen_.output) << "\ninstead of\n"
          << testing::PrintToString(judge_seen_.output);
    } while (!bytes.empty());
  }
  /// Compares the bytes on a new connection, whole and byte by byte. `make` makes them. If the
  /// process samples, there are at most 501 pieces; see SweepBudget.
  template <class Make>
  void compare_fresh(Make make) {
    constexpr std::size_t pieces_max = 500;
    for (const bool whole : {true, false}) {
      connect();
      const std::string bytes = make();
      const std::size_t piece = SweepBudget::samples() ? bytes.size() / pieces_max + 1 : 1;
      compare(bytes, whole ? SIZE_MAX : piece);
      if (HasFatalFailure()) return;
    }
  }
  /// Compares what both seal.
  void compare_sealed(std::string_view text) {
    Buffer of_judge;
    Buffer of_own;
    const std::error_code expected = server_->seal(to_bytes(text), of_judge);
    ASSERT_EQ(own_->seal(to_bytes(text), of_own), expected);
    ASSERT_EQ(of_own.text(), of_judge.text());
  }

  void update_often(std::uint8_t request) {
    for (int count = 0; count < 16; ++count) {
      compare(in_order({forge_->update(request), forge_->data("x")}));
      ASSERT_EQ(own_seen_.end, Opened::none);
      compare_sealed("answer");
    }
  }

  AeadCore core_{nullptr, GetParam().aes_gcm};
  std::unique_ptr<AeadRecords> own_;
  std::unique_ptr<RecordForge> forge_;
  Seen own_seen_;
  Seen judge_seen_;
};
INSTANTIATE_TEST_SUITE_P(Of, AeadRecordsTest,
                         testing::ValuesIn(SweepBudget::sample(suite_cases, 3)),
                         [](const auto& info) { return std::string(info.param.name); });

using Opened = RecordLayer::Opened;

// --- valid traffic -------------------------------------------------------------------------------

TEST_P(AeadRecordsTest, DataAgreesInPiecesOfEachSize) {
  for (const std::size_t piece : {1UL, 4UL, 5UL, 7UL, 100UL, 16384UL, 100000UL}) {
    connect();
    std::string records;
    std::string text;
    for (const std::size_t size : {1UL, 2UL, 15UL, 16UL, 17UL, 1000UL, 16384UL, 3UL}) {
      const std::string part(size, static_cast<char>('a' + size % 26));
      text += part;
      records += forge_->data(part);
    }
    compare(records, piece);
    ASSERT_EQ(own_seen_.plain, text);
  }
}

TEST_P(AeadRecordsTest, MaximumOfFragmentsAgrees) {
  connect();  // makes the contexts
  sessions_ = nullptr;
  const std::array<std::pair<std::uint8_t, std::size_t>, 4> sizes{
      {{TLSEXT_max_fragment_length_512, 512},
       {TLSEXT_max_fragment_length_1024, 1024},
       {TLSEXT_max_fragment_length_2048, 2048},
       {TLSEXT_max_fragment_length_4096, 4096}}};
  for (const auto& [code, size] : sizes) {
    SSL_CTX_set_tlsext_max_fragment_length(client_context_.get(), code);
    connect();
    compare_sealed(std::string(3 * size + 1, 'x'));
    compare(forge_->data(std::string(size, 'y')));
    EXPECT_EQ(own_seen_.plain.size(), size);
    compare(forge_->data(std::string(size + 1, 'z')));
    EXPECT_EQ(own_seen_.end, Opened::failed);
  }
}

TEST_P(AeadRecordsTest, SealsTheSameBytes) {
  connect();
  for (const std::size_t size : {1UL, 15UL, 16UL, 17UL, 1000UL, 16384UL}) {
    compare_sealed(std::string(size, 'x'));
  }
  Buffer of_judge;
  Buffer of_own;
  for (int count = 0; count < 2; ++count) {
    server_->seal_close(of_judge);
    own_->seal_close(of_own);
  }
  EXPECT_FALSE(of_own.empty());
  EXPECT_EQ(of_own.text(), of_judge.text());
}

TEST_P(AeadRecordsTest, ClientOfOpensslUnderstandsIt) {
  connect();
  std::string received;
  EXPECT_EQ(open(*client_, tickets_, received), Opened::none);
  for (int round = 0; round < 3; ++round) {
    Seen seen;
    open_all(*own_, sealed(*client_, "question"), seen);
    EXPECT_EQ(seen.plain, "question");
    Buffer output;
    EXPECT_FALSE(own_->seal(to_bytes("answer"), output));
    EXPECT_EQ(open(*client_, output.text(), received), Opened::none);
  }
  EXPECT_EQ(received, "answeransweranswer");
  Buffer output;
  own_->seal_close(output);
  EXPECT_EQ(open(*client_, output.text(), received), Opened::closed);
}

TEST_P(AeadRecordsTest, ResumedConnectionContinuesToo) {
  connect();
  std::string plain;
  open(*client_, tickets_, plain);
  connect();
  ASSERT_TRUE(server_->info().resumed);
  compare(forge_->data("hello"));
  compare_sealed("answer");
}

TEST_P(AeadRecordsTest, CloseNotifyEndsThePeersDirectionOnly) {
  compare_fresh(
      [this] { return in_order({forge_->data("last"), forge_->alert(1, 0), "ignored"}); });
  EXPECT_EQ(own_seen_.end, Opened::closed);
  EXPECT_FALSE(own_seen_.error);
  compare_sealed("answer");
}

TEST_P(AeadRecordsTest, RecordsOfOneBufferAreOpenedInItsMemory) {
  connect();
  Buffer input = buffer_of(in_order({forge_->data("one"), forge_->data("two")}));
  const std::byte* const begin = input.data();
  const std::size_t size = input.size();
  Buffer plain;
  Buffer output;
  EXPECT_EQ(own_->open(input, plain, output), Opened::data);
  EXPECT_EQ(plain.text(), "onetwo");
  EXPECT_GE(plain.data(), begin);
  EXPECT_LT(plain.data(), begin + size);
  EXPECT_TRUE(input.empty());
}

TEST_P(AeadRecordsTest, IncompleteRecordTakesLittleMemory) {
  connect();
  BlockPool pool;
  const ScopedBlockPool scoped(pool);
  const std::string record = forge_->data(std::string(16384, 'x'));
  for (std::size_t size = 0; size < 200; ++size) {
    Seen seen;
    open_all(*own_, std::string_view(record).substr(size, 1), seen);
    ASSERT_LE(pool.blocks_in_use(BlockUse::buffer), 1U);
  }
  Seen seen;
  open_all(*own_, std::string_view(record).substr(200), seen);
  EXPECT_EQ(seen.plain.size(), 16384U);
  EXPECT_EQ(pool.blocks_in_use(BlockUse::buffer), 0U) << "an idle connection holds none";
}

TEST_P(AeadRecordsTest, IdleOneIsSmall) {
  EXPECT_LE(sizeof(AeadRecords), 248U);
}

// --- hostile bytes -------------------------------------------------------------------------------

TEST_P(AeadRecordsTest, EachCutAgrees) {
  connect();
  const std::size_t size =
      in_order({forge_->data("one"), forge_->data("two"), forge_->alert(1, 0)}).size();
  for (std::size_t cut = 0; cut <= size; ++cut) {
    SCOPED_TRACE(cut);
    connect();
    const std::string records =
        in_order({forge_->data("one"), forge_->data("two"), forge_->alert(1, 0)});
    compare(std::string_view(records).substr(0, cut));
    ASSERT_NE(own_seen_.end, Opened::failed);
    compare(std::string_view(records).substr(cut));
    ASSERT_EQ(own_seen_.end, Opened::closed);
  }
}

TEST_P(AeadRecordsTest, EachChangedByteAgrees) {
  connect();
  const std::size_t size = in_order({forge_->data("one"), forge_->data("two")}).size();
  for (std::size_t index = 0; index < size; ++index) {
    for (const char change : {'\x01', '\x40'}) {
      SCOPED_TRACE(index);
      connect();
      std::string records = in_order({forge_->data("one"), forge_->data("two")});
      records[index] = static_cast<char>(records[index] ^ change);
      records += std::string(20000, '\0');  // a longer record is whole, too
      compare(records);
      ASSERT_EQ(own_seen_.end, Opened::failed);
      compare_sealed("nothing follows");
    }
  }
}

TEST_P(AeadRecordsTest, RepeatedMissingAndSwappedRecordsAgree) {
  for (const std::string_view order : {"aab", "b", "ba", "acb", "abb"}) {
    SCOPED_TRACE(order);
    connect();
    const std::array records{forge_->data("first"), forge_->data("second"), forge_->data("third")};
    std::string stream;
    for (const char each : order) stream += records.at(static_cast<std::size_t>(each - 'a'));
    compare(stream);
    EXPECT_EQ(own_seen_.error, make_error_code(Error::bad_record));
  }
}

TEST_P(AeadRecordsTest, EachHeaderAgrees) {
  for (const int type : {0, 19, 20, 21, 22, 23, 24, 128, 255}) {
    for (const int version : {0x0303, 0x0304, 0x0301, 0x0300, 0x0203, 0x0403, 0x1603}) {
      for (const int length : {0, 1, 16, 17, 16640, 16641, 16704, 16705, 65535}) {
        SCOPED_TRACE(testing::Message() << type << " " << std::hex << version << " " << length);
        if (version != 0x0303 && length != 17) continue;
        // OpenSSL's TLS 1.2 calls a record that is too short for its cipher an internal error.
        if (!is_1_3() && version == 0x0303 && length < 24) continue;
        connect();
        std::string record{static_cast<char>(type), static_cast<char>(version >> 8),
                           static_cast<char>(version), static_cast<char>(length >> 8),
                           static_cast<char>(length)};
        compare(record);
        compare(std::string(static_cast<std::size_t>(length), 'x'));
      }
    }
  }
}

TEST_P(AeadRecordsTest, ShortRecordIsNotAuthentic) {
  for (std::size_t length = 0; length < 26; ++length) {
    connect();
    Seen seen;
    const std::string header{23, 3, 3, 0, static_cast<char>(length)};
    open_all(*own_, header + std::string(length, 'x'), seen);
    EXPECT_EQ(seen.error, make_error_code(Error::bad_record));
    std::string plain;
    open(*client_, tickets_ + seen.output, plain);
    EXPECT_EQ(client_->error(), make_error_code(Error::peer_alert));
  }
}

TEST_P(AeadRecordsTest, EachTypeAgrees) {
  for (int type = 0; type < 256; type = type == 30 ? 255 : type + 1) {
    for (const std::string_view content : {"", "x", "\x01"}) {
      SCOPED_TRACE(type);
      compare_fresh([&] {
        return in_order(
            {forge_->seal(static_cast<std::uint8_t>(type), content), forge_->data("next")});
      });
    }
  }
}

TEST_P(AeadRecordsTest, TooMuchContentAgrees) {
  for (const std::size_t size : {16384UL, 16385UL, 16384UL + 256 - 17, 16384UL + 256 - 16}) {
    SCOPED_TRACE(size);
    compare_fresh([&] { return forge_->data(std::string(size, 'x')); });
    EXPECT_EQ(own_seen_.end, size == 16384 ? Opened::none : Opened::failed);
  }
}

TEST_P(AeadRecordsTest, PaddingAgrees) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  for (const std::size_t padding : {1UL, 100UL, 16384UL, 16384UL + 256 - 16 - 4}) {
    SCOPED_TRACE(padding);
    compare_fresh([&] { return forge_->seal(record_type::data, "abc", padding); });
    EXPECT_EQ(own_seen_.plain, "abc");
    compare_fresh([&] { return forge_->seal(record_type::alert, {"\x01\0", 2}, padding); });
    compare_fresh([&] { return forge_->seal_inner(std::string(padding, '\0')); });
    EXPECT_EQ(own_seen_.end, Opened::failed);
  }
  compare_fresh([&] { return forge_->seal_inner(""); });
}

TEST_P(AeadRecordsTest, EachAlertAgrees) {
  for (const int level : {0, 1, 2, 3, 255}) {
    for (const int description : {0, 10, 20, 42, 90, 100, 255}) {
      SCOPED_TRACE(testing::Message() << level << " " << description);
      compare_fresh([&] {
        return in_order({forge_->data("before"),
                         forge_->alert(static_cast<std::uint8_t>(level),
                                       static_cast<std::uint8_t>(description)),
                         forge_->data("behind")});
      });
      if (own_seen_.end == Opened::failed) compare_sealed("nothing follows");
    }
  }
  for (const std::string_view content : {"", "\x01", "\x01\x5a\x01", "\x01\x5a\x01\x5a"}) {
    compare_fresh([&] { return forge_->seal(record_type::alert, content); });
  }
}

TEST_P(AeadRecordsTest, WarningsAreLimitedInARow) {
  for (int count = 3; count < 7; ++count) {
    for (const bool close : {true, false}) {
      SCOPED_TRACE(count);
      compare_fresh([&] {
        std::string records;
        for (int done = 0; done < count; ++done) records += forge_->alert(1, 90);
        return records + (close ? forge_->alert(1, 0) : forge_->data("next"));
      });
    }
  }
  compare_fresh([&] {
    std::string records;
    for (int done = 0; done < 20; ++done) {
      records += in_order({forge_->alert(1, 90), forge_->alert(1, 90), forge_->data("x")});
    }
    return records;
  });
  EXPECT_EQ(own_seen_.end, Opened::none);
}

TEST_P(AeadRecordsTest, FloodsOfRecordsWithoutDataAgree) {
  for (const int count : {31, 32, 33, 34, 40}) {
    SCOPED_TRACE(count);
    compare_fresh([&] {
      std::string records;
      for (int done = 0; done < count; ++done) records += forge_->data("");
      return records + forge_->data("next");
    });
    if (!is_1_3()) continue;
    compare_fresh([&] {
      std::string records;
      for (int done = 0; done < count; ++done) records += forge_->update();
      return records + forge_->data("next");
    });
    compare_fresh([&] {
      std::string records;
      for (int done = 0; done < count; ++done) {
        records += done % 4 == 3 ? forge_->update() : forge_->alert(1, 90);
      }
      return records + forge_->data("next");
    });
  }
  EXPECT_EQ(own_seen_.end, Opened::failed);
}

// --- messages of the handshake protocol ----------------------------------------------------------

TEST_P(AeadRecordsTest, KeyUpdatesAgree) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  for (const int request : {0, 1}) {
    connect();
    for (int round = 0; round < 5; ++round) {
      compare(in_order({forge_->data("old"), forge_->update(static_cast<std::uint8_t>(request)),
                        forge_->data("new")}));
      EXPECT_EQ(own_seen_.end, Opened::none);
      // A KeyUpdate goes before it, if the client has requested one.
      compare_sealed("with the newest key");
    }
  }
}

TEST_P(AeadRecordsTest, MalformedKeyUpdatesAgree) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  using namespace std::string_literals;
  for (const std::string& message :
       {"\x18\0\0\x01\x02"s, "\x18\0\0\x01\xff"s, "\x18\0\0\0"s, "\x18\0\0\x02\0\0"s,
        "\x18\0\x01\0\0"s, "\x18\x01\0\0\0"s, "\x18\0\0\x01\0\0"s, "\x18\0\0\x01\0\x18\0\0\x01\0"s,
        "\x18\0\0\x01\x01\x18"s, "\x18\0\0\0\0"s}) {
    SCOPED_TRACE(testing::PrintToString(message));
    compare_fresh([&] { return forge_->seal(record_type::handshake, message) + "rest"; });
    EXPECT_EQ(own_seen_.error, make_error_code(Error::bad_record));
  }
  compare_fresh([&] {
    return in_order({forge_->seal(record_type::handshake, RecordForge::update_message()),
                     forge_->data("with the old key")});
  });
  EXPECT_EQ(own_seen_.error, make_error_code(Error::bad_record));
}

TEST_P(AeadRecordsTest, MessagesInPartsAgree) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  const std::string message = RecordForge::update_message(1);
  for (std::size_t cut = 1; cut < message.size(); ++cut) {
    for (const int between : {0, 1, 2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << cut << " " << between);
      compare_fresh([&] {
        std::string records = forge_->seal(record_type::handshake, message.substr(0, cut));
        if (between == 1) records += forge_->data("between");
        if (between == 2) records += forge_->data("");
        if (between == 3) records += forge_->alert(1, 90);
        if (between == 4) records += forge_->alert(1, 0);
        records += forge_->seal(record_type::handshake, message.substr(cut));
        forge_->next_key();
        return records + forge_->data("next");
      });
      EXPECT_EQ(own_seen_.plain == "next", between == 0 || (between == 3 && cut == 4));
    }
  }
  compare_fresh([&] {
    std::string records;
    for (const char each : message) records += forge_->seal(record_type::handshake, {&each, 1});
    forge_->next_key();
    return records + forge_->data("next");
  });
  EXPECT_EQ(own_seen_.plain, "next");
  compare_sealed("answer");
}

TEST_P(AeadRecordsTest, OtherMessagesAgree) {
  using namespace std::string_literals;
  for (int type = 0; type < 256; type = type == 26 ? 255 : type + 1) {
    if (type == 24 && is_1_3()) continue;
    for (const std::string& rest : {"\0\0\0"s, "\0\0\x01x"s, "\0\0\x08"s, "\x01\0\0"s}) {
      if (!is_1_3() && type == 1 && rest != "\0\0\x01x"s) continue;  // the judge waits for more
      SCOPED_TRACE(testing::Message() << type << testing::PrintToString(rest));
      connect();
      compare(forge_->seal(record_type::handshake, std::string(1, static_cast<char>(type)) + rest));
      EXPECT_EQ(own_seen_.error, make_error_code(Error::bad_record));
    }
  }
}

TEST_P(AeadRecordsTest, MessagesBehindTheOwnCloseAgree) {
  connect();
  Buffer of_judge;
  Buffer of_own;
  server_->seal_close(of_judge);
  own_->seal_close(of_own);
  compare(forge_->data("still read"));
  if (is_1_3()) {
    compare(in_order({forge_->update(0), forge_->data("next")}));
  } else {
    compare(in_order({forge_->seal(record_type::handshake, "\x01xxx"), forge_->data("next")}));
  }
  compare(in_order({forge_->alert(1, 90), forge_->seal(99, "x")}));
  EXPECT_EQ(own_seen_.end, Opened::failed);
  EXPECT_EQ(own_seen_.output, "") << "nothing follows close_notify";
}

TEST_P(AeadRecordsTest, PartOfAMessageDoesNotStopWrites) {
  connect();
  Seen seen;
  open_all(*own_, forge_->seal(record_type::handshake, is_1_3() ? "\x18" : "\x01"), seen);
  Buffer output;
  EXPECT_FALSE(own_->seal(to_bytes("answer"), output));
}

// --- limits --------------------------------------------------------------------------------------

TEST_P(AeadRecordsTest, KeyUpdatesAreLimitedInAMinute) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  MemoryPlatform platform;
  auto loop = Loop::make(platform, {}).value();
  AeadCore core(&loop->platform(), GetParam().aes_gcm);
  for (const std::uint8_t request : {std::uint8_t{0}, std::uint8_t{1}}) {
    connect();
    server_->set_clock(platform);
    own_ = std::make_unique<AeadRecords>(core, server_->keys().value());
    for (int minute = 0; minute < 2; ++minute) {
      update_often(request);
      platform.advance(*loop, 60s);
    }
    update_often(request);
    compare(in_order({forge_->update(request), forge_->data("x")}));
    EXPECT_EQ(own_seen_.error, make_error_code(Error::record_flood));
    own_.reset();
  }
}

TEST_P(AeadRecordsTest, OneKeyUpdateAnswersAllRequests) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 has none";
  connect();
  Seen seen;
  for (int round = 0; round < 1000; ++round)
    open_all(*own_, in_order({forge_->update(1), forge_->data("x")}), seen);
  EXPECT_EQ(seen.plain.size(), 1000U);
  EXPECT_EQ(seen.output, "");
  Buffer output;
  ASSERT_FALSE(own_->seal(to_bytes("answer"), output));
  EXPECT_EQ(forge_->open(output.text().substr(0, 27)), RecordForge::update_message() + '\x16');
  forge_->next_server_key();
  EXPECT_EQ(forge_->open(output.text().substr(27)), "answer\x17");
}

TEST_P(AeadRecordsTest, OwnKeyIsUpdatedBeforeItsLimit) {
  if (!is_1_3()) GTEST_SKIP() << "TLS 1.2 cannot";
  connect();
  ConnectionKeys keys = server_->keys().value();
  keys.write.sequence = AeadRecords::records_per_key - 1;
  use(keys);
  Buffer output;
  for (const std::string_view text : {"old", "new", "newer"}) {
    ASSERT_FALSE(own_->seal(to_bytes(text), output));
  }
  std::string_view records = output.text();
  const auto next = [&] {
    const std::size_t size = 5 + static_cast<std::uint8_t>(records[4]);
    const std::string opened = forge_->open(records.substr(0, size));
    records.remove_prefix(size);
    return opened;
  };
  EXPECT_EQ(next(), "old\x17");
  EXPECT_EQ(next(), RecordForge::update_message() + '\x16');
  forge_->next_server_key();
  EXPECT_EQ(next(), "new\x17");
  EXPECT_EQ(next(), "newer\x17");
  EXPECT_TRUE(records.empty());
}

TEST_P(AeadRecordsTest, SequenceNumbersNeverWrap) {
  connect();
  ConnectionKeys keys = server_->keys().value();
  keys.read.sequence = UINT64_MAX - 1;
  keys.write.sequence = is_1_3() ? 0 : UINT64_MAX - 1;
  use(keys);
  Seen seen;
  open_all(*own_, forge_->data("last"), seen);
  EXPECT_EQ(seen.plain, "last");
  Buffer output;
  EXPECT_FALSE(own_->seal(to_bytes("last"), output));
  if (!is_1_3()) {
    const std::size_t size = output.size();
    EXPECT_EQ(own_->seal(to_bytes("none"), output), make_error_code(Error::library_failure));
    EXPECT_EQ(output.size(), size);
  }
  forge_->sequence() = UINT64_MAX;
  own_ = std::make_unique<AeadRecords>(core_, keys);
  RecordForge second(keys);
  open_all(*own_, second.data("last"), seen);
  EXPECT_EQ(seen.plain, "lastlast");
  open_all(*own_, forge_->data("wrapped"), seen);
  EXPECT_EQ(seen.error, make_error_code(Error::bad_record));
}

// --- random streams ------------------------------------------------------------------------------

TEST_P(AeadRecordsTest, RandomStreamsAgree) {
  const auto seed = static_cast<unsigned>(test_seed());
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(test_replay() + std::to_string(seed) + ", round " + std::to_string(round));
    connect();
    std::string records;
    for (int count = 0; count < 30; ++count) {
      const std::size_t action = below(40);
      if (action == 0) records += forge_->alert(1, static_cast<std::uint8_t>(below(3) * 45));
      if (action == 1) records += forge_->data("");
      if (action == 2 && is_1_3()) records += forge_->update();
      if (action == 3 && is_1_3()) records += forge_->seal(record_type::data, "p", below(300));
      if (action == 4) records += forge_->data(std::string(below(16385), 'y'));
      if (action > 4) records += forge_->data(std::string(1 + below(100), 'x'));
    }
    if (below(3) == 0) {
      // TLS 1.2: not a length, see EachHeaderAgrees.
      const std::size_t index = records.size() - 1 - below(is_1_3() ? records.size() : 16);
      records[index] = static_cast<char>(records[index] ^ static_cast<char>(1 + below(255)));
    }
    while (!records.empty()) {
      const std::string piece = records.substr(0, 1 + below(20000));
      records.erase(0, piece.size());
      compare(piece);
      if (HasFatalFailure()) return;
      if (own_seen_.end == Opened::none && below(4) == 0) compare_sealed("answer");
    }
  }
}

// --- which connections stay with OpenSSL ---------------------------------------------------------

TEST_P(AeadRecordsTest, ClientsStayWithOpenssl) {
  connect();
  EXPECT_FALSE(client_->keys()) << "it receives tickets";
}

}  // namespace
}  // namespace weir::tls::detail::aead_records_test
