// A server of Go's standard library for bench/forms.py: it counts the bytes of multipart forms.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
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
	http.HandleFunc("/form", form)
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		panic(err)
	}
}
