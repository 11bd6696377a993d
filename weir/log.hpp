// Umbrella header for structured logs.
#pragma once

#include "weir/log/log_service.hpp"
#include "weir/log/logger.hpp"
#include "weir/log/sink.hpp"
#include "weir/log/spdlog_sink.hpp"
