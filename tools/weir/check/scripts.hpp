// Registers the cases of `weir check` that are more than bytes and a response.
#pragma once

namespace weir::check {

class CaseRegistry;

/// Adds cases about the form and number of responses: pipelining, HEAD, close, Expect, splitting.
void add_answer_scripts(CaseRegistry& registry);
/// Adds cases about validators, and about the fields of HEAD and 304.
void add_validator_scripts(CaseRegistry& registry);
/// Adds cases about TRACE and about names with a dot at their end.
void add_forward_scripts(CaseRegistry& registry);
/// Adds cases about methods that a server may not know.
void add_method_scripts(CaseRegistry& registry);
/// Adds cases about the bodies of requests, on a path that returns them.
void add_body_scripts(CaseRegistry& registry);
/// Adds cases with forms, JSON texts, queries and headers that a handler cannot use.
void add_content_scripts(CaseRegistry& registry);
/// Adds cases that send more than a server should accept: targets, fields, bodies, chunk
/// extensions.
void add_limit_scripts(CaseRegistry& registry);
/// Adds cases with clients that are slow, silent, half closed or gone.
void add_slow_scripts(CaseRegistry& registry);
/// Adds cases with many slow clients, whose cost others must not bear.
void add_share_scripts(CaseRegistry& registry);
/// Adds cases with input that costs work and gives no output.
void add_work_scripts(CaseRegistry& registry);

/// Adds hostile frames and field blocks of HTTP/2.
void add_h2_scripts(CaseRegistry& registry);
/// Adds uploads over HTTP/2: early answers, and DATA for streams that have ended.
void add_h2_upload_scripts(CaseRegistry& registry);
/// Adds session tickets of TLS that are used for another name.
void add_tls_ticket_scripts(CaseRegistry& registry);
/// Adds hostile handshakes of TLS, made of raw records.
void add_tls_scripts(CaseRegistry& registry);
/// Adds hostile records on TLS connections whose handshake is complete.
void add_tls_record_scripts(CaseRegistry& registry);
/// Adds hostile handshakes, frames and floods of WebSockets.
void add_websocket_scripts(CaseRegistry& registry);

}  // namespace weir::check
