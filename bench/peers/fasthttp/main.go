// fasthttp, routed by a switch over the path, as its documentation advises.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"strings"

	"github.com/valyala/fasthttp"
)

// Ping is the body of POST /ping and of its answer.
type Ping struct {
	Sequence int `json:"sequence"`
}

var padded = "Hello Weir" + strings.Repeat(".", 62) + "\n"

func ping(context *fasthttp.RequestCtx) {
	var message Ping
	if err := json.Unmarshal(context.PostBody(), &message); err != nil {
		context.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(message)
	if err != nil {
		context.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	context.SetContentType("application/json")
	context.SetBody(answer)
}

func serve(context *fasthttp.RequestCtx) {
	switch string(context.Path()) {
	case "/":
		if context.IsGet() {
			context.SetBodyString("Hello Weir\n")
			return
		}
	case "/190":
		if context.IsGet() {
			context.SetBodyString(padded)
			return
		}
	case "/ping":
		if context.IsPost() {
			ping(context)
			return
		}
	default:
		context.Error("not found\n", fasthttp.StatusNotFound)
		return
	}
	context.Error("method not allowed\n", fasthttp.StatusMethodNotAllowed)
}

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1; 0: any free port")
	cores := flag.Int("cores", 1, "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := fasthttp.Server{Handler: serve, NoDefaultServerHeader: true}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
