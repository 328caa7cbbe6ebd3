package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pawlrun/pawl/internal/memnet"
	"github.com/pawlrun/pawl/internal/server/socketio"
	"github.com/pawlrun/pawl/internal/server/socketio/session"
)

// endings are why sessions have ended, by their ids.
type endings struct{ whys sync.Map }

func (e *endings) of(id string) error {
	why, _ := e.whys.Load(id)
	err, _ := why.(error)
	return err
}

// echo sends back what it receives.
type echo struct {
	session *session.Session
	ended   *endings
}

func (e echo) Receive(f socketio.Frame) error { e.session.Send(f); return nil }
func (e echo) Closed(why error)               { e.ended.whys.Store(e.session.ID(), why) }

// stage is a server on a network in memory.
type stage struct {
	t      *testing.T
	server *session.Server
	client *http.Client
	ended  *endings
}

const (
	interval = 25 * time.Second
	timeout  = 20 * time.Second
	writing  = 30 * time.Second
)

// on plays with a server whose sessions receive as open says, or echo.
func on(t *testing.T, open func(*session.Session) session.Receiver, play func(s stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := stage{t: t, ended: &endings{}}
		if open == nil {
			open = func(each *session.Session) session.Receiver { return echo{each, s.ended} }
		}
		s.server = session.New(session.Options{
			PingInterval: interval, PingTimeout: timeout, MaxPayload: 1000, MaxQueue: 10_000, MaxFrames: 100, WriteTimeout: writing,
			Open: func(each *session.Session, r *http.Request) (session.Receiver, error) {
				if r.URL.Query().Has("refused") {
					return nil, errors.New("refused")
				}
				return open(each), nil
			},
			Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			},
		})
		n := memnet.New("127.0.0.1:3000", "127.0.0.1:4000")
		transport := &http.Transport{DialContext: n.Dial}
		s.client = &http.Client{Transport: transport}
		web := &http.Server{Handler: s.server}
		served := make(chan error, 1)
		go func() { served <- web.Serve(n) }()
		defer func() {
			s.server.Close()
			transport.CloseIdleConnections()
			_ = web.Close()
			<-served
			time.Sleep(time.Second) // in which connections linger that were closed early
			if left := s.server.Len(); left != 0 {
				t.Errorf("%d sessions are left", left)
			}
		}()
		play(s)
	})
}

const base = "http://127.0.0.1:3000/engine.io/?EIO=4&transport="

func (s stage) ask(method, query, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, strings.TrimSuffix(base, "EIO=4&transport=")+query, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// must makes a request that must get an answer.
func (s stage) must(method, query, body string, status int, want string) {
	s.t.Helper()
	if got, text := s.ask(method, query, body); got != status || want != "" && text != want {
		s.t.Errorf("%s %s %q: %d %q, want %d %q", method, query, body, got, text, status, want)
	}
}

// polling begins a session, and gives its id and the query of its requests.
func (s stage) polling() (id, query string) {
	s.t.Helper()
	_, text := s.ask(http.MethodGet, "EIO=4&transport=polling", "")
	var hand struct{ SID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "0")), &hand); err != nil || hand.SID == "" {
		s.t.Fatalf("%v: %s", err, text)
	}
	return hand.SID, "EIO=4&transport=polling&sid=" + hand.SID
}

// dial opens a WebSocket.
func (s stage) dial(query string) *websocket.Conn {
	s.t.Helper()
	c, _, err := websocket.Dial(s.t.Context(), base+"websocket"+query, &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func (s stage) write(c *websocket.Conn, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if err := c.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
			s.t.Error(err)
		}
	}
}

// read is the next message, or why there is none.
func (s stage) read(c *websocket.Conn) string {
	s.t.Helper()
	_, data, err := c.Read(s.t.Context())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// closed reports whether a connection is closed by the server, whatever comes before.
func (s stage) closed(c *websocket.Conn) bool {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return !errors.Is(err, context.DeadlineExceeded)
		}
	}
}

