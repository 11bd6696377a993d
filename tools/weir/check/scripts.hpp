// The cases of `weir check` that are more than bytes and an answer.
#pragma once

namespace weir::check {

class CaseBook;

/// What answers look like and how many come: pipelining, HEAD, close, Expect, splitting.
void add_answer_scripts(CaseBook& book);
/// More than a server should take: targets, fields, bodies, chunk extensions.
void add_limit_scripts(CaseBook& book);
/// Clients that are slow, silent, half closed or gone.
void add_slow_scripts(CaseBook& book);

}  // namespace weir::check
