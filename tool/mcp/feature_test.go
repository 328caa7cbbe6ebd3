package mcp_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool/mcp"
)

const withFeatures = mcptest.StartVariable + "=features"

func names(s *mcp.Server) []string {
	var all []string
	for _, t := range s.Tools() {
		all = append(all, t.Name)
	}
	return all
}

func TestResourcesAndPromptsAreToolsIfTheServerHasThem(t *testing.T) {
	w := newWorld(t)
	if with := names(connect(t, w.options("ledger"))); slices.Contains(with, "docs.resources") || slices.Contains(with, "docs.prompts") {
		t.Errorf("a server without the capabilities offers %v", with)
	}
	s := connect(t, w.options("ledger", withFeatures))
	for _, name := range []string{"docs.resources", "docs.prompts"} {
		each := find(t, s, name)
		if each.Effect != event.EffectAtMostOnce || each.Risk != event.RiskUnknown || each.ReadOnly || *each.Labels != (event.Labels{Untrusted: true, Private: true, Outgoing: true}) {
			t.Errorf("%s is believed to be %+v", name, each)
		}
	}
	// A tool of the server goes before a feature of that name.
	w.list(t, `{"tools":[{"name":"resources","description":"Its own.","inputSchema":{"type":"object"}}]}`)
	s = connect(t, w.options("ledger", withFeatures))
	if each := find(t, s, "docs.resources"); each.Description != "Its own." || len(names(s)) != 2 {
		t.Errorf("the server's own tool is %+v of %v", each, names(s))
	}
	if r, err := call(t.Context(), t, s, "docs.resources", `{}`); err != nil || r.Output != "{}" || len(w.ledger(t, "call")) != 1 {
		t.Errorf("the server's own tool gives %+v, %v", r, err)
	}
}

func TestResourcesAreListedAndRead(t *testing.T) {
	w := newWorld(t)
	web := httptest.NewServer(&mcptest.Server{Ledger: w.ledgerFile() + ".web", Features: true})
	defer web.Close()
	for _, s := range []*mcp.Server{connect(t, w.options("ledger", withFeatures)), connect(t, mcp.Options{Server: "docs", URL: web.URL})} {
		for range 2 {
			r, err := call(t.Context(), t, s, "docs.resources", `{}`)
			want := `{"uri":"file:///a.txt","name":"a","description":"onetwo","mimeType":"text/plain","size":3}
{"uri":"file:///dot","name":"dot","mimeType":"image/png"}
{"uriTemplate":"file:///{path}","name":"any file"}`
			if err != nil || r.Output != want {
				t.Errorf("the list is %q, %v", r.Output, err)
			}
		}
		if r, err := call(t.Context(), t, s, "docs.resources", `{"uri":"file:///b"}`); err != nil || r.Output != "inside file:///b" {
			t.Errorf("a text is %+v, %v", r, err)
		}
		if r, err := call(t.Context(), t, s, "docs.resources", `{"uri":"file:///two"}`); err != nil || r.Output != "file:///two/1:\none\nfile:///two/2:\ntwo" {
			t.Errorf("two texts are %q, %v", r.Output, err)
		}
		r, err := call(t.Context(), t, s, "docs.resources", `{"uri":"file:///dot"}`)
		if err != nil || len(r.Media) != 1 || r.Media[0].MediaType != "image/png" || r.Media[0].Name != "dot" {
			t.Errorf("a picture is %+v, %v", r, err)
		}
		_, err = call(t.Context(), t, s, "docs.resources", `{"uri":"file:///none"}`)
		if kind, again := kindOf(err); kind != event.ErrorTool || again {
			t.Errorf("an unknown resource: %v", err)
		}
	}
}

func TestPromptsAreListedAndFilledIn(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger", withFeatures))
	if r, err := call(t.Context(), t, s, "docs.prompts", `{}`); err != nil || r.Output != `{"name":"greet","description":"Greets.","arguments":[{"name":"whom","required":true}]}` {
		t.Errorf("the list is %q, %v", r.Output, err)
	}
	for range 2 {
		r, err := call(t.Context(), t, s, "docs.prompts", `{"name":"greet","arguments":{"whom":"Ann"}}`)
		if err != nil || r.Output != "user:\nGreet {\"whom\":\"Ann\"}\nassistant:" || len(r.Media) != 1 {
			t.Errorf("the prompt is %+v, %v", r, err)
		}
	}
	if lines := w.ledger(t, "get"); len(lines) != 2 || lines[0] != `get  greet key-1 {"whom":"Ann"}` {
		t.Errorf("the server was asked %q", lines)
	}
}

// Reading is a call like any other: it is at_most_once, pinned, and may ask a person.
func TestReadingAResourceIsACallLikeAnyOther(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger", withFeatures))
	_, err := call(t.Context(), t, s, "docs.resources", `{"uri":"file:///exit"}`)
	if kind, _ := kindOf(err); kind != event.ErrorInDoubt || len(w.ledger(t, "get")) != 1 {
		t.Errorf("a lost answer: %v, after %q", err, w.ledger(t, "get"))
	}
	// The server is started anew without the capabilities.
	again := mcp.Resume(w.options("ledger"), s.Pin())
	t.Cleanup(func() { _ = again.Close() })
	r, err := call(t.Context(), t, again, "docs.resources", `{"uri":"file:///a.txt"}`)
	if kind, _ := kindOf(err); kind != event.ErrorUnavailable || r.Server == nil || len(r.Server.Tools) != 2 {
		t.Errorf("without the capability: %v, %+v", err, r.Server)
	}
	if lines := mcp.Differences(s.Pin(), connect(t, w.options("ledger")).Pin()); len(lines) != 2 || !strings.Contains(lines[0], "prompts") || !strings.Contains(lines[1], "resources") {
		t.Errorf("the pins differ by %q", lines)
	}

	s = connect(t, w.options("sdk"))
	const args = `{"uri":"ask:///name"}`
	f := asked(t, s, "docs.resources", args, 1, nil)
	if r := finish(t, s, "docs.resources", args, 2, gives(f, `{"name":"Ann"}`)); r.Output != "state-1map[name:Ann]" {
		t.Errorf("after the answer: %+v", r)
	}
}