func TestAHandshakeSaysWhatTheServerDoes(t *testing.T) {
	on(t, nil, func(s stage) {
		for _, c := range []struct{ transport, upgrades string }{{"polling", `["websocket"]`}, {"websocket", `[]`}} {
			text := ""
			if c.transport == "polling" {
				_, text = s.ask(http.MethodGet, "EIO=4&transport=polling", "")
			} else {
				text = s.read(s.dial(""))
			}
			_, after, _ := strings.Cut(text, `","upgrades":`)
			if want := c.upgrades + `,"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000}`; !strings.HasPrefix(text, `0{"sid":"`) || after != want {
				t.Errorf("%s: %s", c.transport, text)
			}
		}
	})
}

func TestARequestThatIsNotOfTheProtocolIsRefused(t *testing.T) {
	on(t, nil, func(s stage) {
		_, query := s.polling()
		for _, c := range []struct{ method, query, want string }{
			{http.MethodGet, "transport=polling", `{"code":5,"message":"Unsupported protocol version"}`},
			{http.MethodGet, "EIO=3&transport=polling", `{"code":5,"message":"Unsupported protocol version"}`},
			{http.MethodGet, "EIO=4", `{"code":0,"message":"Transport unknown"}`},
			{http.MethodGet, "EIO=4&transport=abc", `{"code":0,"message":"Transport unknown"}`},
			{http.MethodPost, "EIO=4&transport=polling", `{"code":2,"message":"Bad handshake method"}`},
			{http.MethodPut, "EIO=4&transport=polling", `{"code":2,"message":"Bad handshake method"}`},
			{http.MethodGet, "EIO=4&transport=polling&sid=x", `{"code":1,"message":"Session ID unknown"}`},
			{http.MethodGet, "EIO=4&transport=websocket", `{"code":3,"message":"Bad request"}`},
			{http.MethodDelete, query, `{"code":3,"message":"Bad request"}`},
		} {
			s.must(c.method, c.query, "", http.StatusBadRequest, c.want)
		}
		s.must(http.MethodGet, "EIO=4&transport=polling&refused=", "", http.StatusServiceUnavailable, "refused\n")
	})
}

func TestMessagesGoThereAndBack(t *testing.T) {
	on(t, nil, func(s stage) {
		_, query := s.polling()
		for _, body := range []string{"4hello", "4a\x1e4b\x1e4c", "4hello\x1ebAQIDBA=="} {
			s.must(http.MethodPost, query, body, http.StatusOK, "ok")
			s.must(http.MethodGet, query, "", http.StatusOK, body)
		}
		waits := make(chan string)
		go func() {
			_, text := s.ask(http.MethodGet, query, "")
			waits <- text
		}()
		synctest.Wait()
		s.must(http.MethodPost, query, "4later", http.StatusOK, "ok")
		if got := <-waits; got != "4later" {
			t.Errorf("who waits is answered %q", got)
		}
		c := s.dial("")
		s.read(c)
		s.write(c, "4hello")
		if got := s.read(c); got != "4hello" {
			t.Errorf("the answer is %q", got)
		}
		if err := c.Write(s.t.Context(), websocket.MessageBinary, []byte{1, 2, 3, 4}); err != nil {
			t.Error(err)
		}
		if got := s.read(c); got != "\x01\x02\x03\x04" {
			t.Errorf("the answer is %q", got)
		}
	})
}

