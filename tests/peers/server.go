// Go's own HTTP server, with routes for the HTTP client.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

func main() {
	large := bytes.Repeat([]byte("0123456789abcdef"), 512*1024)
	http.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	})
	http.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		for _, piece := range []string{"one", "two", "three"} {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	})
	http.HandleFunc("/nothing", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	http.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(large)))
		w.Write(large)
	})
	http.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "closing")
	})
	http.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	server := &http.Server{IdleTimeout: time.Second}
	panic(server.Serve(listener))
}
