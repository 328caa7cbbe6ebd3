package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/server/peer"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// siteOn is a server of a shared journal that listens and is registered.
func siteOn(t *testing.T, store journal.Store) site {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	s, _ := newServerWith(t, store, map[string]string{
		"agent.yaml": "identity: {name: answers}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: []}\n",
	}, func(o *server.Options) { o.PeerURL = "http://" + web.Listener.Addr().String() + "/" })
	web.Config.Handler = conforming(t, s)
	web.Start()
	ctx, cancel := context.WithCancel(t.Context())
	announced := make(chan struct{})
	go func() { defer close(announced); s.Announce(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-announced
		web.Close()
	})
	return site{web, t}
}

// The model waits for its next word, so a reader gets each word before there is another.
func TestReaderAtAnotherServerGetsTheTextAsItComes(t *testing.T) {
	words := dictated(t)
	store := memory.New(nil)
	driver, one, two := siteOn(t, store), siteOn(t, store), siteOn(t, store)
	for range 2 {
		path := "/v1/runs/" + driver.starts().ID + "/events?deltas=true"
		first := one.listen(path)
		words <- "One "
		first.until("", "One ")
		words <- "two "
		first.until("", "One two ")
		second, tree, other := one.listen(path), one.listen(path+"&tree=true"), two.listen(path)
		for _, l := range []*listener{second, tree, other} {
			l.until("", "One two ")
		}
		words <- "three."
		for _, l := range []*listener{first, second, tree, other} {
			l.until("", "One two three.")
		}
		words <- ""
		for _, l := range []*listener{first, second, tree, other} {
			if l.until("model.response", ""); l.text != "One two three." {
				t.Errorf("a reader gets %q", l.text)
			}
			l.until("run.completed", "")
		}
		run := strings.Split(path, "/")[3]
		records, err := store.Records(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if event.Type(r.Type) == event.TypeText {
				t.Errorf("the journal has the live event %s", r.Body)
			}
		}
	}
}

// impostor is a store in which drivers have other keys, as a process sees them that
// cannot read the journal.
type impostor struct{ *memory.Store }

func (s impostor) Drivers(ctx context.Context) ([]journal.Driver, error) {
	live, err := s.Store.Drivers(ctx)
	for i := range live {
		live[i].Key = []byte("guessed")
	}
	return live, err
}

func TestReaderWithoutTheKeyGetsDurableEventsAlone(t *testing.T) {
	words := dictated(t)
	store := memory.New(nil)
	driver, other := siteOn(t, store), siteOn(t, impostor{store})
	for range 2 {
		path := "/v1/runs/" + driver.starts().ID + "/events?deltas=true"
		there, elsewhere := driver.listen(path), other.listen(path)
		words <- "One."
		there.until("", "One.")
		words <- ""
		if elsewhere.until("run.completed", ""); elsewhere.text != "" {
			t.Errorf("a server with a wrong key gets %q", elsewhere.text)
		}
	}
	for _, header := range []string{"", "x"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, driver.URL+peer.Path+"?run=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Pawl-Proof", header)
		answer, err := driver.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("proof %q gets status %d", header, answer.StatusCode)
		}
	}
}

// A reader keeps nothing of an answer whose driver dies, and gets the text so far when it
// can be reached again.
func TestReaderDropsTheTextOfADriverThatIsGone(t *testing.T) {
	words := dictated(t)
	store := memory.New(nil)
	driver, other := siteOn(t, store), siteOn(t, store)
	l := other.listen("/v1/runs/" + driver.starts().ID + "/events?deltas=true")
	words <- "One "
	l.until("", "One ")
	for range 2 {
		driver.CloseClientConnections()
		l.until("text.reset", "")
		l.text = ""
		l.until("", "One ")
	}
	words <- "two."
	l.until("", "One two.")
	words <- ""
	l.until("run.completed", "")
}

// A stream of live events needs a driver that proves itself.
func TestLiveEventsOfAnImpostorAreNotShown(t *testing.T) {
	words := dictated(t)
	store := memory.New(nil)
	asked := make(chan struct{}, 8)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		if r.Header.Get("Pawl-Proof") == "" {
			w.Header().Set("Pawl-Challenge", "x")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Pawl-Proof", r.Header.Get("Pawl-Proof"))
		_, _ = w.Write([]byte(`{"Seq":1,"Pos":1,"First":true,"event":{"type":"text","run":"` + r.URL.Query().Get("run") + `","data":{"attempt":1,"text":"lies"}}}` + "\n"))
	}))
	t.Cleanup(fake.Close)
	driver, other := siteOn(t, store), siteOn(t, &redirected{Store: store, to: fake.URL})
	l := other.listen("/v1/runs/" + driver.starts().ID + "/events?deltas=true")
	for range 3 {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("nothing asks at the address")
		}
	}
	words <- "One."
	words <- ""
	if l.until("run.completed", ""); l.text != "" {
		t.Errorf("a reader gets %q", l.text)
	}
}

// redirected is a store in which all drivers have one address.
type redirected struct {
	*memory.Store
	to string
}

func (s *redirected) Drivers(ctx context.Context) ([]journal.Driver, error) {
	live, err := s.Store.Drivers(ctx)
	for i := range live {
		live[i].Addr = s.to
	}
	return live, err
}

// A server that drives nothing gets the answers of its workers.
func TestReaderGetsTheTextOfAWorker(t *testing.T) {
	words := dictated(t)
	store := memory.New(nil)
	files := map[string]string{"agent.yaml": "identity: {name: answers}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: []}\n"}
	api, dir := newServerWith(t, store, files, func(o *server.Options) { o.Dispatcher = &noted{} })
	web := httptest.NewServer(conforming(t, api))
	t.Cleanup(web.Close)
	worker, _ := newServerWith(t, store, nil, func(o *server.Options) {
		o.Agents, o.Launch.Here = dir, workplace.Here{Host: "worker", Workspace: dir}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := worker.ServePeers(ctx, listener)
	var going sync.WaitGroup
	going.Go(func() { worker.Announce(ctx) })
	t.Cleanup(func() {
		cancel()
		going.Wait()
		if err := served(); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		run := site{web, t}.starts().ID
		l := site{web, t}.listen("/v1/runs/" + run + "/events?deltas=true")
		going.Go(func() {
			if _, _, err := worker.Drive(t.Context(), run, false); err != nil {
				t.Error(err)
			}
		})
		words <- "One "
		l.until("", "One ")
		words <- "two."
		l.until("", "One two.")
		words <- ""
		l.until("run.completed", "")
	}
}