// What a client sends that is wrong ends its session, and says why.
func TestAClientThatDoesNotKeepToTheProtocolIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		why    error
	}{
		"no frame":        {"abc", http.StatusBadRequest, socketio.ErrInvalid},
		"nothing":         {"", http.StatusBadRequest, socketio.ErrInvalid},
		"a server's ping": {"2", http.StatusBadRequest, session.ErrProtocol},
		"an upgrade":      {"5", http.StatusBadRequest, session.ErrProtocol},
		"too much":        {"4" + strings.Repeat("x", 1000), http.StatusRequestEntityTooLarge, nil},
		"its end":         {"1", http.StatusOK, session.ErrLeft},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, nil, func(s stage) {
				id, query := s.polling()
				s.must(http.MethodPost, query, c.body, c.status, "")
				s.must(http.MethodGet, query, "", http.StatusBadRequest, `{"code":1,"message":"Session ID unknown"}`)
				if s.ended.of(id) == nil || c.why != nil && !errors.Is(s.ended.of(id), c.why) {
					t.Errorf("polling, it ended with %v", s.ended.of(id))
				}
				if c.body == "" {
					return
				}
				conn := s.dial("")
				s.read(conn)
				s.write(conn, c.body)
				if !s.closed(conn) {
					t.Error("the WebSocket is open")
				}
			})
		})
	}
}

// A client makes one request of a kind at a time.
func TestTwoRequestsAtOnceEndASession(t *testing.T) {
	on(t, nil, func(s stage) {
		_, query := s.polling()
		first := make(chan string)
		go func() {
			_, text := s.ask(http.MethodGet, query, "")
			first <- text
		}()
		synctest.Wait()
		s.must(http.MethodGet, query, "", http.StatusBadRequest, "")
		if got := <-first; got != "1" {
			t.Errorf("the first is answered %q", got)
		}
		s.must(http.MethodGet, query, "", http.StatusBadRequest, `{"code":1,"message":"Session ID unknown"}`)
	})
}

func TestAClientIsAskedWhetherItIsThere(t *testing.T) {
	on(t, nil, func(s stage) {
		id, query := s.polling()
		conn := s.dial("")
		s.read(conn)
		for range 3 {
			begun := time.Now()
			s.must(http.MethodGet, query, "", http.StatusOK, "2")
			if got, took := s.read(conn), time.Since(begun); got != "2" || took != interval {
				t.Errorf("after %s comes %q", took, got)
			}
			s.must(http.MethodPost, query, "3", http.StatusOK, "ok")
			s.write(conn, "3")
		}
		time.Sleep(interval + timeout + time.Millisecond)
		s.must(http.MethodGet, query, "", http.StatusBadRequest, "")
		if !errors.Is(s.ended.of(id), session.ErrTimeout) {
			t.Errorf("it ended with %v", s.ended.of(id))
		}
		if !s.closed(conn) {
			t.Error("the WebSocket is open")
		}
	})
}

func TestASessionMovesToAWebSocket(t *testing.T) {
	on(t, nil, func(s stage) {
		id, query := s.polling()
		waits := make(chan string)
		go func() {
			_, text := s.ask(http.MethodGet, query, "")
			waits <- text
		}()
		synctest.Wait()
		conn := s.dial("&sid=" + id)
		s.write(conn, "2probe")
		if got := s.read(conn); got != "3probe" {
			t.Errorf("the probe is answered %q", got)
		}
		if got := <-waits; got != "6" {
			t.Errorf("who waits is answered %q", got)
		}
		s.must(http.MethodGet, query, "", http.StatusOK, "6")
		s.must(http.MethodPost, query, "4before", http.StatusOK, "ok")
		if second := s.dial("&sid=" + id); !s.closed(second) {
			t.Error("a second WebSocket is open")
		}
		s.write(conn, "5")
		if got := s.read(conn); got != "4before" {
			t.Errorf("what waited is %q", got)
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			s.must(method, query, "4x", http.StatusBadRequest, `{"code":3,"message":"Bad request"}`)
		}
		if second := s.dial("&sid=" + id); !s.closed(second) {
			t.Error("a second WebSocket is open")
		}
		s.write(conn, "4hello")
		if got := s.read(conn); got != "4hello" {
			t.Errorf("the answer is %q", got)
		}
	})
}

