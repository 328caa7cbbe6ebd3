package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/memnet"
	"github.com/pawlrun/pawl/internal/server/socketio"
	"github.com/pawlrun/pawl/journal"
)

// connected is a server with a network.
type connected struct {
	local
	client *http.Client
}

// onNetwork has a server answer on a network until play returns.
func onNetwork(l local, play func(c connected)) {
	n := memnet.New("127.0.0.1:3001", "127.0.0.1:4000")
	transport := &http.Transport{DialContext: n.Dial}
	web := &http.Server{Handler: conforming(l.t, l.Server), ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(n) }()
	defer func() {
		if err := l.Close(); err != nil {
			l.t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = web.Close()
		<-served
	}()
	play(connected{l, &http.Client{Transport: transport}})
}

// inSockets plays with a server of looping agents and others, and a network.
func inSockets(t *testing.T, others map[string]string, play func(c connected)) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	files := maps.Clone(looping)
	maps.Copy(files, others)
	inBubble(t, files, func(l local, _ string) { onNetwork(l, play) })
}

// received is an event that a client received, or an acknowledgement: "ack" and its number.
type received struct {
	name string
	data json.RawMessage
}

func (h received) String() string { return h.name + " " + string(h.data) }

// socket is a client of Socket.IO.
type socket struct {
	t      *testing.T
	client *http.Client
	header http.Header
	url    string
	// conn is its WebSocket, nil while it polls.
	conn    *websocket.Conn
	decoder socketio.Decoder
	in      chan received
	// kept are events that no test has read.
	kept []received
	// gone is closed when the server has ended the session.
	gone chan struct{}
	acks int
}

const socketURL = "http://127.0.0.1:3001/socket.io/?EIO=4&transport="

// ways are those in which a client may speak.
func ways() []string { return []string{"polling", "websocket", "upgrade"} }

// open begins a session, with a header where there is one, and asks for the main
// namespace.
func (c connected) open(way, token string, auth any) *socket {
	c.t.Helper()
	s := &socket{t: c.t, client: c.client, header: http.Header{}, in: make(chan received, 1000), gone: make(chan struct{})}
	if token != "" {
		s.header.Set("Authorization", "Bearer "+token)
	}
	var first socketio.Frame
	if way == "websocket" {
		s.dial(socketURL + "websocket")
		first = s.read()
	} else {
		status, body := s.ask(http.MethodGet, socketURL+"polling", "")
		if status != http.StatusOK {
			c.t.Fatalf("a session is refused with %d: %s", status, body)
		}
		first = socketio.Frame{Type: socketio.FrameType(body[0]), Data: []byte(body[1:])}
	}
	var hand struct{ SID string }
	if err := json.Unmarshal(first.Data, &hand); err != nil || first.Type != socketio.FrameOpen {
		c.t.Fatalf("a session begins with %c%s", first.Type, first.Data)
	}
	s.url = socketURL + "polling&sid=" + hand.SID
	if way == "upgrade" {
		s.dial(strings.Replace(s.url, "=polling", "=websocket", 1))
		s.write(socketio.Frame{Type: socketio.FramePing, Data: []byte("probe")})
		if f := s.read(); f.Type != socketio.FramePong || string(f.Data) != "probe" {
			c.t.Fatalf("a probe is answered with %+v", f)
		}
		s.write(socketio.Frame{Type: socketio.FrameUpgrade})
	}
	go s.listen()
	data, err := json.Marshal(auth)
	if err != nil {
		c.t.Fatal(err)
	}
	p := socketio.Packet{Type: socketio.Connect, Namespace: "/"}
	if auth != nil {
		p.Data = data
	}
	s.send(p)
	return s
}

// joined opens a session, and is connected.
func (c connected) joined(way string) *socket {
	c.t.Helper()
	s := c.open(way, "", nil)
	s.waitFor("connect")
	return s
}

func (s *socket) dial(url string) {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), url, &websocket.DialOptions{HTTPClient: s.client, HTTPHeader: s.header})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	s.conn = conn
}

func (s *socket) ask(method, url, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = s.header.Clone()
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	return answer.StatusCode, string(text)
}

