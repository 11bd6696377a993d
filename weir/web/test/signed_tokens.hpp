// Keys and tokens of all kinds of signatures, made with Python's cryptography. The tokens have the
// claims {"iss":"joe","exp":1300819380,"aud":["a","notes"]}. For tests only.
#pragma once

#include <string_view>

namespace weir::http::signed_tokens {

inline constexpr std::string_view rs256 =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJqb2UiLCJleHAiOjEzMDA4MTkzODAsImF"
    "1ZCI6WyJhIiwibm90ZXMiXX0.D3Oy3FRB1psObO8qA0DWSgpbDcM1zTEiKZAKHKC3J5UHtBW4l1naQqW"
    "h7MHnx-mS5s5Y8NcB1oscFzfYDwVN5BtChI6hIpKN4OC1wISuV7Wi5CRpOIKzqgnKiUHWsSrqGNejcFy"
    "40h9qwGA9dgqxm7f1718Yu3q2u56k0ZV6RbWP2-Zu2dN0S6R_sJCO3SKBb1jJPGx8ffxJMV4g8WFDryf"
    "ZcNhCIUlYwvOuJOLQ-qXf1CgIzbSz9PanllfPOR2ReaYr6JULyymTtWRDg-yxERHRPf6z1G8D8znPDwa"
    "NidBZEQh97HMDSlElugjfQRgCjbdXcVDESS0-qdEig0NN6A";

inline constexpr std::string_view ps256 =
    "eyJhbGciOiJQUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJqb2UiLCJleHAiOjEzMDA4MTkzODAsImF"
    "1ZCI6WyJhIiwibm90ZXMiXX0.IJBA-dYCBMlYsqdZzfV7eB7bKi2QjNdRKv5rhD55jjWJ8iYk_HJImMJ"
    "qb53JGG01IYSSqai-CEkzai0hBHNeUn-uTpL3LYmrTpTJMLxxIvRskZ6i2vmqU2oG9uegZZ6SQ-pv4yf"
    "k2dr6fGsCBA9vkDHQ7x8NzbclDjTCX5-Y_Hw13vHBcKmzDAIPKrWY8D4nyfXi8IkootGB_6mvHcbTYRX"
    "24w3oorM2zcWVqCtnKf9--l_3mshGcPNqqT_cT9h0EayVkb5AVZ1Nn1wsQwZAKZXEb73R0TNyqWPd2N3"
    "7YBPKo4J_WjK0_nfmGovF2prRX0WAoV4bJVTmiv_azodtwQ";

inline constexpr std::string_view es256 =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIn0.eyJpc3MiOiJqb2UiLCJleHAiOjEzMDA4MTkzODAsImF1"
    "ZCI6WyJhIiwibm90ZXMiXX0.QO1Rgf6qmQvFODmWvIzuwzBZ2Xt2qw-PYpzL3NZAsqywFIGektcCTAm7"
    "Xncbuo9KynT5GIszjq54eqnDcXF8JA";

inline constexpr std::string_view es384 =
    "eyJhbGciOiJFUzM4NCIsImtpZCI6ImVjMyJ9.eyJpc3MiOiJqb2UiLCJleHAiOjEzMDA4MTkzODAsImF"
    "1ZCI6WyJhIiwibm90ZXMiXX0.PbDk_YXdhAmTMXXeuUQ5BkCXwsNkVovRsWcYH9KiMPvirevDFMx8CjY"
    "M-lnL9QpcNRITWDc7yBOsrKahoQ01LOdku9SE6T4uo06_1of_IDnjwQRGJqB485YUCoWAPXfQ";

inline constexpr std::string_view eddsa =
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImVkIn0.eyJpc3MiOiJqb2UiLCJleHAiOjEzMDA4MTkzODAsImF1"
    "ZCI6WyJhIiwibm90ZXMiXX0.U31l_BtZJQDRIqcNGHPEc6nTwTubBNPOaa7eyP93X6qewnUwBvHkrYUy"
    "J00x9eRrpSaQXrNokvrXGIF8tgh4CA";

inline constexpr std::string_view key_set =
    R"({"keys":[{"kty":"RSA","kid":"rsa","use":"sig","n":"njVMrBZz9W_jGzxh_0MIdfPJrsfa_)"
    R"(Kw_FJ455Qor-9oB3LyKJYvtVhBEpiQxF5xl5ZRkbhSnUsMJa9zmtcc7mTj62njcX0Dk2migQYoU5seHQ)"
    R"(MMt6YASVxr5Q3S5RlNefFC-uusil-2bYaequno59JxaRxZLdoIsewWZ0SukbpD9IecjxELYZL4QlvKkm)"
    R"(3dIqGZb_Ii-w9RryvaAcCPlSI2VNUazIz8B3A71T5gDFschv2f__AR2mJMIDgA30G8SE7GyvHqe1ruLa)"
    R"(0UgjZj93j-PL3MzbF-pwal9rPoSJV8Lna81zlfddq52c46AU_sCxdJnlguEuTIElnxaJfyONQ","e":")"
    R"(AQAB","x5t":"skipped"},{"kty":"EC","kid":"ec","crv":"P-256","x":"R8Xb-cmrb-L2L3l)"
    R"(fbe4weZjHO6_H1avqBNV658kAdM8","y":"Myjy53v1YUculGN1COODQ8vMeguHAgwSWwfXwo2DX5U",)"
    R"("key_ops":["verify"]},{"kty":"EC","kid":"ec3","crv":"P-384","alg":"ES384","x":"a)"
    R"(Ac7jvFyuKejpNmx98WVVsWI2Wm-8f_2eLkeitaXgJp2lPZPi6bBetWDa_GCJPCY","y":"zevrwXXqMD)"
    R"(EDHbukVC8v64NfzZ39VmYYe80H6yeUvNNUVY2IB8Yf3WHb12msjmlo"},{"kty":"OKP","kid":"ed")"
    R"(,"crv":"Ed25519","x":"1FVA3rGE_2SCYgci0hhEzh4cUdW6olqado2jlRXrEy0"},{"kty":"OKP")"
    R"(,"kid":"x","crv":"X25519","x":"AAAA"},{"kty":"EC","kid":"k1","crv":"secp256k1",")"
    R"(x":"AA","y":"AA"},{"kty":"RSA","kid":"enc","use":"enc","n":"AA","e":"AA"},{"kty")"
    R"(:"new","kid":"new"}]})";

inline constexpr std::string_view rsa_pem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAnjVMrBZz9W/jGzxh/0MI\n"
    "dfPJrsfa/Kw/FJ455Qor+9oB3LyKJYvtVhBEpiQxF5xl5ZRkbhSnUsMJa9zmtcc7\n"
    "mTj62njcX0Dk2migQYoU5seHQMMt6YASVxr5Q3S5RlNefFC+uusil+2bYaequno5\n"
    "9JxaRxZLdoIsewWZ0SukbpD9IecjxELYZL4QlvKkm3dIqGZb/Ii+w9RryvaAcCPl\n"
    "SI2VNUazIz8B3A71T5gDFschv2f//AR2mJMIDgA30G8SE7GyvHqe1ruLa0UgjZj9\n"
    "3j+PL3MzbF+pwal9rPoSJV8Lna81zlfddq52c46AU/sCxdJnlguEuTIElnxaJfyO\n"
    "NQIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

}  // namespace weir::http::signed_tokens
