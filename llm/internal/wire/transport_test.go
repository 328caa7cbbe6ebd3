package wire

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
		here.Wait() // nobody is answered before all have asked
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
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				resp, err := client.Post(server.URL, "application/json", nil)
				if err != nil {
					t.Error(err)
					here.Done()
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		all.Wait()
	}
	// a connection may be dialled that is needed no more when it is there
	if n := opened.Load(); n > 2*atOnce {
		t.Errorf("%d connections were opened for %d calls at once, three times", n, atOnce)
	}
}
