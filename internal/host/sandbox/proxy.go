package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// Reach is a machine that a command requested.
type Reach struct {
	// Host is the machine as the command named it, in canonical form if it has one.
	Host string
	Port uint16
	// Denied is why it was not reached; empty if it was allowed.
	Denied string
	// Count is the number of requests.
	Count int
}

const (
	// proxyPort is the proxy's port on the command's loopback interface.
	proxyPort = 3128
	// dialTimeout bounds connecting to a machine.
	dialTimeout = 30 * time.Second
	// maxReaches bounds the requests that are kept of a command, and maxWhy the bytes
	// of a reason, which may contain a machine's name.
	maxReaches = 200
	maxWhy     = 300
)

// proxyVariables returns the variables that name the proxy and exclude the servers that
// programs start on their own loopback interface.
func proxyVariables(rules egress.Rules) []string {
	const proxy = "http://127.0.0.1:3128"
	own := strings.Join(unproxied(rules), ",")
	return []string{
		"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy, "NO_PROXY=" + own,
		"http_proxy=" + proxy, "https_proxy=" + proxy, "all_proxy=" + proxy, "no_proxy=" + own,
	}
}

// proxy connects the commands of one process to the machines that the rules allow, over
// HTTP or a tunnel (CONNECT), and records their requests. It resolves names itself, and
// judges the address that it dials.
type proxy struct {
	rules  egress.Rules
	server http.Server
	// over is cancelled to end connections in progress.
	over   context.Context
	cancel context.CancelFunc
	served sync.WaitGroup
	// slots limits the concurrent connections.
	slots connectionSlots

	mu      sync.Mutex
	reached []Reach
}

func newProxy(rules egress.Rules) *proxy {
	p := &proxy{rules: rules, slots: newConnectionSlots()}
	p.over, p.cancel = context.WithCancel(context.Background())
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {},
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, err)
		},
	}
	p.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			p.tunnel(w, r)
		case r.URL.Scheme == "http" && r.URL.Host != "":
			forward.ServeHTTP(w, r)
		default:
			http.Error(w, "this is a proxy: ask for http://HOST/… or a tunnel", http.StatusBadRequest)
		}
	})
	p.server.ReadHeaderTimeout = dialTimeout
	p.server.BaseContext = func(net.Listener) context.Context { return p.over }
	return p
}

func (p *proxy) serve(l net.Listener) {
	p.served.Go(func() { _ = p.server.Serve(p.slots.listener(p.over, l)) })
}

// close ends every connection.
func (p *proxy) close() {
	p.cancel()
	_ = p.server.Close()
	p.served.Wait()
}

// tunnel connects a command to a machine.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	p.join(here, buffered, there)
}

// join copies data in both directions; said is the data from here.
func (p *proxy) join(here net.Conn, said io.Reader, there net.Conn) {
	defer context.AfterFunc(p.over, func() {
		here.Close()
		there.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(there, said)
		closeWrite(there)
	})
	_, _ = io.Copy(here, there)
	closeWrite(here)
	both.Wait()
}

// closeWrite closes the write side of a connection.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// dial judges a machine by its name and then by its address, and connects.
func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, p.note(address, 0, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, p.note(name, 0, err)
	}
	host, err := p.rules.Host(name, uint16(port))
	if err != nil {
		return nil, p.note(name, uint16(port), err)
	}
	d := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return p.rules.Address(host, to)
	}}
	c, err := d.DialContext(ctx, network, net.JoinHostPort(host, text))
	refusal, refused := errors.AsType[*egress.Refusal](err)
	if refused {
		return nil, p.note(host, uint16(port), refusal)
	}
	_ = p.note(host, uint16(port), nil)
	return c, err
}

// note records a request, and returns its error.
func (p *proxy) note(host string, port uint16, err error) error {
	r := Reach{Host: beginning(host, 255), Port: port, Count: 1}
	if err != nil {
		r.Denied = beginning(err.Error(), maxWhy)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.reached {
		if known.Host == r.Host && known.Port == r.Port && known.Denied == r.Denied {
			p.reached[i].Count++
			return err
		}
	}
	if len(p.reached) < maxReaches {
		p.reached = append(p.reached, r)
	}
	return err
}

// beginning returns at most most bytes of a text.
func beginning(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

func (p *proxy) reaches() []Reach {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reached) // requests in progress may still append to it
}

// refuse answers a request that is not allowed.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if _, ok := errors.AsType[*egress.Refusal](err); ok {
		status = http.StatusForbidden
	}
	http.Error(w, "pawl: "+err.Error(), status)
}
