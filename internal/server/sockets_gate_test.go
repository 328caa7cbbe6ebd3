package server_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/server/socketio"
)

// inSocketGate plays with a server that needs tokens, and a network.
func inSocketGate(t *testing.T, play func(g gated, c connected)) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	inGate(t, looping, func(g gated) { onNetwork(g.local, func(c connected) { play(g, c) }) })
}

// withToken is what a client sends with its connect.
func withToken(token string) any { return map[string]string{"token": token} }

// rows: RON-55, RON-56
//
// A viewer receives the events of loops and cannot send them commands.
func TestAViewerIsRefusedOverASocketAsOverHTTP(t *testing.T) {
	inSocketGate(t, func(g gated, c connected) {
		s := c.open("polling", "", withToken(g.given["viewer"]))
		s.waitFor("connect")
		e := c.open("websocket", g.given["editor"], nil)
		e.waitFor("connect")
		start := `{"agentId": "slow", "message": "go"}`
		for event, data := range map[string]string{
			"loop:start": start, "loop:stop": `{"agentId": "slow"}`, "loop:approve": `{"agentId": "slow", "loopId": "review-1", "approved": true}`,
		} {
			if got := as[envelope](t, s.waitFor(s.emit(event, data))); got.Success || got.Error.Type != "POLICY_ERROR" {
				t.Errorf("%s: a viewer is answered %+v", event, got)
			}
			want := `{"agentId":"slow","sessionId":"","error":"Your role does not permit running or modifying workflows","type":"POLICY_ERROR"}`
			if got := string(s.waitFor("agent:error")); got != want {
				t.Errorf("%s: a viewer is told %s", event, got)
			}
		}
		if got := as[envelope](t, e.waitFor(e.emit("loop:start", start))); !got.Success {
			t.Errorf("an editor is answered %+v", got)
		}
		s.waitFor("agent:loop_iteration")
		if got := as[envelope](t, e.waitFor(e.emit("loop:stop", `{"agentId": "slow"}`))); !got.Success {
			t.Errorf("an editor is answered %+v", got)
		}
		for _, each := range e.soFar() {
			if each.name == "agent:error" {
				t.Errorf("an editor is told %s", each)
			}
		}
		audit := g.as(g.given["admin"], http.MethodGet, "/v1/audit", "").Body.String()
		for _, want := range []string{
			`"principal":{"name":"the-viewer","role":"viewer","proof":"token"},"operation":"POST /api/agents/slow/loop/start","remote":"127.0.0.1:4000","status":403`,
			`"principal":{"name":"the-editor","role":"editor","proof":"token"},"operation":"POST /api/agents/slow/loop/start","remote":"127.0.0.1:4000","status":202`,
		} {
			if !strings.Contains(audit, want) {
				t.Errorf("the audit does not say %s:\n%s", want, audit)
			}
		}
	})
}

// Who speaks is proven by the token of the connect, or by the header of the session.
func TestASocketIsWithWhomItsTokenNames(t *testing.T) {
	inSocketGate(t, func(g gated, c connected) {
		for _, way := range ways() {
			time.Sleep(time.Minute) // who is not known may not ask that much
			for name, s := range map[string]*socket{
				"no token":          c.open(way, "", nil),
				"an unknown one":    c.open(way, "", withToken("nobody-has-ever-had-this-token")),
				"no text":           c.open(way, "", map[string]int{"token": 1}),
				"a list":            c.open(way, "", map[string][]string{"token": {g.given["admin"]}}),
				"one in capitals":   c.open(way, "", map[string]string{"auth": g.given["admin"]}),
				"a token's own end": c.open(way, "", withToken(g.given["admin"][1:])),
			} {
				refused := as[struct {
					Message string
					Data    struct{ Status int }
				}](t, s.waitFor("connect_error"))
				if refused.Message == "" || refused.Data.Status != http.StatusUnauthorized {
					t.Errorf("%s, %s: it is told %+v", way, name, refused)
				}
				s.leave()
				for _, e := range s.soFar() {
					t.Errorf("%s, %s: it hears %s", way, name, e)
				}
			}
			for _, s := range []*socket{c.open(way, "", withToken(g.given["viewer"])), c.open(way, g.given["viewer"], nil)} {
				s.waitFor("connect")
				s.leave()
			}
		}
		s := &socket{t: c.t, client: c.client, header: http.Header{"Authorization": {"Bearer nobody"}}}
		if status, body := s.ask(http.MethodGet, socketURL+"polling", ""); status != http.StatusUnauthorized || !strings.Contains(body, "no-token") {
			t.Errorf("a session with an unknown token gets %d %s", status, body)
		}
	})
}

