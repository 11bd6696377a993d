// Includes everything that a web service takes from Weir beside its handlers.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http.hpp"
#include "weir/web/events/event_parser.hpp"
#include "weir/web/events/event_reader.hpp"
#include "weir/web/events/events.hpp"
