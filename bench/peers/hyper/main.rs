//! hyper on tokio, with one single-threaded runtime per core, as in hyper's example for single
//! threads. Several runtimes listen on one port. With --http2, connections use only HTTP/2.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ServerConfig;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

const BACKLOG: u32 = 65535;
const HELLO: &[u8] = b"Hello Weir\n";
const PADDED: &[u8] = b"Hello Weir..............................................................\n";
static KIBIBYTES: [u8; 16 * 1024] = [0; 16 * 1024];
static MEBIBYTE: [u8; 1024 * 1024] = [0; 1024 * 1024];
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
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
        (&Method::GET, "/16k") => ok(BINARY, Bytes::from_static(&KIBIBYTES)),
        (&Method::GET, "/1m") => ok(BINARY, Bytes::from_static(&MEBIBYTE)),
        (&Method::POST, "/ping") => ping(request.into_body()).await,
        _ => failure(StatusCode::NOT_FOUND),
    })
}

/// Runs the tasks of a connection of HTTP/2 on its thread.
#[derive(Clone, Copy)]
struct OnThread;

impl<F: Future + 'static> Executor<F> for OnThread {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

// An error of a connection ends only that connection.
async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, over_http2: bool) {
    let io = TokioIo::new(stream);
    if over_http2 {
        let _ = http2::Builder::new(OnThread).serve_connection(io, service_fn(answer)).await;
    } else {
        let _ = http1::Builder::new()
            .pipeline_flush(true)
            .serve_connection(io, service_fn(answer))
            .await;
    }
}

async fn accept_all(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    over_http2: bool,
) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let tls = tls.clone();
        tokio::task::spawn_local(async move {
            match tls {
                None => serve_connection(stream, over_http2).await,
                Some(acceptor) => {
                    if let Ok(secured) = acceptor.accept(stream).await {
                        serve_connection(secured, over_http2).await;
                    }
                }
            }
        });
    }
}

/// Returns the acceptor of these files, with tickets.
fn tls_of(certificate: &str, key: &str, over_http2: bool) -> TlsAcceptor {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(|each| each.collect())
        .expect("a chain in PEM");
    let key = PrivateKeyDer::from_pem_file(key).expect("a key in PEM");
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .expect("a key that fits the chain");
    let protocol: &[u8] = if over_http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().expect("ticket keys");
    TlsAcceptor::from(Arc::new(config))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves on this thread; calls `ready` with the address when it listens.
fn serve(
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    over_http2: bool,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = listen(address)?;
        ready(listener.local_addr()?);
        accept_all(listener, tls, over_http2).await
    })
}

/// Returns the argument after `name`.
fn text_option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// Returns the number after `name`, or `fallback`.
fn option(name: &str, fallback: u16) -> u16 {
    match text_option(name) {
        Some(value) => value.parse().unwrap_or_else(|_| panic!("{name} takes a number")),
        None => fallback,
    }
}

fn main() -> io::Result<()> {
    let cores = option("--cores", 1);
    let over_http2 = std::env::args().any(|argument| argument == "--http2");
    let tls = text_option("--tls-cert").map(|certificate| {
        tls_of(&certificate, &text_option("--tls-key").expect("--tls-key"), over_http2)
    });
    let others = tls.clone();
    let address = SocketAddr::from(([127, 0, 0, 1], option("--port", 0)));
    serve(address, tls, over_http2, |address| {
        for _ in 1..cores {
            let tls = others.clone();
            thread::spawn(move || {
                serve(address, tls, over_http2, |_| ()).expect("another core serves")
            });
        }
        println!("listening on {address}");
    })
}
