// The HTTP server of Go's standard library, which tells what it understood.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

// Understood is what the X-Understood field holds.
type Understood struct {
	Method    string `json:"method"`
	Target    string `json:"target"`
	BodyBytes int    `json:"body_bytes"`
	Body      string `json:"body"`
}

func report(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		response.Header().Set("Connection", "close")
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	told, err := json.Marshal(Understood{
		Method:    request.Method,
		Target:    request.RequestURI,
		BodyBytes: len(body),
		Body:      hex.EncodeToString(body[:min(len(body), 256)]),
	})
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("X-Understood", string(told))
	response.Header().Set("Content-Length", "0")
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.SetOutput(io.Discard) // one line for each refusal
	server := http.Server{Handler: http.HandlerFunc(report), DisableGeneralOptionsHandler: true}
	log.Fatal(server.Serve(listener))
}
