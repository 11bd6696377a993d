//! ntex on tokio, with the number of workers from the command line.

use std::io;
use std::net::TcpListener;

use ntex::web::{self, App, HttpResponse, HttpServer};
use serde::{Deserialize, Serialize};

const HELLO: &str = "Hello Weir\n";
const PADDED: &str = "Hello Weir..............................................................\n";

/// The body of POST /ping and of its answer.
#[derive(Deserialize, Serialize)]
struct Ping {
    sequence: i32,
}

async fn hello() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(HELLO)
}

async fn padded() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(PADDED)
}

async fn ping(message: web::types::Json<Ping>) -> HttpResponse {
    HttpResponse::Ok().json(&*message)
}

/// Returns the number after `name`, or `fallback`.
fn option(name: &str, fallback: u16) -> u16 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    match arguments.next() {
        Some(value) => value.parse().unwrap_or_else(|_| panic!("{name} takes a number")),
        None => fallback,
    }
}

#[ntex::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", option("--port", 0)))?;
    let address = listener.local_addr()?;
    let server = HttpServer::new(async || {
        App::new()
            .route("/", web::get().to(hello))
            .route("/190", web::get().to(padded))
            .route("/ping", web::post().to(ping))
    })
    .workers(usize::from(option("--cores", 1)))
    .listen(listener)?
    .run();
    println!("listening on {address}");
    server.await
}