// A session is its client's, also for who knows its id and has a token of their own.
func TestSessionBelongsToItsPrincipal(t *testing.T) {
	inSocketGate(t, func(g gated, c connected) {
		s := c.open("polling", g.given["editor"], nil)
		s.waitFor("connect")
		for name, header := range map[string]http.Header{"another": {"Authorization": {"Bearer " + g.given["admin"]}}} {
			thief := &socket{t: c.t, client: c.client, header: header}
			if status, body := thief.ask(http.MethodPost, s.url, `42["loop:start",{"agentId":"slow","message":"x"}]`); status != http.StatusForbidden {
				t.Errorf("%s token gets %d %s", name, status, body)
			}
		}
		if got := as[envelope](t, s.waitFor(s.emit("loop:stop", `{"agentId": "slow"}`))); got.Error.Type != "NO_LOOP" {
			t.Errorf("its own client gets %+v", got)
		}
	})
}

func TestARevokedTokenEndsItsSockets(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			inSocketGate(t, func(g gated, c connected) {
				sockets := []*socket{c.open(way, "", withToken(g.given["viewer"])), c.open(way, g.given["viewer"], nil)}
				other := c.open(way, "", withToken(g.given["editor"]))
				for _, s := range append(sockets, other) {
					s.waitFor("connect")
				}
				time.Sleep(time.Minute)
				if err := tokens.Revoke(g.file, "the-viewer"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				for i, s := range sockets {
					select {
					case <-s.gone:
					default:
						t.Errorf("two seconds later socket %d is open", i)
					}
				}
				select {
				case <-other.gone:
					t.Error("another's socket has ended, too")
				default:
				}
				if got := as[envelope](t, other.waitFor(other.emit("loop:stop", `{"agentId": "slow"}`))); got.Error.Type != "NO_LOOP" {
					t.Errorf("another is answered %+v", got)
				}
			})
		})
	}
}

// What a page of another site asks, or what comes by another name, is refused before a
// session begins, over both transports; and so is a process that is not admitted.
func TestSessionsForAnotherHostAreRefused(t *testing.T) {
	inSockets(t, nil, func(c connected) {
		for name, header := range map[string]http.Header{
			"another origin": {"Origin": {"http://evil.example"}},
			"another host":   {"Host": {"evil.example"}},
			"another site":   {"Sec-Fetch-Site": {"cross-site"}},
		} {
			for _, transport := range []string{"polling", "websocket"} {
				r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, socketURL+transport, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header, r.Host = header, header.Get("Host")
				if transport == "websocket" {
					r.Header = maps.Clone(header)
					for _, h := range []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-Websocket-Version: 13", "Sec-Websocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="} {
						key, value, _ := strings.Cut(h, ": ")
						r.Header.Set(key, value)
					}
				}
				answer, err := c.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
					t.Errorf("%s, %s: status %d", transport, name, answer.StatusCode)
				}
			}
		}
	})
}

