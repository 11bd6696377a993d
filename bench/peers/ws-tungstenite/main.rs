//! A server of WebSockets on tokio-tungstenite: it returns each message.
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn serve(port: u16) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(echo(stream));
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip_while(|each| each != "--port").skip(1);
    let port = arguments.next().and_then(|each| each.parse().ok()).unwrap_or(0);
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve(port))
}