func (s *socket) read() (f socketio.Frame) {
	s.t.Helper()
	_, data, err := s.conn.Read(s.t.Context())
	if err == nil {
		f, err = socketio.ParseFrame(data)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *socket) write(frames ...socketio.Frame) {
	s.t.Helper()
	if s.conn == nil {
		if status, body := s.ask(http.MethodPost, s.url, string(socketio.Payload(frames))); status != http.StatusOK || body != "ok" {
			s.t.Errorf("what is sent is answered with %d %s", status, body)
		}
		return
	}
	for _, f := range frames {
		if err := s.conn.Write(s.t.Context(), websocket.MessageText, f.Text()); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *socket) send(p socketio.Packet) {
	s.t.Helper()
	s.write(p.Frames()...)
}

// listen reads frames until the session ends.
func (s *socket) listen() {
	defer close(s.gone)
	for {
		var frames []socketio.Frame
		if s.conn != nil {
			_, data, err := s.conn.Read(context.WithoutCancel(s.t.Context()))
			if err != nil {
				return
			}
			f, _ := socketio.ParseFrame(data)
			frames = append(frames, f)
		} else {
			status, body := s.ask(http.MethodGet, s.url, "")
			if status != http.StatusOK {
				return
			}
			frames, _ = socketio.ParsePayload([]byte(body))
		}
		for _, f := range frames {
			s.receive(f)
		}
	}
}

func (s *socket) receive(f socketio.Frame) {
	switch f.Type {
	case socketio.FramePing:
		s.write(socketio.Frame{Type: socketio.FramePong})
	case socketio.FrameMessage:
		p, _, err := s.decoder.Add(f)
		if err != nil {
			s.t.Error(err)
			return
		}
		switch p.Type {
		case socketio.Event:
			name, args, _ := p.Event()
			s.in <- received{name, args[0]}
		case socketio.Ack:
			s.in <- received{fmt.Sprint("ack ", *p.ID), bytes.TrimSuffix(bytes.TrimPrefix(p.Data, []byte("[")), []byte("]"))}
		case socketio.Connect:
			s.in <- received{"connect", p.Data}
		case socketio.ConnectError:
			s.in <- received{"connect_error", p.Data}
		}
	}
}

// emit sends an event, and asks for its acknowledgement, whose name it returns.
func (s *socket) emit(name, data string) (ack string) {
	s.t.Helper()
	s.acks++
	n := uint64(s.acks)
	s.send(socketio.Packet{Type: socketio.Event, Namespace: "/", ID: &n, Data: json.RawMessage(`["` + name + `",` + data + `]`)})
	return fmt.Sprint("ack ", n)
}

// waitFor waits for an event of a name, and keeps those that come before it.
func (s *socket) waitFor(name string) json.RawMessage {
	s.t.Helper()
	for i := 0; ; i++ {
		if i == len(s.kept) {
			select {
			case h := <-s.in:
				s.kept = append(s.kept, h)
			case <-s.gone:
				s.t.Fatalf("the session ended before %s, after %s", name, s.kept)
			case <-time.After(10 * time.Minute):
				s.t.Fatalf("there is no %s, but %s", name, s.kept)
			}
		}
		if h := s.kept[i]; h.name == name {
			s.kept = slices.Delete(s.kept, i, i+1)
			return h.data
		}
	}
}

// soFar returns the events that were received and not yet checked.
func (s *socket) soFar() (all []received) {
	synctest.Wait()
	for {
		select {
		case h := <-s.in:
			s.kept = append(s.kept, h)
		default:
			all, s.kept = s.kept, nil
			return all
		}
	}
}

// leave ends the session.
func (s *socket) leave() {
	s.t.Helper()
	s.write(socketio.Frame{Type: socketio.FrameClose})
	<-s.gone
}

func as[T any](t *testing.T, data json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

// rows: RON-33, RON-47, RON-49, RON-50
func TestALoopIsStartedWatchedAndDecidedOverASocket(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			inSockets(t, nil, func(c connected) {
				s := c.joined(way)
				started := as[envelope](t, s.waitFor(s.emit("loop:start", `{"agentId": "reviewed", "message": "Make the failing test suite pass."}`)))
				if !started.Success || started.Data.Run == "" {
					t.Fatalf("the start is answered with %+v", started)
				}
				type iteration struct {
					AgentID                  string
					Iteration, MaxIterations int
				}
				for n := 1; n <= 2; n++ {
					if got, want := as[iteration](t, s.waitFor("agent:loop_iteration")), (iteration{"reviewed", n, 4}); got != want {
						t.Errorf("iteration %d is %+v", n, got)
					}
					ack := s.emit("loop:approve", fmt.Sprintf(`{"agentId": "reviewed", "loopId": "review-%d", "approved": %t}`, n, n == 2))
					if got := as[envelope](t, s.waitFor(ack)); !got.Success {
						t.Errorf("decision %d is answered with %+v", n, got)
					}
				}
				for id := ""; !strings.HasPrefix(id, "loop-completed-"); {
					id = as[struct{ ID string }](t, s.waitFor("notification")).ID
				}
				path := "/v1/runs/" + started.Data.Run
				if run := c.stands(path); run.State != journal.Ended {
					t.Errorf("the run is %s", run.State)
				}
				var kinds []event.ApprovalKind
				for _, r := range happened[event.ReviewResolved](c.local, path) {
					kinds = append(kinds, r.Kind)
				}
				if want := []event.ApprovalKind{event.ApprovalRejected, event.ApprovalApproved}; !cmp.Equal(kinds, want) {
					t.Errorf("decided was %v", kinds)
				}
				s.leave()
			})
		})
	}
}

// rows: RON-47
func TestEachLoopWorksOnTheMessageOfItsEvent(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			inSockets(t, nil, func(c connected) {
				s := c.joined(way)
				for _, message := range []string{"Make the failing test suite pass.", "Now write the changelog."} {
					got := as[envelope](t, s.waitFor(s.emit("loop:start", `{"agentId": "matches", "message": "`+message+`"}`)))
					c.hasTask(got.Data.Run, message)
				}
				s.leave()
			})
		})
	}
}

func TestAClosingServerTakesNoSessions(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		l.refuses(http.StatusServiceUnavailable, "unavailable", http.MethodGet, "/socket.io/?EIO=4&transport=polling", "")
	})
}
