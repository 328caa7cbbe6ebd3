package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// lasting is a loop that takes ten minutes an iteration.
var lasting = map[string]string{
	"lasts.yaml":        "identity: {name: lasts}\nmodel_policy: {primary: {model: scripted/lasts.script.yaml}}\nloop: {loopEnabled: true, maxIterations: 5}\n",
	"lasts.script.yaml": "- {text: ten minutes have passed, delay: 10m}\n",
}

// byDefault is what a server does whose owner has set nothing.
var byDefault = server.OwnerGone{Sockets: event.OwnerGoneTeardown, Grace: time.Minute}

// inOwners plays with a server that does something about the runs of who is gone.
func inOwners(t *testing.T, gone server.OwnerGone, play func(c connected)) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	files := maps.Clone(looping)
	maps.Copy(files, lasting)
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServerWith(t, memory.New(nil), files, func(o *server.Options) { o.OwnerGone = gone })
		onNetwork(local{s, t}, play)
	})
}

// start starts the loop of an agent over a socket, and gives the path of its run.
func (s *socket) start(agent string) string {
	s.t.Helper()
	got := as[envelope](s.t, s.waitFor(s.emit("loop:start", `{"agentId": "`+agent+`", "message": "go"}`)))
	if !got.Success {
		s.t.Fatalf("the start is answered with %+v", got)
	}
	return "/v1/runs/" + got.Data.Run
}

// is says how a run stands: its state, and why.
func (l local) is(path string) string {
	row := l.stands(path)
	return fmt.Sprint(row.State, " ", row.Detail)
}

const (
	goes      = "running "
	cancelled = "ended cancelled"
)

// rows: RON-70, RON-71
func TestTheLoopOfWhoIsGoneIsTornDownAfterTheGraceWindow(t *testing.T) {
	for _, way := range ways() {
		for _, agent := range []string{"lasts", "reviewed"} {
			t.Run(way+"/"+agent, func(t *testing.T) {
				inOwners(t, byDefault, func(c connected) {
					s := c.joined(way)
					path := s.start(agent)
					time.Sleep(5 * time.Minute)
					before := c.is(path)
					s.leave()
					time.Sleep(59 * time.Second)
					if got := c.is(path); got != before || strings.HasPrefix(got, "ended") {
						t.Errorf("a second before the end of the window it is %s, and was %s", got, before)
					}
					time.Sleep(2 * time.Second)
					if got := c.is(path); got != cancelled {
						t.Errorf("a second after it, it is %s", got)
					}
					for _, r := range happened[event.ReviewResolved](c.local, path) {
						if r.Kind != event.ApprovalCancelled {
							t.Errorf("the review is %s", r.Kind)
						}
					}
					asked := happened[event.CancelRequested](c.local, path)
					if len(asked) != 1 || asked[0].Reason != "its owner somebody has been gone for 1m0s" {
						t.Errorf("it was cancelled by %+v", asked)
					}
				})
			})
		}
	}
}

// rows: RON-72, RON-73
func TestALoopLivesWhileItsOwnerIsConnectedOrComesBack(t *testing.T) {
	inOwners(t, byDefault, func(c connected) {
		first, second := c.joined("websocket"), c.joined("polling")
		path := first.start("lasts")
		first.leave()
		time.Sleep(10 * time.Minute)
		if got := c.is(path); got != goes {
			t.Errorf("while there is another socket it is %s", got)
		}
		second.leave()
		for range 3 {
			time.Sleep(50 * time.Second)
			again := c.joined("upgrade")
			time.Sleep(5 * time.Minute)
			if got := c.is(path); got != goes {
				t.Errorf("when its owner has come back it is %s", got)
			}
			again.leave()
		}
		out := &reader{ResponseRecorder: httptest.NewRecorder()}
		time.Sleep(30 * time.Second)
		go c.serve(out, http.MethodGet, path+"/events", "", "text/event-stream")
		time.Sleep(5 * time.Minute)
		if got := c.is(path); got != goes {
			t.Errorf("while its owner reads its events it is %s", got)
		}
		c.loop(http.StatusOK, "lasts", "stop", "")
	})
}

