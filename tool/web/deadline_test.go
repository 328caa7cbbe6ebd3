package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/web"
)

// pipes is a listener whose connections are made by dial, within this process
// and so within the time of a bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accepted <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble are options for a test on virtual time, whose one machine is h.
func inBubble(t *testing.T, h http.HandlerFunc) web.Options {
	t.Helper()
	listener := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	o := local()
	o.Egress, o.Dial = egress.Rules{}, listener.dial
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return o
}

// attempt is one attempt at a call, after earlier ones that took so long.
func attempt(t *testing.T, o web.Options, address string, spent time.Duration) (r tool.Result, took time.Duration, err error) {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"url": address})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r, err = web.New(o).Run(t.Context(), tool.Call{ID: "c", Args: raw, Spent: spent})
	return r, time.Since(start), err
}

// drips answers with a byte, or a few, in each interval for ever.
func drips(chunk string, interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(interval):
			case <-r.Context().Done():
				return
			}
		}
	}
}

// redirects sends the reader on each time, and takes its time about it.
func redirects(after time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(after):
		case <-r.Context().Done():
		}
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}
}

func TestAFetchHasOneDeadlineOverAllThatItTakes(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tt := range []struct {
		name  string
		h     http.HandlerFunc
		spent time.Duration
		takes time.Duration
		says  string
	}{
		{"a machine that says nothing", silent, 0, 30 * time.Second, "example.com did not answer within 30s"},
		{"the same after attempts that failed", silent, 18 * time.Second, 12 * time.Second, "did not answer within 30s"},
		{"nothing is left for another attempt", silent, 31 * time.Second, 0, "did not answer within 30s"},
		{"redirects that take long", redirects(8 * time.Second), 0, 30 * time.Second, "did not answer within 30s"},
		{"a page that comes a byte a second", drips("x", time.Second), 0, 30 * time.Second, "did not answer within 30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := attempt(t, inBubble(t, tt.h), "http://example.com/", tt.spent)
				typed, ok := errors.AsType[*tool.Error](err)
				if !ok || typed.Type != event.ErrorTimeout || !strings.Contains(typed.Message, tt.says) || !typed.NothingCame {
					t.Fatalf("got %v", err)
				}
				if took != tt.takes {
					t.Errorf("it took %s, want %s", took, tt.takes)
				}
				// Another attempt would begin with nothing, and the engine looks
				// for timeouts of the network itself.
				if again, transient := errors.AsType[*tool.TransientError](err); transient {
					t.Errorf("another attempt is made after %v", again)
				}
				if network, ok := errors.AsType[*net.OpError](err); ok {
					t.Errorf("another attempt is made because of %v", network)
				}
			})
		})
	}
}

func TestAPageThatComesSteadilyIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for range 25 {
				_, _ = io.WriteString(w, strings.Repeat("x", 200))
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		})
		r, _, err := attempt(t, o, "http://example.com/", 0)
		if _, body, _ := strings.Cut(r.Output, "\n"); err != nil || len(body) != 5000 {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	})
}

// A name may have an address that never answers, such as one of a network that this
// machine is not joined to.
func TestAnAddressThatKeepsSilentLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inBubble(t, gives("text/plain", "hello"))
		answering := o.Dial
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("2606:4700::1111"), netip.MustParseAddr("93.184.216.34")}, nil
		}
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return answering(ctx, network, address)
		}
		r, took, err := attempt(t, o, "http://example.com/", 0)
		if err != nil || !strings.HasSuffix(r.Output, "\nhello") || took != 10*time.Second {
			t.Errorf("got %q, %v after %s", r.Output, err, took)
		}
	})
}
