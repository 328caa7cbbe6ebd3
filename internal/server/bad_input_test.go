package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/memory"
)

func TestHalfARequestIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, nil)
		l, stop := serving(t, s)
		here, there := net.Pipe()
		l.accepted <- end{there}
		began := time.Now()
		if _, err := io.WriteString(here, "GET /v1/runs HTTP/1.1\r\nAcc"); err != nil {
			t.Fatal(err)
		}
		_ = here.SetReadDeadline(began.Add(time.Hour))
		if _, err := io.ReadAll(here); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("it is let go after %s: %v", time.Since(began), err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAHeaderOfAMegabyteIsRefused(t *testing.T) {
	s, _ := newServer(t, nil)
	l, stop := serving(t, s)
	here, there := net.Pipe()
	l.accepted <- end{there}
	go func() {
		_, _ = io.WriteString(here, "GET /healthz HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	}()
	answer, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("it gets %+v, %v", answer, err)
	}
	_ = here.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAnEventThatNeverWasIsNoPlaceToGoOnFrom(t *testing.T) {
	inBubble(t, map[string]string{"agent.yaml": answering, "script.yaml": "- text: the end\n"}, func(l local, _ string) {
		_, path := l.begin("answers")
		all := l.streamed(path+"/events", "")
		last := all[len(all)-1].id
		for _, query := range []string{"?after=1000000", "?cursor=1000000", "?after=1000000&tree=true", "?after=9223372036854775808", "?after=-1", "?after=x"} {
			if p := l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/events"+query, ""); p.Next == "" {
				t.Errorf("%s: %+v", query, p)
			}
		}
		if page := gets[struct{ Items []any }](l, http.StatusOK, http.MethodGet, path+"/events?after="+last, ""); len(page.Items) != 0 {
			t.Errorf("behind the newest event come %v", page.Items)
		}
		if got := l.streamed(path+"/events", "1000000"); len(got) != 0 {
			t.Errorf("a stream behind an event that never was has %v", got)
		}
	})
}

func TestExcessConnectionsGetRetryAfter(t *testing.T) {
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	s, err := server.New(server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: t.TempDir(), User: "somebody", NoAuth: true, Connections: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, stop := serving(t, s)
	get := func() (net.Conn, *http.Response) {
		conn := l.send(t, "GET /healthz HTTP/1.1\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, answer
	}
	first, _ := get()
	if _, answer := get(); answer.StatusCode != http.StatusOK {
		t.Errorf("the second gets %d", answer.StatusCode)
	}
	var p server.Problem
	_, answer := get()
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
		t.Error(err)
	}
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || p.Type != "urn:pawl:problem:unavailable" || p.Next == "" {
		t.Errorf("the third gets %d %+v", answer.StatusCode, p)
	}
	_ = first.Close()
	for { // the server notices that a little later
		conn, answer := get()
		_ = conn.Close()
		if answer.StatusCode == http.StatusOK {
			break
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestBrokenFileDoesNotBlockTheOthers(t *testing.T) {
	inBubble(t, map[string]string{
		"agent.yaml": answering, "script.yaml": "- text: the end\n",
		"torn.yaml": "identity: {name: torn", "binary.yaml": "\x00\xff\xfe", "empty.yaml": "", "deep.json": strings.Repeat("[", 100_000),
	}, func(l local, _ string) {
		problems := map[string]string{}
		for _, a := range pages[struct{ Name, File, Problem string }](l, "/v1/agents", 2) {
			problems[a.File] = a.Problem
		}
		if p, has := problems["agent.yaml"]; !has || p != "" {
			t.Errorf("the good one has the problem %q of %v", p, problems)
		}
		for _, file := range []string{"torn.yaml", "binary.yaml"} {
			if problems[file] == "" {
				t.Errorf("%s is not said to be broken: %v", file, problems)
			}
		}
		_, path := l.begin("answers")
		if r := l.stands(path); r.Detail != "final_answer" {
			t.Errorf("the run of the good one is %+v", r)
		}
		l.refuses(http.StatusUnprocessableEntity, "bad-agent", http.MethodPost, "/v1/runs", `{"agent": "torn", "input": "go"}`)
	})
}