// An upgrade that does not come about leaves the session as it was.
func TestAnUpgradeThatFailsIsNone(t *testing.T) {
	for name, texts := range map[string][]string{"another word": {"2prob"}, "no upgrade": {"2probe", "4x"}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			on(t, nil, func(s stage) {
				id, query := s.polling()
				conn := s.dial("&sid=" + id)
				if len(texts) > 0 {
					s.write(conn, texts[0])
				}
				if len(texts) > 1 {
					s.read(conn)
					s.write(conn, texts[1])
				}
				if len(texts) == 0 {
					s.must(http.MethodGet, query, "", http.StatusOK, "2")
					s.must(http.MethodPost, query, "3", http.StatusOK, "ok")
					time.Sleep(writing - interval)
				}
				if !s.closed(conn) {
					t.Error("the WebSocket is open")
				}
				s.must(http.MethodPost, query, "4x", http.StatusOK, "ok")
				s.must(http.MethodGet, query, "", http.StatusOK, "4x")
			})
		})
	}
}

// What a client does not fetch is bounded, and so is the time that it may take.
func TestAClientThatReadsNothingIsDropped(t *testing.T) {
	on(t, nil, func(s stage) {
		id, query := s.polling()
		large := "4" + strings.Repeat("x", 990)
		for range 12 {
			s.must(http.MethodPost, query, large, http.StatusOK, "ok")
		}
		synctest.Wait()
		s.must(http.MethodGet, query, "", http.StatusBadRequest, `{"code":1,"message":"Session ID unknown"}`)
		if why := s.ended.of(id); !errors.Is(why, session.ErrSlow) {
			t.Errorf("polling, it ended with %v", why)
		}
		conn := s.dial("")
		s.read(conn)
		s.write(conn, large)
		time.Sleep(writing - time.Second)
		if got := s.server.Len(); got != 1 {
			t.Errorf("before its time is over there are %d sessions", got)
		}
		time.Sleep(2 * time.Second)
		if got := s.server.Len(); got != 0 {
			t.Errorf("when its time is over there are %d sessions", got)
		}
	})
}

// calm is a client of a namespace that takes its time for each event.
type calm struct {
	socket *session.Socket
	left   *int
}

func (c calm) Connect(_ context.Context, socket *session.Socket, auth json.RawMessage) (session.Handler, error) {
	c.socket = socket
	switch {
	case socket.Namespace() != "/" && socket.Namespace() != "/custom":
		return nil, session.InvalidNamespace()
	case string(auth) == `{"go":"away"}`:
		return nil, &session.Refusal{Message: "no", Data: 1}
	}
	return c, nil
}

func (c calm) Connected()    { _ = c.socket.Emit("hello", c.socket.Namespace()) }
func (c calm) Disconnected() { *c.left++ }
func (c calm) Closed(error)  { *c.left += 10 }

func (c calm) Event(ctx context.Context, e session.Incoming) {
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	args := []any{e.Name}
	for _, a := range e.Args {
		args = append(args, a)
	}
	_ = e.Ack(e.Attachments, args...)
}

// inNamespaces plays with a server of namespaces. left counts who has left one, and by
// tens who has gone.
func inNamespaces(t *testing.T, play func(s stage, left *int)) {
	left := 0
	on(t, func(s *session.Session) session.Receiver {
		return session.Namespaces(s, calm{left: &left}, 10*time.Second)
	}, func(s stage) {
		play(s, &left)
		s.server.Close()
		synctest.Wait()
	})
}

