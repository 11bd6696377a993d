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
	"strconv"
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

// zeros answers with so many bytes.
func zeros(size int) http.HandlerFunc {
	body := make([]byte, size)
	length := strconv.Itoa(size)
	return func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "application/octet-stream")
		response.Header().Set("Content-Length", length)
		response.Write(body)
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
	certificate := flag.String("tls-cert", "", "chain in PEM; without it, plain HTTP")
	key := flag.String("tls-key", "", "key in PEM")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)

	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", text("Hello Weir\n"))
	routes.HandleFunc("GET /190", text("Hello Weir"+strings.Repeat(".", 62)+"\n"))
	routes.HandleFunc("POST /ping", ping)
	routes.HandleFunc("GET /16k", zeros(16*1024))
	routes.HandleFunc("GET /1m", zeros(1024*1024))

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	server := http.Server{Handler: routes, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	if *certificate == "" {
		log.Fatal(server.Serve(listener))
	}
	log.Fatal(server.ServeTLS(listener, *certificate, *key))
}
