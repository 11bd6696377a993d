"""Executes nginx or HAProxy as a reverse proxy with one thread, and prints its port.

    proxies.py nginx|haproxy FOLDER HOST:PORT

FOLDER gets its configuration. The last argument is the upstream.
"""

import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path += [str(ROOT / "peers/shared"), str(ROOT / "peers/nginx")]
import start
import starting

NGINX = """daemon off; master_process off; pid proxy.pid; error_log stderr warn;
events {{ worker_connections 4000; multi_accept on; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s;
  upstream up {{ server {up}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=65535 reuseport;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host;
    }}
  }}
}}
"""
HAPROXY = """global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 30s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  option forwardfor
  default_backend back
backend back
  server up {up}
"""


def main():
    name, folder, upstream = sys.argv[1:]
    program = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")
    if program is None:
        raise SystemExit(f"{name} is not installed")
    reserved = start.reserve(0)
    port = reserved.getsockname()[1]
    file = pathlib.Path(folder) / f"{name}-proxy.conf"
    text = NGINX if name == "nginx" else HAPROXY
    file.write_text(text.format(up=upstream, port=port))
    starting.prepare(port)
    if name == "nginx":
        reserved.set_inheritable(True)  # keeps the port while nginx runs
        os.execv(program, [program, "-p", f"{folder}/", "-c", str(file), "-e", "stderr"])
    reserved.close()  # HAProxy shares no port with another program
    os.execv(program, [program, "-db", "-f", str(file)])


if __name__ == "__main__":
    main()