// rows: RON-71..73
//
// A loop is torn down when its own owner disconnects for good, even if others are
// connected, and not if the owner reconnects in time.
func TestTheLoopOfWhoLeavesForGoodIsTornDown(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		given := map[string]string{}
		for _, name := range []string{"ann", "bob"} {
			token, err := tokens.Create(file, tokens.Entry{Name: name, Role: access.Editor})
			if err != nil {
				t.Fatal(err)
			}
			given[name] = token
		}
		s, _ := newServerWith(t, memory.New(nil), lasting, func(o *server.Options) { o.OwnerGone, o.Tokens, o.NoAuth = byDefault, file, false })
		onNetwork(local{s, t}, func(c connected) {
			joined := func(name string) *socket {
				s := c.open("websocket", given[name], nil)
				s.waitFor("connect")
				return s
			}
			bob := joined("bob")
			defer bob.leave()
			loopOf := func() (active bool, status string) {
				asker := &socket{t: t, client: c.client, header: http.Header{"Authorization": {"Bearer " + given["bob"]}}}
				_, body := asker.ask(http.MethodGet, "http://127.0.0.1:3001/api/agents/lasts/loop/status", "")
				d := as[envelope](t, []byte(body)).Data
				return d.Active, d.State.Status
			}
			ann := joined("ann")
			ann.start("lasts")
			for i := range 3 {
				ann.leave()
				time.Sleep(50 * time.Second)
				ann = joined("ann")
				time.Sleep(2 * time.Minute)
				if active, status := loopOf(); !active {
					t.Errorf("after return %d it is %s", i+1, status)
				}
			}
			ann.leave()
			time.Sleep(61 * time.Second)
			if active, status := loopOf(); active {
				t.Errorf("when its owner has left for good it is %s", status)
			}
		})
	})
}

// rows: RON-72, RON-73
//
// The window begins anew with each leave: neither that of a leave before a short return,
// nor that of a leave before there was a loop, ends the loop early.
func TestTheWindowBeginsWithTheLastLeave(t *testing.T) {
	inOwners(t, byDefault, func(c connected) {
		s := c.joined("websocket")
		path := s.start("lasts")
		for range 3 {
			s.leave()
			time.Sleep(40 * time.Second)
			s = c.joined("websocket")
		}
		s.leave()
		time.Sleep(59 * time.Second)
		if got := c.is(path); got != goes {
			t.Errorf("a second before the end of the last window it is %s", got)
		}
		time.Sleep(2 * time.Second)
		if got := c.is(path); got != cancelled {
			t.Errorf("a second after it, it is %s", got)
		}
	})
	everywhere := server.OwnerGone{Sockets: event.OwnerGoneTeardown, HTTP: event.OwnerGoneTeardown, Grace: time.Minute}
	inOwners(t, everywhere, func(c connected) {
		c.joined("websocket").leave()
		time.Sleep(30 * time.Second)
		path := "/v1/runs/" + c.loop(http.StatusAccepted, "lasts", "start", rondoMessage).Data.Run
		time.Sleep(2 * time.Minute)
		if got := c.is(path); got != goes {
			t.Errorf("whose owner has left before its start, it is %s", got)
		}
		c.joined("websocket").leave()
		time.Sleep(61 * time.Second)
		if got := c.is(path); got != cancelled {
			t.Errorf("when its owner was there and has gone, it is %s", got)
		}
	})
}

