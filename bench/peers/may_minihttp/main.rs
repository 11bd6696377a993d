//! may_minihttp, with the settings and the allocator of its own benchmark program.

use std::io::{self, Read};
use std::net::TcpListener;

use may_minihttp::{HttpServer, HttpService, Request, Response};
use serde::{Deserialize, Serialize};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELLO: &str = "Hello may......";
const PADDED: &str =
    "Hello may....................................................................";

/// The body of POST /ping and of its answer.
#[derive(Deserialize, Serialize)]
struct Ping {
    sequence: i32,
}

#[derive(Clone)]
struct Service;

fn ping(request: Request, response: &mut Response) -> io::Result<()> {
    let mut received = Vec::with_capacity(64);
    request.body().read_to_end(&mut received)?;
    match serde_json::from_slice::<Ping>(&received) {
        Ok(message) => {
            response.header("Content-Type: application/json");
            response.body_vec(serde_json::to_vec(&message)?);
        }
        Err(_) => {
            response.status_code(400, "Bad Request");
        }
    }
    Ok(())
}

impl HttpService for Service {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        match (request.method(), request.path()) {
            ("GET", "/") => response.header("Content-Type: text/plain").body(HELLO),
            ("GET", "/190") => response.header("Content-Type: text/plain").body(PADDED),
            ("POST", "/ping") => ping(request, response)?,
            _ => {
                response.status_code(404, "Not Found");
            }
        }
        Ok(())
    }
}

/// Returns the number after `name`, or `fallback`.
fn option(name: &str, fallback: u16) -> u16 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    match arguments.next() {
        Some(value) => value.parse().unwrap_or_else(|_| panic!("{name} takes a number")),
        None => fallback,
    }
}

/// Returns the requested port, or a recently free port: the server does not report its own.
fn port() -> io::Result<u16> {
    match option("--port", 0) {
        0 => Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()),
        port => Ok(port),
    }
}

fn main() -> io::Result<()> {
    may::config()
        .set_workers(usize::from(option("--cores", 1)))
        .set_pool_capacity(1000)
        .set_stack_size(0x1000)
        .set_worker_pin(false); // the benchmark pins the process
    let port = port()?;
    let server = HttpServer(Service).start(("127.0.0.1", port))?;
    println!("listening on 127.0.0.1:{port}");
    server.join().map_err(|_| io::Error::other("the server ended"))
}
