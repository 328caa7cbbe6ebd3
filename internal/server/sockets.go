package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server/rondo"
	"github.com/pawlrun/pawl/internal/server/socketio"
	"github.com/pawlrun/pawl/internal/server/socketio/session"
)

// socketPath is the path of Socket.IO.
const socketPath = "/socket.io/"

const (
	// maxMessage bounds one message of a client, and maxUnread the queue for it.
	maxMessage = 1_000_000
	maxUnread  = 1 << 20
	// anonymous is how long a client may stay unauthenticated.
	anonymous = 10 * time.Second
	// maxSessions bounds all sessions, maxSessionsEach those of one principal, and
	// maxSessionsUnknown those of one address without authentication.
	maxSessions, maxSessionsEach, maxSessionsUnknown = 10_000, 1_000, 50
)

// sockets holds the clients of Socket.IO. Their requests are operations of the
// table, and they receive the events of loops in RondoFlow's format.
type sockets struct {
	server   *Server
	sessions *session.Server
	// operations holds the operations with an event, by event name.
	operations map[string]operation

	mu sync.Mutex
	// clients holds all clients by session, and held the number of sessions of each
	// principal.
	clients map[*session.Session]*client
	held    map[string]int
	// listening holds the clients that receive loop events; silence ends that.
	listening map[*client]bool
	silence   context.CancelFunc
	// loops holds the state of the open loops, by run.
	loops map[string]*rondo.Snapshot
}

func newSockets(s *Server) *sockets {
	k := &sockets{
		server: s, operations: map[string]operation{}, clients: map[*session.Session]*client{}, held: map[string]int{}, listening: map[*client]bool{},
		loops: map[string]*rondo.Snapshot{},
	}
	for _, o := range operations() {
		if o.event != "" {
			k.operations[o.event] = o
		}
	}
	k.sessions = session.New(session.Options{
		PingInterval: 25 * time.Second, PingTimeout: 20 * time.Second, MaxPayload: maxMessage,
		MaxQueue: maxUnread, MaxFrames: 4096, WriteTimeout: slowest,
		Open: k.open, Refuse: s.refuse,
	})
	return k
}

// ServeHTTP implements [http.Handler]. A session belongs to its client only. A
// request without a token has the principal of its session, which may have changed
// since the guard read it: a client polls while it sends its token.
func (k *sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, own := r.Header["Authorization"]
	if c := k.of(r); c != nil && own && k.principal(r) != principalOf(r.Context()) {
		k.server.refuse(w, r, kindForbidden.problem("begin a session of your own", "the session belongs to another client"))
		return
	}
	k.sessions.ServeHTTP(w, r)
}

// of returns the client of a request's session, nil for none.
func (k *sockets) of(r *http.Request) *client {
	if r.URL.Path != socketPath {
		return nil
	}
	found := k.sessions.Session(r.URL.Query().Get("sid"))
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients[found]
}

