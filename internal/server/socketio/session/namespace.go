package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// Refusal is the answer to a client that may not enter a namespace.
type Refusal struct {
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (r *Refusal) Error() string { return "session: refused: " + r.Message }

// InvalidNamespace returns the refusal of an unknown namespace.
func InvalidNamespace() error { return &Refusal{Message: "Invalid namespace"} }

// Client is the program's side of a session. Its functions, and those of its
// sockets, are called one at a time.
type Client interface {
	// Connect lets the client enter a namespace, with the data that it sent. An
	// error refuses the client; a [*Refusal] is sent as it is.
	Connect(ctx context.Context, socket *Socket, auth json.RawMessage) (Handler, error)
	// Closed is called once, when the session has ended.
	Closed(why error)
}

// Handler handles the events of one client in a namespace.
type Handler interface {
	// Connected is called once, when the client has been notified of its
	// connection.
	Connected()
	Event(ctx context.Context, e Incoming)
	// Disconnected is called once, when the client has left the namespace.
	Disconnected()
}

// Socket is a client's connection to a namespace.
type Socket struct {
	session   *Session
	namespace string
	handler   Handler
}

// Namespace returns the namespace of the socket.
func (s *Socket) Namespace() string { return s.namespace }

// Emit sends an event without waiting; its error is that of JSON.
func (s *Socket) Emit(name string, args ...any) error {
	p, err := socketio.NewEvent(s.namespace, name, args...)
	if err == nil {
		s.session.Send(p.Frames()...)
	}
	return err
}

// Incoming is an event of a client.
type Incoming struct {
	Name string
	Args []json.RawMessage
	// Attachments holds the values of placeholders in the arguments.
	Attachments [][]byte

	socket *Socket
	id     *uint64
}

// Ack acknowledges the event if its client requested that. Attachments holds the
// values of placeholders in args.
func (e Incoming) Ack(attachments [][]byte, args ...any) error {
	if e.id == nil {
		return nil
	}
	data, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("session: acknowledge %s: %w", e.Name, err)
	}
	p := socketio.Packet{Type: socketio.Ack, Namespace: e.socket.namespace, ID: e.id, Data: data, Attachments: attachments}
	if len(attachments) > 0 {
		p.Type = socketio.BinaryAck
	}
	e.socket.session.Send(p.Frames()...)
	return nil
}

// maxWaiting bounds the queued packets of a client.
const maxWaiting = 256

// Namespaces returns a receiver that handles the messages of a session as Socket.IO
// packets. It drops a client that is in no namespace for patience.
func Namespaces(s *Session, c Client, patience time.Duration) Receiver {
	n := &namespaces{session: s, client: c, patience: patience, sockets: map[string]*Socket{}}
	n.decoder.Limit = s.server.o.MaxPayload
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.timer = time.AfterFunc(patience, func() { s.end(ErrNoConnect) })
	return n
}

// namespaces holds the namespaces of one session. A goroutine that exists while
// packets are queued handles them in order, so that a slow one does not delay the
// client's pongs.
type namespaces struct {
	session  *Session
	client   Client
	patience time.Duration
	timer    *time.Timer
	decoder  socketio.Decoder
	ctx      context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex
	waiting []func()
	working bool

	// sockets belongs to the working goroutine.
	sockets map[string]*Socket
}

// Receive implements [Receiver].
func (n *namespaces) Receive(f socketio.Frame) error {
	p, whole, err := n.decoder.Add(f)
	if err != nil || !whole {
		return err
	}
	n.mu.Lock()
	many := len(n.waiting) >= maxWaiting
	n.mu.Unlock()
	if many {
		return fmt.Errorf("%w: %d packets wait to be handled", ErrProtocol, maxWaiting)
	}
	n.do(func() {
		if err := n.handle(p); err != nil {
			n.session.end(err)
		}
	})
	return nil
}

// Closed implements [Receiver].
func (n *namespaces) Closed(why error) {
	n.cancel()
	n.timer.Stop()
	n.do(func() {
		for _, s := range n.sockets {
			s.handler.Disconnected()
		}
		clear(n.sockets)
		n.client.Closed(why)
	})
}

// do queues a job.
func (n *namespaces) do(job func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, job)
	if !n.working {
		n.working = true
		go n.work()
	}
}

func (n *namespaces) work() {
	for {
		n.mu.Lock()
		if len(n.waiting) == 0 {
			n.working, n.waiting = false, nil
			n.mu.Unlock()
			return
		}
		job := n.waiting[0]
		n.waiting = n.waiting[1:]
		n.mu.Unlock()
		job()
	}
}

// handle handles a packet.
func (n *namespaces) handle(p socketio.Packet) error {
	if n.ctx.Err() != nil {
		return nil
	}
	socket := n.sockets[p.Namespace]
	switch {
	case p.Type == socketio.Connect && socket == nil:
		return n.connect(p)
	case socket == nil:
		return fmt.Errorf("%w: the client is not connected to %q", ErrProtocol, p.Namespace)
	case p.Type == socketio.Disconnect:
		delete(n.sockets, p.Namespace)
		if len(n.sockets) == 0 {
			n.timer.Reset(n.patience)
		}
		socket.handler.Disconnected()
		return nil
	case p.Type == socketio.Event || p.Type == socketio.BinaryEvent:
		name, args, err := p.Event()
		if err != nil {
			return err
		}
		socket.handler.Event(n.ctx, Incoming{name, args, p.Attachments, socket, p.ID})
		return nil
	case p.Type == socketio.Ack || p.Type == socketio.BinaryAck:
		return nil // this server requests none
	default:
		return fmt.Errorf("%w: a client sends no packet %q now", ErrProtocol, byte(p.Type))
	}
}

// connect lets the client enter a namespace, or sends a refusal.
func (n *namespaces) connect(p socketio.Packet) error {
	socket := &Socket{session: n.session, namespace: p.Namespace}
	handler, refused := n.client.Connect(n.ctx, socket, p.Data)
	answer, told := socketio.Packet{Type: socketio.Connect, Namespace: p.Namespace}, any(map[string]string{"sid": rand.Text()})
	if refused != nil {
		answer.Type, told = socketio.ConnectError, Refusal{Message: refused.Error()}
		if r, ok := errors.AsType[*Refusal](refused); ok {
			told = r
		}
	}
	var err error
	if answer.Data, err = json.Marshal(told); err != nil {
		return fmt.Errorf("session: connect: %w", err)
	}
	n.session.Send(answer.Frames()...)
	if refused == nil {
		n.timer.Stop()
		socket.handler = handler
		n.sockets[p.Namespace] = socket
		handler.Connected()
	}
	return nil
}