// A client that goes without a word is missed when it answers no ping.
func TestAClientThatVanishesIsMissed(t *testing.T) {
	inOwners(t, byDefault, func(c connected) {
		s := c.joined("websocket")
		path := s.start("lasts")
		if err := s.conn.CloseNow(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		if got := c.is(path); got != cancelled {
			t.Errorf("whose connection broke: %s", got)
		}
		status, body := s.ask(http.MethodGet, socketURL+"polling", "")
		if status != http.StatusOK {
			t.Fatal(body)
		}
		_, id, _ := strings.Cut(body, `"sid":"`)
		id, _, _ = strings.Cut(id, `"`)
		url := socketURL + "polling&sid=" + id
		if status, body := s.ask(http.MethodPost, url, "40\x1e"+`42["loop:start",{"agentId":"lasts","message":"go"}]`); status != http.StatusOK {
			t.Fatal(body)
		}
		synctest.Wait()
		path = "/v1/runs/" + c.loop(http.StatusOK, "lasts", "status", "").Data.Run
		time.Sleep(100 * time.Second)
		if got := c.is(path); got != goes {
			t.Errorf("whose client polls no more, before it is missed: %s", got)
		}
		time.Sleep(6 * time.Second)
		if got := c.is(path); got != cancelled {
			t.Errorf("whose client polls no more: %s", got)
		}
	})
}

// rows: RON-74
func TestWhatBecomesOfTheRunsOfWhoIsGoneCanBeSaid(t *testing.T) {
	for name, c := range map[string]struct {
		gone server.OwnerGone
		// bySocket and byHTTP are how a loop stands when its owner has gone.
		bySocket, byHTTP string
	}{
		"by default":        {byDefault, cancelled, goes},
		"off":               {server.OwnerGone{Grace: time.Minute}, goes, goes},
		"park":              {server.OwnerGone{Sockets: event.OwnerGonePark, HTTP: event.OwnerGonePark, Grace: time.Minute}, "paused paused", "paused paused"},
		"teardown":          {server.OwnerGone{Sockets: event.OwnerGoneTeardown, HTTP: event.OwnerGoneTeardown, Grace: time.Minute}, cancelled, cancelled},
		"not long ago":      {server.OwnerGone{Sockets: event.OwnerGoneTeardown, Grace: time.Hour}, goes, goes},
		"with no time left": {server.OwnerGone{Sockets: event.OwnerGoneTeardown}, cancelled, goes},
	} {
		t.Run(name, func(t *testing.T) {
			inOwners(t, c.gone, func(on connected) {
				s := on.joined("websocket")
				path := s.start("lasts")
				s.leave()
				time.Sleep(15 * time.Minute)
				if got := on.is(path); got != c.bySocket {
					t.Errorf("started over a socket, it is %q, want %q", got, c.bySocket)
				}
				if !strings.HasPrefix(on.is(path), "ended") {
					on.loop(http.StatusOK, "lasts", "stop", "")
				}
				// Who was never connected is not gone.
				path = "/v1/runs/" + on.loop(http.StatusAccepted, "lasts", "start", rondoMessage).Data.Run
				time.Sleep(15 * time.Minute)
				if got := on.is(path); got != goes {
					t.Errorf("started over HTTP, it is %q", got)
				}
				on.joined("polling").leave()
				time.Sleep(15 * time.Minute)
				if got := on.is(path); got != c.byHTTP {
					t.Errorf("started over HTTP, and when its owner was there and has gone, it is %q, want %q", got, c.byHTTP)
				}
				if !strings.HasPrefix(on.is(path), "ended") {
					on.loop(http.StatusOK, "lasts", "stop", "")
				}
			})
		})
	}
}

// Who has been told that a loop is stopped can start the next one: its workspace is free.
func TestWhenALoopIsStoppedTheNextOneCanStart(t *testing.T) {
	inOwners(t, byDefault, func(c connected) {
		for range 200 {
			c.loop(http.StatusAccepted, "lasts", "start", rondoMessage)
			c.loop(http.StatusOK, "lasts", "stop", "")
		}
	})
}

// What is one person's is not ended because another has gone.
func TestAnothersGoingEndsNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	files := maps.Clone(looping)
	maps.Copy(files, lasting)
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		given := map[string]string{}
		for _, name := range []string{"ann", "bob"} {
			token, err := tokens.Create(file, tokens.Entry{Name: name, Role: access.Editor})
			if err != nil {
				t.Fatal(err)
			}
			given[name] = token
		}
		s, _ := newServerWith(t, memory.New(nil), files, func(o *server.Options) { o.OwnerGone, o.Tokens, o.NoAuth = byDefault, file, false })
		onNetwork(local{s, t}, func(c connected) {
			ann, bob := c.open("websocket", "", withToken(given["ann"])), c.open("polling", given["bob"], nil)
			ann.waitFor("connect")
			bob.waitFor("connect")
			ann.waitFor(ann.emit("loop:start", `{"agentId": "lasts", "message": "go"}`))
			bob.waitFor(bob.emit("loop:start", `{"agentId": "reviewed", "message": "go"}`))
			bob.leave()
			time.Sleep(2 * time.Minute)
			ann.soFar()
			if got := as[envelope](t, ann.waitFor(ann.emit("loop:stop", `{"agentId": "reviewed"}`))); got.Error.Type != "NO_LOOP" {
				t.Errorf("bob's loop is there: %+v", got)
			}
			if got := as[envelope](t, ann.waitFor(ann.emit("loop:stop", `{"agentId": "lasts"}`))); !got.Success {
				t.Errorf("ann's loop is not: %+v", got)
			}
		})
	})
}

