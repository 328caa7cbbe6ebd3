package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

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
