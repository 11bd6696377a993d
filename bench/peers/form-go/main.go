// A server of Go's standard library for the work M1: it counts the bytes of multipart forms.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
)

func form(w http.ResponseWriter, r *http.Request) {
	reader, err := r.MultipartReader()
	if err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	var total int64
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		n, err := io.Copy(io.Discard, part)
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		total += n
	}
	fmt.Fprint(w, total)
}

func main() {
	port := flag.Int("port", 0, "on 127.0.0.1; 0: any free one")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	http.HandleFunc("/form", form)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
