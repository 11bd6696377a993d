//! The pooled client of hyper-util on a single-threaded tokio runtime.
//! client_hyper URL CONNECTIONS SECONDS SECONDS_OF_WARM_UP BYTES_OF_BODY

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

type Requests = Client<HttpConnector, Empty<Bytes>>;

/// Sends one request. Returns true if the response is as expected.
async fn ask(client: &Requests, uri: &Uri, bytes: usize) -> bool {
    let Ok(response) = client.get(uri.clone()).await else {
        return false;
    };
    let good = response.status() == StatusCode::OK;
    let mut body = response.into_body();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return false;
        };
        received += frame.data_ref().map_or(0, Bytes::len);
    }
    good && received == bytes
}

fn processor_seconds() -> f64 {
    // SAFETY: the structure is plain data, and the call fills it.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut used);
        used
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

async fn measure(arguments: Vec<String>) {
    let uri: Uri = arguments[1].parse().expect("a URL");
    let connections: usize = arguments[2].parse().expect("a number of connections");
    let seconds: f64 = arguments[3].parse().expect("seconds");
    let warm_up: f64 = arguments[4].parse().expect("seconds of the warm-up");
    let bytes: usize = arguments[5].parse().expect("a number of bytes");
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Requests = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(connections)
        .build(connector);
    let counts = Rc::new((Cell::new(0_u64), Cell::new(0_u64)));
    for _ in 0..connections {
        let (client, uri, counts) = (client.clone(), uri.clone(), counts.clone());
        tokio::task::spawn_local(async move {
            loop {
                if !ask(&client, &uri, bytes).await {
                    counts.1.set(counts.1.get() + 1);
                }
                counts.0.set(counts.0.get() + 1);
            }
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(warm_up)).await;
    let (before, processor) = (counts.0.get(), processor_seconds());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    println!(
        "{{\"requests\": {}, \"failures\": {}, \"processor_seconds\": {:.6}}}",
        counts.0.get() - before,
        counts.1.get(),
        processor_seconds() - processor
    );
    std::process::exit(0);
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, measure(std::env::args().collect()));
}
