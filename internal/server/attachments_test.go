package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// An attachment of a start is part of the run's input; one that is no file is refused, with its place.
func TestStartTakesAttachments(t *testing.T) {
	store := memory.New(nil)
	s, _ := newServerOn(t, store, map[string]string{
		"a.yaml": "identity: {name: a}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\n", "s.script.yaml": "- {text: done}\n",
	})
	l := local{s, t}
	body := func(data string) string {
		return fmt.Sprintf(`{"agent": "a", "input": "read it", "attachments": [{"name": "a.txt", "data": "YSBub3Rl"}, {"name": "b.txt", "data": %q}]}`, data)
	}
	run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", body("YW5vdGhlcg=="))
	records, err := store.Records(t.Context(), run.ID, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var first struct {
		Data struct{ Input json.RawMessage }
	}
	if err := json.Unmarshal(records[0].Body, &first); err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{"read it", "a.txt", "b.txt"} {
		if !strings.Contains(string(first.Data.Input), has) {
			t.Errorf("the input has no %s: %s", has, first.Data.Input)
		}
	}
	l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, "/v1/runs", body("AAAA"))
	l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, "/v1/runs", body("no base64"))
}

// An attachment may be that of another run, also of one that has it from another; content
// that no run was given is out of reach.
func TestStartTakesAttachmentsOfAnotherRun(t *testing.T) {
	store := memory.New(nil)
	s, _ := newServerOn(t, store, map[string]string{
		"a.yaml": "identity: {name: a}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\n", "s.script.yaml": "- {text: done}\n",
	})
	l := local{s, t}
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a note\n", 10_000))) // apart from the event
	start := func(attachments string) string {
		return gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", fmt.Sprintf(`{"agent": "a", "input": "read it", "attachments": [%s]}`, attachments)).ID
	}
	first := start(`{"name": "a.txt", "data": "YSBub3Rl"}, {"name": "long.txt", "data": "` + long + `"}`)
	second := start(`{"run": "` + first + `", "index": 1}, {"name": "b.txt", "data": "Yg=="}, {"run": "` + first + `"}`)
	third := start(`{"run": "` + second + `"}, {"run": "` + second + `", "index": 2}`)
	for id, want := range map[string]string{second: "long.txt b.txt a.txt", third: "long.txt a.txt"} {
		given, err := drive.At[event.RunStarted](t.Context(), store, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for m := range given.Input.Parts.Media() {
			names = append(names, m.Name)
			if m.Name == "long.txt" && m.Blob == "" || m.Name == "a.txt" && string(m.Data) != "a note" {
				t.Errorf("run %s was given %+v", id, m)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("run %s was given %s, want %s", id, got, want)
		}
	}
	for _, wrong := range []string{
		`{"run": "none"}`, `{"run": "` + first + `", "index": 2}`, `{"run": "` + first + `", "index": -1}`, `{"run": "` + first + `", "name": "a.txt"}`,
	} {
		l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, "/v1/runs", `{"agent": "a", "input": "read it", "attachments": [`+wrong+`]}`)
	}
}