// The server drops a client that asks for too much or for nothing.
func TestWhatAClientMayHoldIsBounded(t *testing.T) {
	t.Run("sessions of who is not known", func(t *testing.T) {
		inSocketGate(t, func(g gated, c connected) {
			s := &socket{t: c.t, client: c.client, header: http.Header{}}
			for i := range 51 {
				if i == 50 {
					time.Sleep(time.Second) // the limit of requests is another one
				}
				status, body := s.ask(http.MethodGet, socketURL+"polling", "")
				if want := i < 50; (status == http.StatusOK) != want || !want && (status != http.StatusTooManyRequests || !strings.Contains(body, "50 open sessions")) {
					t.Fatalf("session %d gets %d %s", i+1, status, body)
				}
			}
			other := c.open("websocket", g.given["viewer"], nil)
			other.waitFor("connect")
			time.Sleep(time.Minute)
			if status, body := s.ask(http.MethodGet, socketURL+"polling", ""); status != http.StatusOK {
				t.Errorf("when those have been dropped that said nothing: %d %s", status, body)
			}
		})
	})
	t.Run("sessions of one", func(t *testing.T) {
		inSockets(t, nil, func(c connected) {
			s := &socket{t: c.t, client: c.client, header: http.Header{}}
			for i := range 1001 {
				status, body := s.ask(http.MethodGet, socketURL+"polling", "")
				if want := i < 1000; (status == http.StatusOK) != want || !want && (status != http.StatusTooManyRequests || !strings.Contains(body, "1000 open sessions")) {
					t.Fatalf("session %d gets %d %s", i+1, status, body)
				}
			}
		})
	})
	for name, what := range map[string]func(s *socket){
		"nothing at all":      func(*socket) {},
		"a message too large": func(s *socket) { s.raw(`42["x","` + strings.Repeat("x", 1_000_000) + `"]`) },
		"no packet":           func(s *socket) { s.raw("4x") },
		"no frame":            func(s *socket) { s.raw("x") },
		"too many at once": func(s *socket) {
			for range 2000 {
				s.raw(`42["loop:stop",{"agentId":"slow"}]`)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSocketGate(t, func(g gated, c connected) {
				good := c.open("websocket", g.given["editor"], nil)
				good.waitFor("connect")
				s := c.open("websocket", "", nil)
				s.waitFor("connect_error")
				if name != "nothing at all" {
					s = c.open("websocket", "", withToken(g.given["editor"]))
					s.waitFor("connect")
				}
				what(s)
				select {
				case <-s.gone:
				case <-time.After(time.Minute):
					t.Error("a minute later it is open")
				}
				if got := as[envelope](t, good.waitFor(good.emit("loop:stop", `{"agentId": "slow"}`))); got.Error.Type != "NO_LOOP" {
					t.Errorf("another client gets %+v", got)
				}
			})
		})
	}
}

// raw sends a text, if it can.
func (s *socket) raw(text string) {
	_ = s.conn.Write(s.t.Context(), websocket.MessageText, []byte(text))
}

// A client that does not read is dropped, and neither a loop nor who else hears of it
// waits for it.
func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	inSockets(t, nil, func(c connected) {
		deaf := &socket{t: c.t, client: c.client, header: http.Header{}}
		deaf.dial(socketURL + "websocket")
		if f := deaf.read(); f.Type != socketio.FrameOpen {
			t.Fatalf("%+v", f)
		}
		deaf.send(socketio.Packet{Type: socketio.Connect, Namespace: "/"})
		if f := deaf.read(); f.Type != socketio.FrameMessage {
			t.Fatalf("%+v", f)
		}
		s := c.joined("websocket")
		s.waitFor(s.emit("loop:start", `{"agentId": "slow", "message": "go"}`))
		for range 20 { // each is answered with as much
			deaf.raw(`42["loop:stop",{"agentId":"` + strings.Repeat("x", 100_000) + `"}]`)
		}
		begun := time.Now()
		s.waitFor("agent:loop_iteration")
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the iteration took %s", took)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		var err error
		for err == nil {
			_, _, err = deaf.conn.Read(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("it is not dropped")
		}
	})
}
