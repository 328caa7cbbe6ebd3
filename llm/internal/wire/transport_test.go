package wire

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAsManyConnectionsAreKeptAsWereUsedAtOnce(t *testing.T) {
	const atOnce = 150
	var opened atomic.Int64
	var here sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		here.Done()
		here.Wait() // no answer is sent before all requests have arrived
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := NewHTTP()
	defer client.CloseIdleConnections()
	for range 3 {
		here.Add(atOnce)
		var all, kept sync.WaitGroup
		kept.Add(atOnce)
		trace := &httptrace.ClientTrace{PutIdleConn: func(error) { kept.Done() }}
		for range atOnce {
			all.Go(func() {
				req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, server.URL, nil)
				if err != nil {
					panic(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					here.Done()
					kept.Done()
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		all.Wait()
		kept.Wait()
	}
	if n := opened.Load(); n > atOnce {
		t.Errorf("%d connections were opened for %d calls at once, three times", n, atOnce)
	}
}
