// The standard library's HTTP server, as its documentation shows it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
)

// Ping is the body of POST /ping and of its answer.
type Ping struct {
	Sequence int `json:"sequence"`
}

// text answers with a fixed body.
func text(body string) http.HandlerFunc {
	return func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(response, body)
	}
}

func ping(response http.ResponseWriter, request *http.Request) {
	received, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	var message Ping
	if err := json.Unmarshal(received, &message); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(message)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	response.Write(answer)
}

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1; 0: any free port")
	cores := flag.Int("cores", 1, "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)

	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", text("Hello Weir\n"))
	routes.HandleFunc("GET /190", text("Hello Weir"+strings.Repeat(".", 62)+"\n"))
	routes.HandleFunc("POST /ping", ping)

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, routes))
}
