// A server of WebSockets on gorilla/websocket: it returns each message.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"

	"github.com/gorilla/websocket"
)

var upgrader = websocket.Upgrader{ReadBufferSize: 4096, WriteBufferSize: 4096}

func echo(w http.ResponseWriter, r *http.Request) {
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	for {
		kind, message, err := socket.ReadMessage()
		if err != nil {
			return
		}
		if err := socket.WriteMessage(kind, message); err != nil {
			return
		}
	}
}

func main() {
	port := flag.Int("port", 0, "on 127.0.0.1; 0: any free one")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	http.HandleFunc("/ws", echo)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
