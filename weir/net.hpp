// Umbrella header for streams, listeners, datagrams, files and host names.
#pragma once

#include "weir/net/any_stream.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/net/files.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/net/proxy_protocol.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/tcp.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/net/udp.hpp"
