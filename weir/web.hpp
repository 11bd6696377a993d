// Includes everything that a web service takes from Weir beside its handlers.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http.hpp"
#include "weir/web/auth/authenticated_user.hpp"
#include "weir/web/auth/basic_auth.hpp"
#include "weir/web/auth/bearer_auth.hpp"
#include "weir/web/auth/json_web_token.hpp"
#include "weir/web/auth/jwt_auth.hpp"
#include "weir/web/events/event_parser.hpp"
#include "weir/web/events/event_reader.hpp"
#include "weir/web/events/events.hpp"