// principal returns the principal of a request's session, empty if unknown.
func (k *sockets) principal(r *http.Request) event.Principal {
	c := k.of(r)
	if c == nil {
		return event.Principal{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.principal
}

// open opens a session.
func (k *sockets) open(s *session.Session, r *http.Request) (session.Receiver, error) {
	c := &client{sockets: k, session: s, remote: r.RemoteAddr, done: func() {}}
	p, given := principalOf(r.Context()), r.Header["Authorization"]
	if p.Proof == event.ProofToken && len(given) > 0 {
		if err := c.prove(func() (event.Principal, context.Context, func(), error) {
			return k.server.bearer(context.WithoutCancel(r.Context()), given)
		}); err != nil {
			return nil, err
		}
	} else if err := k.claim(c, p); err != nil {
		return nil, err
	}
	return session.Namespaces(s, c, anonymous), nil
}

// claim assigns a session to a principal, and releases it from the previous one.
func (k *sockets) claim(c *client, p event.Principal) error {
	who, _ := limitKey(p, hostOf(c.remote))
	most := maxSessionsEach
	if p.Name == "" {
		most = maxSessionsUnknown
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[who] >= most || k.clients[c.session] == nil && len(k.clients) >= maxSessions {
		p := kindBusy.problem("close some connections, or use those that there are", "there are %d open sessions of the %s, and %d in all", k.held[who], who, len(k.clients))
		p.retryAfter = anonymous
		return p
	}
	k.release(c)
	k.held[who]++
	c.principal, c.who = p, who
	k.clients[c.session] = c
	return nil
}

// release removes a session from its principal's count.
func (k *sockets) release(c *client) {
	if c.who == "" {
		return
	}
	if k.held[c.who]--; k.held[c.who] == 0 {
		delete(k.held, c.who)
	}
}

// join sends a client the state of all loops and, from now on, their events.
func (k *sockets) join(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listening[c] = true
	for _, state := range k.loops {
		c.session.Send(k.framesOf(state.Messages())...)
	}
	if k.silence == nil {
		var ctx context.Context
		ctx, k.silence = context.WithCancel(k.server.running)
		k.server.going.Go(func() { k.announce(ctx) })
	}
}

func (k *sockets) leave(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.listening, c)
	if len(k.listening) == 0 && k.silence != nil {
		k.silence()
		k.silence = nil
	}
}

// client is the client of one session.
type client struct {
	sockets *sockets
	session *session.Session
	socket  *session.Socket
	remote  string

	// principal is the client's principal, and who its rate-limit key; the lock of
	// sockets guards both. done releases the token.
	principal event.Principal
	who       string
	done      func()
	// left is called when the client leaves the namespace.
	left func()
}

// prove assigns the session to the principal of a token, while the token is valid.
func (c *client) prove(admit func() (event.Principal, context.Context, func(), error)) error {
	p, within, done, err := admit()
	if err != nil {
		return err
	}
	if err := c.sockets.claim(c, p); err != nil {
		done()
		return err
	}
	c.done()
	revoked := context.AfterFunc(within, func() { c.session.Close(context.Cause(within)) })
	c.done = func() {
		revoked()
		done()
	}
	return nil
}

// Connect implements [session.Client]. The session, or the token in this packet,
// authenticates the client.
func (c *client) Connect(ctx context.Context, socket *session.Socket, auth json.RawMessage) (session.Handler, error) {
	if socket.Namespace() != socketio.MainNamespace {
		return nil, session.InvalidNamespace()
	}
	s := c.sockets.server
	var given struct{ Token string }
	if auth != nil {
		_ = json.Unmarshal(auth, &given) // data without a token authenticates nothing
	}
	err := error(nil)
	if s.keys != nil && given.Token != "" {
		if wait := c.limited(); wait != nil {
			return nil, refusedBy(wait)
		}
		err = c.prove(func() (event.Principal, context.Context, func(), error) {
			return s.bearer(context.WithoutCancel(ctx), []string{"Bearer " + given.Token})
		})
	}
	if err == nil {
		err = access.Authorise(c.principal, access.Viewer)
	}
	if err != nil {
		s.log.Warn("socket refused", "remote", c.remote, "reason", err)
		return nil, refusedBy(err)
	}
	c.socket = socket
	return c, nil
}

// refusedBy returns the refusal of a client as it is sent.
func refusedBy(err error) error {
	p := problemOf(err)
	return &session.Refusal{Message: p.Detail, Data: p}
}

// limited returns the problem of a client that sends too many requests.
func (c *client) limited() error {
	who, allowed := limitKey(c.principal, hostOf(c.remote))
	if wait := c.sockets.server.limiter.take(who, allowed, time.Now()); wait > 0 {
		return tooMany(wait)
	}
	return nil
}

// Connected implements [session.Handler].
func (c *client) Connected() {
	c.left = c.sockets.server.owners.enter(c.principal)
	c.sockets.join(c)
}

// Disconnected implements [session.Handler].
func (c *client) Disconnected() {
	c.sockets.leave(c)
	c.left()
}

// Closed implements [session.Client].
func (c *client) Closed(why error) {
	k := c.sockets
	k.server.log.Debug("socket closed", "principal", c.principal.Name, "remote", c.remote, "reason", cmp.Or(why, context.Canceled))
	k.mu.Lock()
	k.release(c)
	delete(k.clients, c.session)
	k.mu.Unlock()
	c.done()
}
