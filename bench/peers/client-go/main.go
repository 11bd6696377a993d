// The standard library's HTTP client, with a pool that keeps all connections.
// client-go URL CONNECTIONS SECONDS SECONDS_OF_WARM_UP BYTES_OF_BODY
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

var requests, failures atomic.Int64

// ask sends one request and reports whether the response is as expected.
func ask(client *http.Client, url string, bytes int64) bool {
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	received, err := io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK && received == bytes
}

func processorSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	runtime.GOMAXPROCS(1)
	url, connections := os.Args[1], int(number(os.Args[2]))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	transport.DisableCompression = true
	client := &http.Client{Transport: transport}
	for range connections {
		go func() {
			for {
				if !ask(client, url, int64(number(os.Args[5]))) {
					failures.Add(1)
				}
				requests.Add(1)
			}
		}()
	}
	time.Sleep(time.Duration(number(os.Args[4]) * 1e9))
	before, processor := requests.Load(), processorSeconds()
	time.Sleep(time.Duration(number(os.Args[3]) * 1e9))
	fmt.Printf("{\"requests\": %d, \"failures\": %d, \"processor_seconds\": %f}\n",
		requests.Load()-before, failures.Load(), processorSeconds()-processor)
}