// What a stopped server leaves, the next one continues, and misses who does not come
// back to it.
func TestTheNextServerMissesTheOwner(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		dir := ""
		next := func(play func(c connected)) {
			s, at := newServerWith(t, store, lasting, func(o *server.Options) {
				o.OwnerGone = byDefault
				if dir != "" {
					o.Agents, o.Launch.Workspace = dir, dir
				}
			})
			dir = at
			onNetwork(local{s, t}, play)
		}
		var path string
		next(func(c connected) { path = c.joined("websocket").start("lasts") })
		next(func(c connected) {
			s := c.joined("websocket")
			if row := c.stands(path); row.State != journal.Parked {
				t.Fatalf("%+v", row)
			}
			gets[journal.Run](c.local, http.StatusOK, http.MethodPost, path+"/resume", "")
			s.leave()
			time.Sleep(61 * time.Second)
			if got := c.is(path); got != cancelled {
				t.Errorf("it is %s", got)
			}
		})
	})
}

// rows: RON-71
//
// Also what a runner has started is gone, whatever it is.
func TestATornDownRunnerLeavesNoProcess(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	s, _ := newServerWith(t, memory.New(nil), map[string]string{
		"runs.yaml": "identity: {name: runs}\nloop: {loopEnabled: true, runner: {command: [sh, -c, 'sleep 1000 & echo $! >" + dir + "/pid.new; mv " + dir + "/pid.new " + dir + "/pid; wait', go]}}\n",
	}, func(o *server.Options) {
		o.OwnerGone = server.OwnerGone{Sockets: event.OwnerGoneTeardown, Grace: 10 * time.Millisecond}
	})
	web := httptest.NewServer(conforming(t, s))
	defer web.Close()
	l := local{s, t}
	c := &socket{t: t, client: web.Client(), header: http.Header{}, in: make(chan received, 1000), gone: make(chan struct{})}
	c.dial(web.URL + "/socket.io/?EIO=4&transport=websocket")
	c.read()
	go c.listen()
	c.raw("40")
	c.waitFor("connect")
	run := strings.TrimPrefix(c.start("runs"), "/v1/runs/")
	var pid int
	eventually(t, "the runner does not start", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the runner's process is not there: %v", err)
	}
	c.leave()
	eventually(t, "the run does not end", func() bool {
		row := gets[journal.Run](l, http.StatusOK, http.MethodGet, "/v1/runs/"+run, "")
		return row.State == journal.Ended && row.Detail == string(event.ReasonCancelled)
	})
	eventually(t, "the process is there", func() bool { return syscall.Kill(pid, 0) != nil })
}

// eventually waits until something holds.
func eventually(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(otherwise)
}
