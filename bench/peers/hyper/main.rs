//! hyper on tokio, with one single-threaded runtime per core, as in hyper's example for single
//! threads. Several runtimes listen on one port.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::thread;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpSocket};

const BACKLOG: u32 = 65535;
const HELLO: &[u8] = b"Hello Weir\n";
const PADDED: &[u8] = b"Hello Weir..............................................................\n";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The body of POST /ping and of its answer.
#[derive(Deserialize, Serialize)]
struct Ping {
    sequence: i32,
}

fn ok(kind: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn failure(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

async fn ping(body: Incoming) -> Response<Full<Bytes>> {
    let Ok(received) = body.collect().await else {
        return failure(StatusCode::BAD_REQUEST);
    };
    let Ok(message) = serde_json::from_slice::<Ping>(&received.to_bytes()) else {
        return failure(StatusCode::BAD_REQUEST);
    };
    match serde_json::to_vec(&message) {
        Ok(answer) => ok(JSON, answer.into()),
        Err(_) => failure(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => ok(TEXT, Bytes::from_static(HELLO)),
        (&Method::GET, "/190") => ok(TEXT, Bytes::from_static(PADDED)),
        (&Method::POST, "/ping") => ping(request.into_body()).await,
        _ => failure(StatusCode::NOT_FOUND),
    })
}

async fn accept_all(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(async move {
            // An error of a connection ends only that connection.
            let _ = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves on this thread; calls `ready` with the address when it listens.
fn serve(address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = listen(address)?;
        ready(listener.local_addr()?);
        accept_all(listener).await
    })
}

/// Returns the number after `name`, or `fallback`.
fn option(name: &str, fallback: u16) -> u16 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    match arguments.next() {
        Some(value) => value.parse().unwrap_or_else(|_| panic!("{name} takes a number")),
        None => fallback,
    }
}

fn main() -> io::Result<()> {
    let cores = option("--cores", 1);
    serve(SocketAddr::from(([127, 0, 0, 1], option("--port", 0))), |address| {
        for _ in 1..cores {
            thread::spawn(move || serve(address, |_| ()).expect("another core serves"));
        }
        println!("listening on {address}");
    })
}