func TestAClientConnectsToNamespacesAndLeavesThem(t *testing.T) {
	inNamespaces(t, func(s stage, left *int) {
		conn := s.dial("")
		s.read(conn)
		for _, c := range []struct{ say, want string }{
			{"40/random", `44/random,{"message":"Invalid namespace"}`},
			{`40{"go":"away"}`, `44{"message":"no","data":1}`},
			{"40", `42["hello","/"]`},
			{`40/custom,{"token":"abc"}`, `42/custom,["hello","/custom"]`},
		} {
			s.write(conn, c.say)
			got := s.read(conn)
			if prefix := "40" + strings.TrimPrefix(c.want[:strings.IndexAny(c.want, "[{")], "42"); strings.HasPrefix(c.want, "42") {
				if !strings.HasPrefix(got, prefix+`{"sid":"`) {
					t.Errorf("%s is answered %s", c.say, got)
				}
				got = s.read(conn)
			}
			if got != c.want {
				t.Errorf("%s is answered %s, want %s", c.say, got, c.want)
			}
		}
		s.write(conn, "41/custom,")
		synctest.Wait()
		if *left != 1 {
			t.Errorf("%d have left", *left)
		}
		s.write(conn, `421["a",{"b":[1]}]`, `452-2["b",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
		for _, each := range [][]byte{{1}, {2}} {
			if err := conn.Write(s.t.Context(), websocket.MessageBinary, each); err != nil {
				t.Fatal(err)
			}
		}
		var heard []string
		for len(heard) < 4 {
			switch got := s.read(conn); got {
			case "2":
				s.write(conn, "3") // pongs are read while an event is handled
			default:
				heard = append(heard, got)
			}
		}
		want := []string{`431["a",{"b":[1]}]`, `462-2["b",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, "\x01", "\x02"}
		if strings.Join(heard, "|") != strings.Join(want, "|") {
			t.Errorf("heard is %q", heard)
		}
		if err := conn.CloseNow(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if *left != 12 {
			t.Errorf("when all have gone, %d have left", *left)
		}
	})
}

func TestAClientOfNoNamespaceIsDropped(t *testing.T) {
	for name, texts := range map[string][]string{
		"who says nothing": nil, "who is refused": {"40/random"}, "who has left": {"40", "41"}, "who says an event": {`42["a"]`}, "who acknowledges": {`431["a"]`},
		"who says no packet": {"4abc"}, "who is there twice": {"40", "40"}, "who refuses": {"40", `44{"message":"no"}`}, "who says no event": {"40", "42{}"},
		"who numbers badly": {"40", `42abc["a"]`}, "who says too much": append([]string{"40"}, strings.Split(strings.Repeat(`42["a"] `, 300), " ")[:300]...),
	} {
		t.Run(name, func(t *testing.T) {
			inNamespaces(t, func(s stage, left *int) {
				conn := s.dial("")
				begun := time.Now()
				go func() {
					for _, text := range texts {
						_ = conn.Write(s.t.Context(), websocket.MessageText, []byte(text))
					}
				}()
				for {
					ctx, cancel := context.WithTimeout(s.t.Context(), interval)
					_, _, err := conn.Read(ctx)
					late := ctx.Err() != nil
					cancel()
					if late {
						t.Error("it is connected")
						break
					}
					if err != nil {
						break
					}
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
				synctest.Wait()
				if *left < 10 {
					t.Errorf("nobody is told that it has gone")
				}
			})
		})
	}
}

// A server that closes tells all who are there.
func TestAServerThatClosesTellsItsClients(t *testing.T) {
	on(t, nil, func(s stage) {
		_, query := s.polling()
		waits := make(chan string)
		go func() {
			_, text := s.ask(http.MethodGet, query, "")
			waits <- text
		}()
		conn, gone := s.dial(""), make(chan string)
		s.read(conn)
		go func() { gone <- s.read(conn) }()
		synctest.Wait()
		s.server.Close()
		if got := <-waits; got != "1" {
			t.Errorf("who polls is told %q", got)
		}
		if got := <-gone; !strings.Contains(got, "StatusNormalClosure") {
			t.Errorf("who has a WebSocket is told %q", got)
		}
		s.must(http.MethodGet, "EIO=4&transport=polling", "", http.StatusServiceUnavailable, "")
	})
}
