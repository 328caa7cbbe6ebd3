package requirements_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/requirements"
)

var update = flag.Bool("update", false, "rewrite docs/requirements.md")

// TestThePageListsEveryRowWithItsTests fails when a test gained or lost a row
// and the page was not generated again.
func TestThePageListsEveryRowWithItsTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page := filepath.Join(root, "docs", "requirements.md")
	source := filepath.Join(root, "..", "shared", "REQUIREMENTS.md")
	if _, err := os.Stat(source); err != nil {
		source = page
	}
	sections, err := requirements.ReadSource(source)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := requirements.Claims(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range sections {
		for _, r := range s.Rows {
			known[r.ID] = true
		}
	}
	if len(known) < 390 {
		t.Fatalf("%d rows read from %s; there are 396", len(known), source)
	}
	for id, tests := range claims {
		if !known[id] {
			t.Errorf("%v claim %s, and there is no such row", tests, id)
		}
	}
	for id := range requirements.Notes() {
		if !known[id] {
			t.Errorf("there is a note on %s, and there is no such row", id)
		}
	}
	want := requirements.Page(sections, claims)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/requirements.md is stale; run make docs")
	}
	again, err := requirements.ReadSource(page)
	if err != nil {
		t.Fatal(err)
	}
	if requirements.Page(again, claims) != want {
		t.Error("the page that is made from the page itself differs")
	}
}
