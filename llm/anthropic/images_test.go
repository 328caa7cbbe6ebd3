package anthropic_test

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

func picture(t *testing.T, side int) llm.Media {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, side))); err != nil {
		t.Fatal(err)
	}
	return llm.Media{MediaType: "image/png", Name: "shot.png", Data: b.Bytes()}
}

// A long screenshot stays in the conversation, so that each later request would be
// refused for it.
func TestImagesThatTheServiceRefusesAreNamedInWords(t *testing.T) {
	m := modelOf(nil)
	in := func(files ...llm.Media) string {
		req := ask()
		req.Memo = &llm.Memo{}
		req.Messages[0] = &llm.Message{Role: llm.RoleUser, Parts: llm.Parts{llm.Text{Text: "look"}}}
		for _, f := range files {
			req.Messages[0].Parts = append(req.Messages[0].Parts, f)
		}
		return encoded(t, m, req)
	}
	fits, large, huge := picture(t, 2000), picture(t, 2001), picture(t, 8001)
	for name, c := range map[string]struct {
		body         string
		shown, named int
	}{
		"one":                 {in(large), 1, 0},
		"one too high":        {in(large, huge), 1, 1},
		"twenty":              {in(slices.Repeat([]llm.Media{large}, 20)...), 20, 0},
		"more than twenty":    {in(append(slices.Repeat([]llm.Media{fits}, 19), large, large)...), 19, 2},
		"a type that is none": {in(llm.Media{MediaType: "image/svg+xml", Data: []byte("<svg/>")}), 0, 1},
	} {
		shown, named := strings.Count(c.body, `"type":"image"`), strings.Count(c.body, "cannot be shown to this model")
		if shown != c.shown || named != c.named {
			t.Errorf("%s: %d are shown and %d named, want %d and %d", name, shown, named, c.shown, c.named)
		}
	}
}

func TestALargeImageIsNamedOnceARequestHasMany(t *testing.T) {
	m, req := modelOf(nil), ask()
	req.Memo = &llm.Memo{}
	req.Messages = []*llm.Message{{Role: llm.RoleUser, Parts: llm.Parts{picture(t, 3000)}}}
	if got := encoded(t, m, req); strings.Count(got, `"type":"image"`) != 1 {
		t.Fatalf("%.300s", got)
	}
	more := &llm.Message{Role: llm.RoleUser}
	for _, f := range slices.Repeat([]llm.Media{picture(t, 10)}, 20) {
		more.Parts = append(more.Parts, f)
	}
	req.Messages = append(req.Messages, more)
	if got := encoded(t, m, req); strings.Count(got, `"type":"image"`) != 20 || !strings.Contains(got, "at most 2000 each way") {
		t.Errorf("%d images", strings.Count(got, `"type":"image"`))
	}
}
